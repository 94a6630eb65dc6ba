"""A log that ends within a traceback, or whose error is no exception: what is said of it."""

from __future__ import annotations

import io

import pytest

from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms

FRAME = '  File "/opt/venv/lib/python3.12/site-packages/mbridge/models/qwen.py", line 104, in name_of\n'
OWN = '  File "/app/fork/verl/trainer/main_ppo.py", line 30, in run\n    start()\n'
HEAD = "Traceback (most recent call last):\n"
WHO = "mbridge (mbridge/models/qwen.py:104)"
CALLED = " for the call at verl/trainer/main_ppo.py:30"


def diagnosed(log: str) -> Diagnosis:
    return diagnosis_of(Scanner(()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))


def sentence(log: str) -> str:
    found = diagnosed(log)
    assert found.verdict == "failed"
    assert found.root is not None
    assert found.root.explanation is not None
    return str(found.root.explanation.sentence)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            '    raise NotImplementedError(f"No mapping of {name} is known")\n',
            f"{WHO} says: No mapping of {{name}} is known",
        ),
        (
            '    raise ValueError(\n        "The mask has the wrong length"\n',
            f"{WHO} says: The mask has the wrong length",
        ),
        (
            "    assert state.dtype == torch.int16\n",
            f"{WHO} asserts state.dtype == torch.int16, which does not hold{CALLED}",
        ),
        ("    value = f(x)\n", "the log ends within a traceback, at mbridge/models/qwen.py:104"),
        ("", "the log ends within a traceback, at mbridge/models/qwen.py:104"),
    ],
)
def test_the_code_tells_what_is_raised_where_the_exceptions_own_line_is_cut_off(code: str, said: str) -> None:
    for log in (OWN + FRAME + code, HEAD + OWN + FRAME + code):
        assert sentence(log) == said


@pytest.mark.parametrize("label", ["[rank7]: ", "2026-01-02 10:00:00,123 (worker_7) : "])
def test_each_line_may_have_a_label(label: str) -> None:
    lines = f"{HEAD}{OWN}{FRAME}    assert state.size\n"
    log = "".join(label + line for line in lines.splitlines(keepends=True))
    assert sentence(log) == f"{WHO} asserts state.size, which does not hold{CALLED}"


def test_times_on_lines_of_their_own_are_passed_over() -> None:
    log = f"{OWN}2026-01-02 10:00:00\n{FRAME}2026-01-02 10:00:00\n    assert state.size, (\n2026-01-02 10:00:01\n"
    assert sentence(log) == f"{WHO} asserts state.size, which does not hold{CALLED}"


def test_the_error_that_announces_the_traceback_is_what_it_is_of() -> None:
    log = f"(A) 10:00:00.100 Engine ERROR: the start failed: 'set' object is not subscriptable\n{HEAD}{OWN}{FRAME}"
    found = diagnosed(log)
    assert sentence(log) == f"{WHO} or what it calls: a value of type set is not subscriptable"
    assert found.root is not None
    assert found.root.place.number == 1


def test_a_traceback_that_a_warning_announces_is_no_failure() -> None:
    log = f"2026-01-02 10:00:00 WARNING could not import x, falling back:\n{HEAD}{OWN}{FRAME}    assert x\n"
    assert diagnosed(log).verdict == "running"


