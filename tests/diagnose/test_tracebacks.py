"""Tracebacks: which exception of a chain, of a group, of one speaker among others."""

from __future__ import annotations

import io

import pytest

from patcher.diagnose.log_stream import blocks
from patcher.diagnose.tracebacks import Chain, follow_traceback
from tests.diagnose.diagnosed import TRACEBACK

DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def walked(log: str) -> Chain:
    (block,) = blocks(io.BytesIO(log.encode()))
    at = log.index("Traceback (most recent call last)")
    start = log.rfind("\n", 0, at) + 1
    return follow_traceback(block, len(log[:start].encode()), "log", log[:start].count("\n") + 1)


def root(log: str) -> tuple[str, int]:
    (one,) = [one for one in walked(log).exceptions if not one.chained]
    return one.place.text, one.place.number


@pytest.mark.parametrize(
    ("log", "text", "number"),
    [
        (f"{TRACEBACK}ValueError: x\n", "ValueError: x", 4),
        (f"{TRACEBACK}AssertionError\n", "AssertionError", 4),
        (f"{TRACEBACK}mine.Odd: x\n", "mine.Odd: x", 4),
        (f"{TRACEBACK}mine.<locals>.Odd: x\n", "mine.<locals>.Odd: x", 4),
        (
            'app ERROR:    Traceback (most recent call last):\n    File "/app/a.py", line 3, in run\n      y()\n'
            "  TypeError: y() takes 1\n  During handling of it\n",
            "  TypeError: y() takes 1",
            4,
        ),
        (f"{TRACEBACK}ValueError: a\nmore of it: b\n", "ValueError: a", 4),
        (
            'Traceback (most recent call last):\n  File "/app/a.py", line 3, in run\n'
            "srun: error: node7: task 0: Exited with exit code 1\n    y()\nsrun: Terminating job step 81.1\n"
            '  File "/app/b.py", line 4, in y\n    z()\nValueError: x\n',
            "ValueError: x",
            8,
        ),
        (f"{TRACEBACK}.ValidationError: 2 of them\n", ".ValidationError: 2 of them", 4),
        (f"{TRACEBACK}ValueError: inner\n{DIRECT}{TRACEBACK}RuntimeError: outer\n", "ValueError: inner", 4),
        (f"{TRACEBACK}KeyError: 1\n{HANDLING}{TRACEBACK}RuntimeError: 2\n", "RuntimeError: 2", 11),
        (f"{TRACEBACK}KeyError: 1\n{HANDLING}{TRACEBACK}SystemExit: 1\n", "KeyError: 1", 4),
        (
            f'{TRACEBACK}KeyError: 1\n{HANDLING}{TRACEBACK}  File "a.py", line 9, in _cleanup\nBufferError: 2\n',
            "KeyError: 1",
            4,
        ),
        (
            f"{TRACEBACK}KeyError: 1\n{HANDLING}{TRACEBACK}OSError: 2\n{DIRECT}{TRACEBACK}RuntimeError: 3\n",
            "OSError: 2",
            11,
        ),
        (
            f"{TRACEBACK}ray.exceptions.RayTaskError(KeyError): \x1b[36mray::A.run()\x1b[39m (pid=1, ip=1.2.3.4)\n"
            f'  File "/app/verl/a.py", line 3, in run\n    x["y"]\nKeyError: \'y\'\n',
            "KeyError: 'y'",
            7,
        ),
        (
            f"{TRACEBACK}KeyError: Caught KeyError in DataLoader worker process 0.\n"
            "Original Traceback (most recent call last):\n  File \"/app/d.py\", line 3, in get\n    y\nKeyError: 'q'\n",
            "KeyError: 'q'",
            8,
        ),
    ],
)
def test_the_exception_that_is_nearest_to_the_root(log: str, text: str, number: int) -> None:
    assert root(log) == (text, number)


def labelled(label: str, log: str) -> str:
    return "".join(f"{label}{line}\n" for line in log.splitlines())


