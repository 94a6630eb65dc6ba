"""Logs as they come: any bytes, in any pieces, with whatever loggers, terminals and Ray put into them."""

from __future__ import annotations

import io
import tracemalloc
from typing import BinaryIO, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patcher.diagnose.diagnosis import Diagnosis
from tests.diagnose.diagnosed import TRACEBACK, diagnosed, healthy, root, scanner, unfinished

MEMORY = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"
PIECES = [
    "ready\n",
    "漢字 🙂 \ufffd\n",
    "\rLoading:  10%|#  | 1/10 [00:01<00:09]",
    "\r\n",
    "\x1b[36m(WorkerDict pid=7)\x1b[0m init\n",
    "engine is gone\n",
    MEMORY,
    "CUDA out \x1b[31mof\x1b[0m memory\n",
    f"{TRACEBACK}ValueError: 3 rows\n",
    f"{TRACEBACK}KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
    f"{TRACEBACK}OSError: 2\n",
    '(A pid=1) Traceback (most recent call last):\n(B pid=2) ready\n(A pid=1)   File "a.py", line 3, in f\n'
    "(B pid=2) ready\n(A pid=1) ValueError: 1\n",
    "Training Progress:   0%|          | 0/9 [00:00<?, ?it/s]\n",
    "step:1 - actor/pg_loss:0.1 - x:1\n",
    "step:2 - actor/pg_loss:nan - x:2\n",
    "step:3 - actor/pg_loss:nan - x:3\n",
    "run.sh: line 3: 7 Killed python x\n",
    "word " * 5000 + "\n",
]
LOG = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