def test_a_log_goes_on_behind_a_traceback() -> None:
    log = f"{OWN}{FRAME}    assert x\nINFO 01-02 10:00:00 [x.py:1] The next attempt begins\n"
    assert diagnosed(log).verdict == "running"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "[TensorRT-LLM][ERROR] Assertion failed: size == stored (plugin.cpp:12)",
            "Assertion failed: size == stored (plugin.cpp:12)",
        ),
        (
            "[02/03/2026-08:15:00] [TRT] [RANK 0] [E] The executor does not start",
            "The executor does not start",
        ),
    ],
)
def test_an_error_that_no_exception_is_is_quoted_whatever_frames_of_native_code_follow(line: str, said: str) -> None:
    frames = "".join(
        f"{at}       0x7f000000100{at} /usr/local/lib/libplugin.so.9(+0x1000) [0x7f0000001000]\n"
        f"{at + 1}            0x500000 PyObject_Call + 53\n"
        f"frame #{at}: c10::Error::Error(c10::SourceLocation) + 0x96 (0x7f0000002000 in /env/libc10.so)\n"
        for at in range(1, 9, 2)
    )
    assert sentence(f"{line}\n{frames}") == f"the program says: {said}"


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        (
            "self.bars.update(state.step)",
            "'NoneType' object has no attribute 'update'",
            f"{WHO} asks self.bars for update: self.bars is None",
        ),
        (
            "x.update(y.update(z))",
            "'NoneType' object has no attribute 'update'",
            f"{WHO} asks None for update: what should be there is not",
        ),
        (
            "for part in self.parts[0]:",
            "'NoneType' object is not iterable",
            f"{WHO} gets None where it needs a value: self.parts[0] is None",
        ),
    ],
)
def test_what_is_none_is_read_from_the_line_of_code(code: str, message: str, said: str) -> None:
    for head in (HEAD, ""):
        assert sentence(f"{head}{OWN}{FRAME}    {code}\n    ^^^^\nTypeError: {message}\n") == said


def test_an_assertion_whose_message_tells_nothing_is_said_by_its_condition() -> None:
    log = f"{HEAD}{OWN}{FRAME}    assert a.shape == (b,), (\n           ^^^\nAssertionError: (torch.Size([]), 0, 7)\n"
    assert (
        sentence(log) == f"{WHO} asserts a.shape == (b,), which does not hold{CALLED}: a.shape = torch.Size([]), 0, 7"
    )


@pytest.mark.parametrize(
    ("bar", "silent", "before", "verdict"),
    [
        ("66%|██████▌   | 20/30 [00:04<00:02,  5.00it/s]", None, 8, "running"),
        ("66%|██████▌   | 20/30 [00:04<00:02,  5.00it/s]", None, 60, "stalled"),
        ("66%|██████▌   | 20/30 [00:04<00:02,  5.00it/s]", True, 8, "stalled"),
        (" 0%|          | 0/35 [00:00<?, ?it/s]", None, 8, "stalled"),
    ],
)
def test_a_piece_of_a_log_that_ends_at_a_bar_that_moves_stands_still_for_nobody(
    bar: str, silent: bool | None, before: int, verdict: str
) -> None:
    log = f"{'INFO 01-02 10:00:00 [core.py:58] Initializing a V1 LLM engine' + chr(10)}" * before
    log += f"Capturing CUDA graphs (decode, FULL):  {bar}\n"
    evidence = Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))])
    assert diagnosis_of(evidence, FixContext({}), silent=silent).verdict == verdict


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        (["2/4 [00:20", "3/4 [00:31"], "running"),
        (["1/4 [00:11", "2/4 [00:20", "3/4 [00:31", "3/4 [00:31"], "running"),
        (["2/4 [00:20", "3/4 [00:31", "3/4 [09:40"], "stalled"),
        (["2/4 [00:20", "3/4 [09:40"], "stalled"),
        (["0/4 [00:00", "1/4 [00:11"], "stalled"),
        (["3/4 [00:31"], "stalled"),
    ],
)
def test_a_bar_that_advances_from_line_to_line_at_an_even_pace_is_running(states: list[str], verdict: str) -> None:
    bars = [
        f"Loading safetensors checkpoint shards:  {25 * int(one[0])}% Completed | {one}<00:10,  9.9s/it]\n"
        for one in states
    ]
    log = "INFO 01-02 10:00:00 [gpu_model_runner.py:58] Starting to load model /m/rose...\n" * 60 + "".join(bars)
    evidence = Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))])
    found = diagnosis_of(evidence, FixContext({}), silent=None)
    assert found.verdict == verdict
    assert diagnosis_of(evidence, FixContext({}), silent=True).verdict == "stalled"
    assert not found.findings or found.findings[0].symptom.id == "model-load-stuck"


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ("Processed prompts:   0%|    | 0/4 [00:00<?, ?it/s]\nx.py:1: UserWarning: w\n", "stalled"),
        ("Processed prompts:   0%|    | 0/4 [00:00<?, ?it/s]\nProcessed prompts: 100%|███| 4/4 [00:09<\n", "running"),
        ("Train:  67%|███| 20/30 [31:21<13:11, 79.11s/it][INFO:swift] Saving model checkpoint to /o/c-20\n", "running"),
        ("[INFO:swift] Saving model checkpoint to /o/c-20\n", "stalled"),
    ],
)
def test_what_moved_on_does_not_wait(lines: str, verdict: str) -> None:
    log = f"INFO 01-02 10:00:00 [core.py:58] Initializing a V1 LLM engine\n{lines}"
    evidence = Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))])
    assert diagnosis_of(evidence, FixContext({}), silent=None).verdict == verdict