@pytest.mark.parametrize(
    "label",
    [
        "(EngineCore pid=71) ERROR 11-20 21:02:31 [core.py:1108] ",
        "2026-01-11 10:00:00,123 ERROR ",
        "[rank3]: ",
        "3: ",
        "[1,3]<stderr>:",
        "trainer-1  | ",
        "\x1b[36m(WorkerDict pid=12, ip=10.0.0.2)\x1b[0m ",
        "\x1b[36m(vLLMHttpServer pid=9)\x1b[0m (EngineCore pid=71) ERROR 11-20 21:02:31 [core.py:1108] ",
        "    | ",
        "【训练】 ",
    ],
)
def test_a_label_on_each_line(label: str) -> None:
    log = labelled(label, f"{TRACEBACK}ValueError: inner\n{DIRECT}{TRACEBACK}RuntimeError: outer\n")
    text, number = root(log)
    assert (text.endswith("ValueError: inner"), number) == (True, 4)


def test_a_time_in_the_label_may_pass() -> None:
    lines = f"{TRACEBACK}ValueError: x\n".splitlines()
    log = "".join(f"2026-01-11 10:00:0{at},{at}23 ERROR {line}\n" for at, line in enumerate(lines))
    assert root(log) == ("ValueError: x", 4)


def test_a_label_on_the_header_alone() -> None:
    assert root(f"2026-01-11 10:00:00,123 ERROR run failed: {TRACEBACK}ValueError: x\n")[1] == 4


def test_lines_of_other_speakers_are_passed_over() -> None:
    one, other = TRACEBACK + "ValueError: 1\n", TRACEBACK + "KeyError: 2\n"
    log = "".join(
        f"(A pid=1) {own}\n(A pid=2) {others}\n[rank1]: {others}\n"
        for own, others in zip(one.splitlines(), other.splitlines(), strict=True)
    )
    assert root(log) == ("ValueError: 1", 10)
    ranks = "".join(
        f"[rank0]: {own}\n[rank1]: {others}\n" for own, others in zip(one.splitlines(), other.splitlines(), strict=True)
    )
    assert root(ranks) == ("ValueError: 1", 7)


def test_a_group_is_known_by_what_it_holds() -> None:
    log = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "a.py", line 1, in <module>\n  |     run()\n'
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        '    | Traceback (most recent call last):\n    |   File "a.py", line 2, in g\n    |     raise x\n'
        "    | ValueError: sub\n    +------------------------------------\n"
    )
    (group,) = walked(log).exceptions
    assert (group.name, group.nature) == ("ExceptionGroup", "wrapper")
    at = log.index("    | Traceback")
    assert root(log[at:]) == ("ValueError: sub", 4)


def test_frames_of_own_code_are_told_before_those_of_libraries() -> None:
    frames = "".join(
        f'  File "/venv/lib/python3.12/site-packages/ray/{at}.py", line 3, in f\n    g()\n' for at in range(20)
    )
    log = (
        'Traceback (most recent call last):\n  File "/home/user/verl/verl/trainer.py", line 9, in fit\n    go()\n'
        f"{frames}ValueError: x\n"
    )
    (one,) = walked(log).exceptions
    told = [place.text for place in one.frames]
    assert '  File "/home/user/verl/verl/trainer.py", line 9, in fit' in told
    assert '  File "/venv/lib/python3.12/site-packages/ray/19.py", line 3, in f' in told
    assert told[-1] == "    g()"  # The line of code below the innermost frame.
    assert len(told) <= 8


def test_a_header_without_an_end_and_a_second_traceback() -> None:
    assert walked("Traceback (most recent call last):\n" + "ready\n" * 3000).exceptions == ()
    chain = walked(f"{TRACEBACK}ValueError: 1\nready\n{TRACEBACK}KeyError: 2\n")
    assert [one.name for one in chain.exceptions] == ["ValueError"]