class Dribble(io.BytesIO):
    """Gives at most so many bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self._most = most

    def read(self, count: int | None = -1, /) -> bytes:
        return super().read(min(count if count is not None and count >= 0 else self._most, self._most))


def gist(found: Diagnosis) -> object:
    return (
        found.verdict,
        found.phase,
        found.step,
        found.lines,
        [(one.id, one.role, one.place.number, one.place.text, one.count) for one in found.findings],
        [(place.number, place.text) for place in found.telling],
    )


@settings(max_examples=60, deadline=None)
@given(log=LOG, size=st.sampled_from([400, 1000, 20_000]))
def test_the_diagnosis_does_not_depend_on_the_blocks(log: str, size: int) -> None:
    content = log.encode()
    assert gist(diagnosed(content, size=size)) == gist(diagnosed(content))


@settings(max_examples=30, deadline=None)
@given(log=LOG, most=st.sampled_from([1, 3, 1000]))
def test_the_diagnosis_does_not_depend_on_how_the_bytes_arrive(log: str, most: int) -> None:
    stream = cast("BinaryIO", Dribble(log.encode(), most))
    evidence = scanner().scan([("run.log", stream)])
    assert [hit.first.number for hit in evidence.hits] == [
        hit.first.number for hit in scanner().scan([("run.log", io.BytesIO(log.encode()))]).hits
    ]


@settings(max_examples=60, deadline=None)
@given(
    log=LOG.filter(lambda log: "(A pid=1)" not in log),
    prefix=st.sampled_from(
        ["\x1b[36m(WorkerDict pid=12, ip=10.0.0.2)\x1b[0m ", "(raylet) ", "[rank0]: ", "\x1b[1m\x1b[33m"]
    ),
)
def test_a_prefix_on_each_line_does_not_change_the_root(log: str, prefix: str) -> None:
    lines = log.replace("\r\n", "\n").split("\n")
    # A prefix stands before a line, and not before what a bar writes over itself behind `\r`.
    assume(not any("Progress" in line or "\r" in line for line in lines))
    plain = diagnosed("\n".join(lines))
    assert root(diagnosed("\n".join(f"{prefix}{line}" for line in lines))) == root(plain)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_any_byte_order_is_read(encoding: str) -> None:
    found = diagnosed(("訓練を開始しました and so on\n" * 3 + "ready to go\n" * 40 + MEMORY).encode(encoding))
    assert root(found) == ("memory", 44)


def test_invalid_bytes_and_cut_letters_are_no_obstacle() -> None:
    content = b"\xff\xfe\x00broken \x80\xc3\n" + "漢".encode()[:2] + b"\n" + MEMORY.encode() + b"\xe6\xbc"
    assert root(diagnosed(b"x\n" + content)) == ("memory", 4)


def test_windows_line_ends_and_states_of_bars_are_lines() -> None:
    assert root(diagnosed(MEMORY.join(["ready\n"] * 3).replace("\n", "\r\n"))) == ("memory", 2)
    bar = "".join(f"\rLoading: {at}%|#  | {at}/100 [00:01<00:02]" for at in range(100))
    assert root(diagnosed(f"ready\n{bar}\r{MEMORY}")) == ("memory", 2)


def test_nuls_of_a_machine_that_went_down_are_left_out() -> None:
    assert root(diagnosed(b"ready\n" + b"\x00" * 3_000_000 + MEMORY.encode())) == ("memory", 2)


def test_a_colour_in_the_middle_of_a_word_hides_nothing() -> None:
    assert root(diagnosed("CUDA \x1b[1m\x1b[31mout\x1b[0m of mem\x1b[32mory\x1b[39m\n")) == ("memory", 1)
    assert root(diagnosed("\x1b]8;;http://x\x07CUDA out of\x1b]8;;\x07 memory\n")) == ("memory", 1)


def test_a_line_of_megabytes_is_read_and_its_end_is_quoted() -> None:
    found = diagnosed("word " * 2_000_000 + MEMORY)
    assert root(found) == ("memory", 1)
    found = diagnosed(b"x" * 5_000_000 + b" CUDA out of memory " + b"y" * 5_000_000)
    assert root(found) == ("memory", 1)


def test_a_million_tracebacks_are_read_in_bounded_memory() -> None:
    one = f"{TRACEBACK}ValueError: request %d\n".encode()
    log = b"".join(one.replace(b"%d", str(at).encode()) for at in range(60_000)) + MEMORY.encode()
    tracemalloc.start()
    found = diagnosed(log)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert root(found) == ("memory", 60_000 * 4 + 1)
    assert peak < 40_000_000


def test_a_word_that_is_everywhere_is_still_found_where_it_matters() -> None:
    often = "waiting for memory: CUDA out of memory, retried\n" * 40_000
    found = diagnosed(unfinished() + often + "step:1 - x:1\n" + MEMORY)
    assert root(found) == ("memory", (unfinished() + often).count("\n") + 2)


def test_ray_counts_of_repeated_lines_are_taken_off() -> None:
    log = (
        "(A pid=1) Traceback (most recent call last):\x1b[32m [repeated 7x across cluster]\x1b[0m\n"
        '(A pid=1)   File "a.py", line 3, in f\x1b[32m [repeated 7x across cluster]\x1b[0m\n'
        "(A pid=1) KeyError: 'x'\x1b[32m [repeated 7x across cluster] (Ray deduplicates logs by default. Set "
        "RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io/x for more options.)\x1b[0m\n"
    )
    found = diagnosed(log)
    assert root(found) == ("unknown", 3)
    assert found.root is not None
    assert found.root.place.text == "KeyError: 'x'"


@pytest.mark.parametrize(
    "surround",
    [
        lambda line: f"2026-01-11 10:00:00,123 {line}",
        lambda line: f"2026-01-11T10:00:00.123456789Z stderr F {line}",
        lambda line: f"trainer-1  | {line}",
        lambda line: f"\x1b[36m(TaskRunner pid=9132)\x1b[0m {line}",
        lambda line: f"0: {line}",
    ],
)
def test_phases_and_steps_are_told_behind_any_label(surround: object) -> None:
    assert callable(surround)
    lines = [line.partition("\x1b[0m ")[2] or line for line in healthy().splitlines()]
    found = diagnosed("\n".join(surround(line) for line in lines))
    assert (found.verdict, found.step, found.steps) == ("ok", 2, 2)
    assert {"dataset", "resource-pool", "loop"} <= set(found.spans)


def test_phases_take_the_times_that_the_log_tells() -> None:
    spans = diagnosed(healthy()).spans
    assert [(phase, round(seconds)) for phase, seconds in spans.items()] == [
        ("config", 0),
        ("dataset", 0),
        ("resource-pool", 30),
        ("actor", 8),
        ("rollout", 54),
        ("loop", 20),
    ]