@pytest.mark.parametrize(
    "line",
    [
        "{'eps': 1, 'objective/kl': 10.5, 'loss/policy_avg': 0.0009, 'lr': 2.06e-06, 'episode': 816, 'epoch': 0.91}",
        "[2025-05-07 09:50:03] Decode batch. #running-req: 1, #token: 179, token usage: 0.00, #queue-req: 0",
    ],
)
def test_steps_and_requests_alone_show_a_run(line: str) -> None:
    found = diagnosed(f"{line}\n{line}\n")
    assert (found.verdict, found.blank) == ("running", False)


def test_a_traceback_without_a_header_may_be_set_in_as_a_whole() -> None:
    lines = (
        f"{OWN}{FRAME}    raise ValueError(\n      ...<2 lines>...\n    )\nValueError: The group 'tp' is not there\n"
    )
    log = "".join(f"  {line}" for line in lines.splitlines(keepends=True))
    assert sentence(log) == f"{WHO} says: The group 'tp' is not there"


def test_a_line_of_code_that_begins_as_an_exception_does_is_none() -> None:
    assert diagnosed("    ValueError: if the mask is too long\n").verdict == "running"
    assert (
        diagnosed(f"{OWN}{FRAME}        ValueError: if it is too long\nINFO 01-02 10:00:00 [x.py:1] on\n").root is None
    )


def test_where_all_frames_only_hand_on_nobody_is_named() -> None:
    torch = (
        '  File "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 9, in __getattr__\n    x\n'
    )
    log = f"{HEAD}{torch}AttributeError: 'Odd' object has no attribute 'y'\n"
    assert sentence(log) == "the program asks an object of Odd for y, which it does not have"


def test_the_line_of_code_is_not_of_a_frame_that_only_called_it() -> None:
    library = '  File "/usr/lib/python3.12/json/decoder.py", line 9, in decode\n    x.update(1)\n'
    found = sentence(
        f"{HEAD}{OWN}{FRAME}    decode(y)\n{library}AttributeError: 'NoneType' object has no attribute 'update'\n"
    )
    assert found == f"{WHO} asks None for update: what should be there is not"


@pytest.mark.parametrize(
    ("ended", "silent", "verdict"),
    [(None, None, "failed"), (None, False, "running"), (True, False, "failed"), (None, True, "failed")],
)
def test_a_log_that_is_being_written_may_still_get_the_rest_of_a_traceback(
    ended: bool | None, silent: bool | None, verdict: str
) -> None:
    evidence = Scanner(()).scan([("run.log", io.BytesIO(f"{HEAD}{OWN}{FRAME}    assert x\n".encode()))])
    assert diagnosis_of(evidence, FixContext({}), ended=ended, silent=silent).verdict == verdict


def test_a_cut_line_of_code_and_text_below_it_are_no_error() -> None:
    """`raise errors.` is no whole name, as where the line was cut off."""
    assert diagnosed(HEAD + OWN + FRAME + "    raise errors.\nsomething else\n").verdict == "running"


