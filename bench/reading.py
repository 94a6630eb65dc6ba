"""How fast `diagnose` reads, with every symptom there is, and what memory it takes for a log without end."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ahocorasick_rs import BytesAhoCorasick, Implementation

from bench.clock import Times, Trial, in_turn
from bench.logs import begun, steps, write
from bench.measures import Amount, Figure
from bench.trees import UKY_PATCH
from patcher.diagnose.scanner import Scanner
from patcher.records.symptom_parse import load_symptoms

_SIZE = 100_000_000
_PIPED = 1_000_000_000


def reading(folder: Path, rounds: int) -> Iterator[Figure | Amount]:
    """Against the automaton of all its words alone, and from a pipe. CPU time, as it is one core's that counts."""
    log = folder / "train.log"
    write(log, _SIZE)
    scanner = Scanner(load_symptoms())
    automaton = BytesAhoCorasick([word.encode() for word in scanner.words], implementation=Implementation.DFA)
    scanned, searched = [], []
    for _ in range(max(rounds // 2, 3)):
        scanned.append(_seconds(log, lambda stream: scanner.scan([("train.log", stream)])))
        searched.append(_seconds(log, lambda stream: _search(automaton, stream)))
    ours = Times(tuple(scanned))
    yield Figure(f"diagnose 100 MB / search for its {len(scanner.words)} words", ours, Times(tuple(searched)), 3)
    name = f"the same, {_SIZE / 1e6 / min(scanned):.0f} MB/s: CPU time of 1 GB"
    yield Amount(name, min(scanned) * 1e9 / _SIZE, "s", 1e9 / 150e6, ceiling=10)
    yield _every_line(folder / "failures.log")
    small = folder / "small.log"
    small.write_text('Traceback (most recent call last):\n  File "/app/run.py", line 3, in main\nValueError: odd\n')
    (short,) = in_turn([Trial([UKY_PATCH, "diagnose", str(small)], exits=frozenset({1}))], rounds)
    yield Amount("diagnose of a log of 3 lines", short.median, "s", 0.35)
    yield Amount("diagnose of 1 GB from a pipe: peak memory", _piped(), "MB", 150)


def _every_line(log: Path) -> Amount:
    """CPU time of 1 GB in which each line shows one of ten failures, with numbers that differ from line to line."""
    symptoms = load_symptoms()
    shown = [one.log.splitlines()[one.line - 1] for each in symptoms for one in each.examples if one.line]
    lines = shown[:: len(shown) // 10][:10]
    with log.open("w") as stream:
        for number in range(200_000):
            stream.write(f"(WorkerDict pid={1000 + number * 7919 % 9000}) {number} {lines[number % 10]}\n")
    size, scanner = log.stat().st_size, Scanner(symptoms)
    took = min(_seconds(log, lambda opened: scanner.scan([("failures.log", opened)])) for _ in range(3))
    name = f"diagnose, each line one of ten failures, {size / 1e6 / took:.0f} MB/s: CPU time of 1 GB"
    return Amount(name, took * 1e9 / size, "s", 1e9 / 40e6)


def _seconds(log: Path, read: Callable[[BinaryIO], object]) -> float:
    with log.open("rb") as stream:
        began = time.process_time()
        read(stream)
        return time.process_time() - began


def _search(automaton: BytesAhoCorasick, stream: BinaryIO) -> None:
    """Lower the case of a log and look for the words, block by block, and do nothing with them."""
    while block := stream.read(1 << 20):
        automaton.find_matches_as_indexes(block.lower(), overlapping=True)


def _piped() -> float:
    """Megabytes that a diagnosis takes at most. Raises SystemExit where it fails."""
    piece = "".join(steps(1, 400)).encode()
    with subprocess.Popen([UKY_PATCH, "diagnose", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(begun().encode())
        for _ in range(_PIPED // len(piece)):
            process.stdin.write(piece)
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"uky-patch diagnose -: exit code {process.returncode}")
    return used.ru_maxrss / 1024
