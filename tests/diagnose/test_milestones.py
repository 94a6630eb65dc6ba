"""Phases, steps and the telling line, from what verl, vLLM and Ray print and from the records' stamps."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.logs.lines import LIMIT, Line, Lines, strip_prefix
from patcher.logs.milestones import Milestones

LOGS = Path(__file__).parent.parent / "jobs" / "logs"


def read(text: str | bytes) -> Milestones:
    """Each line a second after the one before."""
    found = Milestones()
    lines = Lines()
    content = text if isinstance(text, bytes) else text.encode()
    for second, line in enumerate([*lines.feed(content), *lines.rest()]):
        found.feed(line, float(second))
    return found


@pytest.mark.parametrize("release", ["0.6.1", "0.7.0", "0.8.0"])
def test_a_run_of_a_release_passes_all_phases(release: str) -> None:
    found = read((LOGS / f"verl-{release}.log").read_bytes())
    assert list(found.begun) == ["config", "dataset", "resource-pool", "actor", "rollout", "loop"]
    assert (found.step, found.steps) == (2, 2)
    assert found.telling is None
    assert found.dashboard == "http://127.0.0.1:8265"


def test_lines_that_are_printed_with_pprint_count_too() -> None:
    for line in ("(\"Initial validation metrics: {'val-core/acc': \"\n", "'Initial validation metrics: {}'\n"):
        assert read(f"(TaskRunner pid=1) {line}").phase == "loop"


def test_stamps_name_the_phases_and_a_sync_that_hangs() -> None:
    found = read(
        "(TaskRunner pid=1) [uky] config begin 0.0s pid=1\n(TaskRunner pid=1) [uky] config end 0.4s pid=1\n"
        "(TaskRunner pid=1) [uky] dataset begin 0.0s pid=1\n(TaskRunner pid=1) [uky] dataset end 1.4s pid=1\n"
        "(TaskRunner pid=1) [uky] resource-pool begin 0.0s pid=1\n(TaskRunner pid=1) [uky] actor begin 0.0s pid=1\n"
        "(WorkerDict pid=2) [uky] [ACTOR] init_model begin 0.0s pid=2\n"
        "(WorkerDict pid=2) [uky] [ROLLOUT] build begin 0.0s pid=2\n"
    )
    assert found.phase == "actor"
    more = "\n(TaskRunner pid=1) [uky] rollout begin 0.0s pid=1\n(TaskRunner pid=1) [uky] loop begin 0.0s pid=1\n"
    lines = Lines()
    for line in lines.feed(more.encode()):
        found.feed(line, 20.0)
    assert found.phase == "loop"
    (begun,) = found.feed(Line("(WorkerDict pid=2) [uky] [SYNC] update_weights begin 0.0s pid=2\n", 30, 0), 21.0)
    assert (begun.phase, begun.before, found.phase) == ("weight-sync", "loop", "weight-sync")
    found.feed(Line("(WorkerDict pid=2) [uky] [SYNC] update_weights end 3.0s pid=2\n", 31, 0), 24.0)
    assert found.phase == "loop"


def test_stamps_made_by_hand_count_whatever_stands_before_them() -> None:
    texts = ("Starting dataset generation...", "Creating ResourcePool...", "Initializing Actor Worker...")
    texts += ("Initializing Rollout Worker...", "Starting weight synchronization...", "Starting training loop...")
    lines = [f"(Main pid=1) [2026-01-11 10:00:{second}] root - {text}\n" for second, text in enumerate(texts, 10)]
    phases = ["dataset", "resource-pool", "actor", "rollout", "weight-sync", "loop"]
    for number, phase in enumerate(phases, 1):
        assert read("".join(lines[:number])).phase == phase


def test_a_progress_bar_and_a_metrics_line_tell_one_step_once() -> None:
    found = Milestones()
    steps = []
    for text in (
        "Training Progress:   0%|          | 0/4 [00:00<?, ?it/s]\r",
        "(TaskRunner pid=9) step:1 - actor/entropy:5.6\n",
        "Training Progress:  25%|██▌       | 1/4 [00:38<00:38, 38.56s/it]\r",
        "Training Progress:  50%|█████     | 2/4 [00:40<00:38, 38.56s/it]\n",
        "(TaskRunner pid=9) step:2 - actor/entropy:5.6\n",
    ):
        steps += [one.step for one in found.feed(Line(text, 1, 0), 1.0) if one.step is not None]
    assert steps == [1, 2]
    assert found.steps == 4


def test_a_later_dataset_line_does_not_lead_back() -> None:
    found = read(
        "Training Progress:   0%|  | 0/2 [00:00<?, ?it/s]\n(AgentLoopWorker pid=3) Using dataset class: RLHFDataset\n"
    )
    assert list(found.begun) == ["config", "loop"]


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("KeyError: 'raw_prompt'", "KeyError: 'raw_prompt'"),
        (
            "(WorkerDict pid=7) torch.OutOfMemoryError: CUDA out of memory.",
            "torch.OutOfMemoryError: CUDA out of memory.",
        ),
        ("ray.exceptions.RayTaskError(KeyError): ray::A() (pid=1)\nKeyError: 'a'", "KeyError: 'a'"),
        ("KeyError: 'a'\nray.exceptions.RayTaskError(KeyError): ray::A() (pid=1)", "KeyError: 'a'"),
        ("run.sh: line 3: 77 Killed      python x", "run.sh: line 3: 77 Killed      python x"),
        ("run.sh: line 3: verl: command not found", "run.sh: line 3: verl: command not found"),
        ("AssertionError", "AssertionError"),
        ("an Error: that is no exception", None),
        ("UserWarning: something", None),
        ("\x1b[36m(A pid=1)\x1b[0m ValueError: x\r\n", "ValueError: x"),
    ],
)
def test_the_telling_line(text: str, telling: str | None) -> None:
    found = read(text).telling
    assert (found.text if found is not None else None) == telling


def test_names_that_ray_puts_before_a_line_come_off() -> None:
    told = strip_prefix("\x1b[36m(vLLMHttpServer pid=13505, ip=192.0.2.2)\x1b[0m (EngineCore pid=13670) WARNING x\n")
    assert (told.actors, told.text) == (("vLLMHttpServer", "EngineCore"), "WARNING x")
    assert strip_prefix("(see the docs) (pid=3) x").text == "(see the docs) (pid=3) x"
    assert strip_prefix("[repeated 7x across cluster]").actors == ()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_do_not_depend_on_the_pieces(size: int) -> None:
    content = "a\r\nb\rc\n\n漢字🙂\r\r\nend".encode() + b"\xff\n" + b"x" * 50
    lines = Lines()
    found = [line for at in range(0, len(content), size) for line in lines.feed(content[at : at + size])]
    found += lines.rest()
    assert [line.text for line in found] == [
        "a\r\n",
        "b\r",
        "c\n",
        "\n",
        "漢字🙂\r",
        "\r\n",
        "end\ufffd\n",
        "x" * 50,
    ]
    assert [line.number for line in found] == [1, 2, 2, 3, 4, 4, 5, 6]
    assert found[-1].end == len(content)


def test_a_long_line_is_cut_between_words_and_never_within_a_letter() -> None:
    lines = Lines()
    words = list(lines.feed(b"word " * LIMIT))
    assert all(line.text.endswith(" ") and len(line.text) <= LIMIT for line in words)
    signs = list(Lines().feed("漢".encode() * LIMIT))
    assert "\ufffd" not in "".join(line.text for line in signs)


@pytest.mark.parametrize(
    "line",
    [
        "***** Running training *****",
        "[INFO|trainer.py:2100] 2026-01-02 10:00:00,123 >> ***** Running training *****",
        "Starting training...",
        "INFO 2026-01-02 10:00:00 Resuming training from step 40",
        "[rank0]:[titan] 2026-01-02 10:00:00,123 - root - INFO - Training starts at step 1",
        "2026-01-02 10:00:00 - INFO - __main__ - *** Train ***",
        "(entry pid=7) 2026-01-02 10:00:00.123 | INFO     | trainer:train:45 - Started: 'step'",
        "[before the start of training step] datetime: 2026-01-02 10:00:00",
        " 50%|█████     | 10/20 [00:05<00:05,  2.00it/s][INFO|trainer.py:40] 2026-01-02 10:00:00,123 >> Saving model "
        "checkpoint to /data/checkpoint-10",
        "Step 1/100",
        "Epoch [1/3], loss 0.4",
        "Training step: 1/50",
    ],
)
def test_other_trainers_say_that_they_train(line: str) -> None:
    assert read(f"{line}\n").phase == "loop"


@pytest.mark.parametrize(
    "line",
    [
        "Before starting training, the data is read",
        "Start training data preparation",
        "Running training script /app/train.py",
        "The training starts when all have come",
        "'Starting training' is what it says",
        "Attempt 2, step 1/100",
        "Step 1/2.5 of the way",
        "Finished: 'step', time cost: 2.0s",
    ],
)
def test_what_only_speaks_of_training_begins_no_loop(line: str) -> None:
    assert read(f"{line}\n").phase == "config"


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("Loading checkpoint shards:  50%|█████     | 1/2 [00:05<00:05,  5.00s/it]", "actor"),
        ("INFO 01-02 10:00:00 [worker.py:26] Memory profiling takes 3.20 seconds", "rollout"),
        ("INFO 01-02 10:00:00 [loggers.py:27] Engine 000: Avg prompt throughput: 0.0 tokens/s", "rollout"),
    ],
)
def test_parts_of_other_trainers_begin_their_phases(line: str, phase: str) -> None:
    assert read(f"{line}\n").phase == phase


@pytest.mark.parametrize(
    "text",
    ["step:{} - x\n", "Total training steps: {}\n", "Training Progress:   1%|a  | {}/3 [00:01<"],
    ids=["step", "total", "bar"],
)
def test_a_number_that_is_none_of_steps_is_passed_over(text: str) -> None:
    """Python refuses to read a number of more than 4,300 digits."""
    milestones = Milestones()
    milestones.feed(Line(text.format("9" * 5000), 1, 0), 0.0)
    assert (milestones.step, milestones.steps) == (None, None)