@pytest.mark.parametrize(
    ("code", "end"),
    [(f"    assert {'-' * 460}x\n", "AssertionError\n"), (f"    next({'-' * 460}x)\n", "StopIteration\n")],
    ids=["assert", "next"],
)
def test_code_that_is_nested_too_deeply_to_be_read(code: str, end: str) -> None:
    found = diagnosed(HEAD + FRAME + code + end)
    assert (found.verdict, found.root is not None) == ("failed", True)


def test_an_exception_that_ray_names_above_its_frames_is_told_with_the_innermost() -> None:
    log = (
        "ray.exceptions.RayTaskError(NotImplementedError): ray::TaskRunner.run() (pid=29, ip=10.0.0.1)\n"
        "           ^^^^^^^^^^^^^^\n"
        f"{OWN}"
        '  File "/app/fork/verl/workers/reward_manager/naive.py", line 89, in __call__\n'
    )
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert found.root.explanation is not None
    said = "verl (verl/workers/reward_manager/naive.py:89) raises NotImplementedError; what it says is cut off"
    assert str(found.root.explanation.sentence) == said


def test_an_actor_that_died_as_it_was_made_is_told_with_the_innermost_frame() -> None:
    log = (
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
        "ray::RolloutManager.__init__() (pid=91, ip=10.0.0.1)\n"
        '  File "/app/slime/utils/http_utils.py", line 124, in init_http_client\n'
        "    count = args.concurrency * args.gpus\n"
    )
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert found.root.explanation is not None
    said = (
        "the log ends within a traceback, at /app/slime/utils/http_utils.py:124: count = args.concurrency * args.gpus"
    )
    assert str(found.root.explanation.sentence) == said
    assert str(found.root.explanation.often).endswith("of another type: args.concurrency, args.gpus")
    assert "slime" not in found.root.explanation.search


def test_settings_that_a_cut_line_calculates_with_are_named() -> None:
    root = diagnosed(f"{HEAD}{FRAME}    size = self.args.batch // config.world * count\n").root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.often).endswith("of another type: self.args.batch, config.world")
    plain = diagnosed(f"{HEAD}{FRAME}    size = batch // world\n").root
    assert plain is not None
    assert plain.explanation is None or plain.explanation.often is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Encountered exception while importing beds: cannot import name 'Bed' from 'garden.beds' (unknown)", True),
        ("Loading failed because of the following error: No module named 'garden.beds'", True),
        ("WARNING 10-01 10:00:00 [a.py:3] Failed to load the plugin: No module named 'garden.beds'", False),
    ],
)
def test_a_message_above_a_cut_traceback_says_more_than_what_a_logger_says(line: str, told: bool) -> None:
    log = f"{line}\n2026-01-10 10:00:00,100 - app - ERROR - a.py:67 - opening the garden failed\n{HEAD}{OWN}{FRAME}"
    root = diagnosed(log).root
    assert root is not None
    assert root.place.number == (1 if told else 2)
    assert root.explanation is not None
    assert ("or what it calls" in str(root.explanation.sentence)) is told
    alone = diagnosed(log.partition(HEAD)[0]).root
    assert alone is not None
    assert alone.place.number == (1 if told else 2)


def test_a_line_that_raises_is_nobodys_message() -> None:
    log = (
        '(EngineCore pid=7)   File "/opt/venv/lib/python3.12/site-packages/garden/core.py", line 785, in start\n'
        '(EngineCore pid=7)     raise RuntimeError("The garden failed to open. "\n'
        "(EngineCore pid=7) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert (found.root.id, found.root.place.number) == ("engine-core-failed", 3)


def test_the_line_that_raises_in_a_shortened_traceback_is_the_root() -> None:
    log = (
        "garden/engine/worker.py:71   self.beds = make_beds(size)\n"
        'garden/engine/beds.py:12     raise ValueError("no soil is left")\n'
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert found.root.place.number == 2
    assert found.root.explanation is not None
    assert str(found.root.explanation.sentence) == "garden/engine/beds.py:12 says: no soil is left"


def test_a_line_that_points_elsewhere_is_not_the_root_and_has_no_threads() -> None:
    elsewhere = "CRITICAL 04-09 10:29:26 [pool.py:49] The pool shuts down. See stack trace above for the root cause.\n"
    error = "CRITICAL 04-09 10:29:27 [pool.py:51] The spade failed to dig\n"
    for log in (elsewhere + error, error + elsewhere):
        found = diagnosed(log).root
        assert found is not None
        assert "spade" in found.place.text
    alone = diagnosed(elsewhere).root
    assert alone is not None
    log = "RuntimeError: Engine core initialization failed. See root cause above.\n"
    wrapper = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({})).root
    assert wrapper is not None
    assert (wrapper.id, wrapper.threads) == ("engine-core-failed", ())


def test_a_warning_of_what_ran_short_explains_a_line_that_only_tells_of_a_failure() -> None:
    def told(pid: int, words: str) -> str:
        log = (
            f"Adding: 88%|███████████████████ | 9/12 [00:06<00:00, 7.1it/s](EngineCore_DP0 pid={pid}) [pool][WARNING]"
            f"[2026-01-10 10:00:00][pool.py:16] {words}\n"
            "(EngineCore_DP0 pid=10) ERROR 01-10 10:00:00 [core.py:720] EngineCore encountered a fatal error.\n"
        )
        found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
        assert found.root is not None
        assert found.root.id == "engine-core-failed"
        return str(found.root.explanation.sentence) if found.root.explanation is not None else ""

    assert told(10, "free_beds()=9.0 < wanted=30").endswith("in line 1: free_beds()=9.0 < wanted=30")
    assert told(10, "the beds are insufficient").endswith("in line 1: the beds are insufficient")
    assert told(11, "free_beds()=9.0 < wanted=30") == ""
    assert told(10, "the garden is green") == ""


def test_the_assertion_is_read_from_frames_below_its_exception() -> None:
    label = "ERROR 05-29 07:34:21 [core.py:491] "
    frames = '  File "/workspace/vllm/vllm/v1/core/sched/scheduler.py", line 386, in schedule\n'
    log = f"{label}AssertionError\n{label}{frames}{label}    assert num_new_tokens > 0\n"
    assert sentence(log) == (
        "/workspace/vllm/vllm/v1/core/sched/scheduler.py:386 asserts num_new_tokens > 0, which does not hold"
    )


@pytest.mark.parametrize(
    ("before", "behind"), [("**", "**"), ("> **", "**"), ("", "`\n`node1:81:81 [0] NCCL INFO Bootstrap : Using eth0")]
)
def test_the_marks_of_a_web_page_are_no_part_of_an_exception(before: str, behind: str) -> None:
    log = f"{HEAD}{OWN}{FRAME}    plant()\n{before}ValueError: There are no rows left{behind}\n\n"
    assert sentence(f"{log}Process finished with exit code 1\n") == f"{WHO} says: There are no rows left"


def test_a_name_at_which_the_log_ends_tells_less_than_the_exception_before_it() -> None:
    log = (
        f"{HEAD}{OWN}{FRAME}    plant()\nValueError: There are no rows left\n\n"
        f"During handling of the above exception, another exception occurred:\n\n{HEAD}{OWN}{FRAME}    dig()\n"
    )
    assert sentence(f"{log}KeyErr") == f"{WHO} says: There are no rows left"
    assert "There are no beds" in sentence(f"{log}PlantError: There are no beds left\n")


def test_an_assertion_of_a_value_of_the_command_line_tells_that_it_is_not_given() -> None:
    """The exception stands above the header of the traceback that it ended."""
    code = "    assert args.bed_length is not None\n"
    found = diagnosed(f"AssertionError\n{HEAD}{OWN}{FRAME}{code}").root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence).startswith(f"{WHO} asserts args.bed_length is not None")
    assert str(found.explanation.often).startswith("nothing has set bed_length")
    other = diagnosed(f"AssertionError\n{HEAD}{OWN}{FRAME}    assert bed is not None\n").root
    assert other is not None
    assert other.explanation is not None
    assert other.explanation.often is None


def test_a_traceback_that_breaks_off_is_a_failure_whatever_follows() -> None:
    code = "    bed = self._beds[number]\n          ~~~~~~~~~~^^^^^^^^\n"
    said = f"{WHO} takes number from self._beds, which has no such key or position; the traceback ends there"
    assert sentence(f"{FRAME}{code}(Process-7 garden) Putting bed 4 back\n(Process-7 garden) Bed 4 was put back\n") == (
        said
    )
    assert diagnosed("(Process-7 garden) Putting bed 4 back\n").blank


@pytest.mark.parametrize(("level", "number"), [("INFO", 1), ("DEBUG", 3)])
def test_what_a_child_said_is_the_root_of_its_end(level: str, number: int) -> None:
    label = "2026-01-10 10:00:00,100 - __main__ - "
    end = "Received sigquit from a child process. It usually means the child failed."
    log = (
        f"{label}{level} - json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
        f"{label}INFO - \n"
        f"{label}INFO - [2026-01-10 10:00:00] {end}\n"
    )
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert found.root.place.number == number
    assert "sglang-child-failed" in [one.id for one in found.findings]


def test_log_that_ends_where_a_version_is_asked_for() -> None:
    code = '    require_version("trl>=0.8,<=0.9.6", "To fix: pip install trl>=0.8,<=0.9.6")\n'
    found = diagnosed(HEAD + OWN + FRAME + code)
    assert found.root is not None
    assert found.root.explanation is not None
    assert (
        str(found.root.explanation.sentence)
        == f"{WHO} needs trl >=0.8,<=0.9.6, and another release is installed, or none"
    )
    assert found.root.explanation.remedy == "pip install trl>=0.8,<=0.9.6"


def test_a_module_that_the_message_names_whole_is_searched_for_as_it_stands() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/env/lib/python3.12/site-packages/gardening/beds.py", line 4, in run\n'
        "    from soil.loam.base import Clod\nModuleNotFoundError: No module named 'soil.loam'\n"
    )
    found = diagnosed(log).root
    assert found is not None
    assert found.explanation is not None
    assert found.explanation.search.endswith("%27soil.loam%27")


def test_the_end_of_a_traceback_of_a_group_of_exceptions() -> None:
    log = (
        '    |   File "/srv/kt/operators/linear.py", line 351, in forward\n'
        "    |     return x.reshape(orig_shape)\n"
        "    |            ^^^^^^^^^^^^^^^^^^^^^\n"
        "    | RuntimeError: shape '[21, 64]' is invalid for input of size 21\n"
        "    +------------------------------------\n"
    )
    assert "x has 21 elements" in sentence(log)
    assert diagnosed("    | name | size |\n    | no error | 3 |\n").verdict == "running"


def test_a_warning_above_the_traceback_in_which_the_log_ends_was_not_survived() -> None:
    log = (
        "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'n4_81_0' has failed to shutdown the "
        "rendezvous 'a-1' due to an error of type RendezvousConnectionError.\n"
        f"{HEAD}{OWN}RuntimeError: Broken pipe\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
    )
    whole = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert whole.verdict != "failed"
    cut = f'{log}{HEAD}{OWN}  File "/opt/venv/lib/python3.9/site-packages/torch/'
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(cut.encode()))]), FixContext({}))
    assert found.verdict == "failed"
    assert found.root is not None
    assert found.root.id == "rendezvous-store-lost"


def test_frames_of_another_rank_are_not_those_of_the_exception_above_them() -> None:
    log = (
        "[rank1]: KeyError: 'sequence_parallel'\n"
        "[rank3]: Traceback (most recent call last):\n"
        '[rank3]:   File "/root/loader.py", line 174, in load\n'
        "[rank3]:     model = cls.from_pretrained(path)\n"
    )
    assert "loader.py" not in sentence(log)
