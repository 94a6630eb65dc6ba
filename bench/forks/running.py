"""`check` on one clone and one release, in a process of its own, so that a crash is seen as a crash.

`python -m bench.forks.running ROOT VERSION` is that process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.forks.clones import Clone
from patcher import api

_BENCH = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is compared with a label."""

    severity: str
    file: str
    line: int
    symbol: str


@dataclass(frozen=True, slots=True)
class Run:
    """One clone on one release of vLLM."""

    clone: Clone
    target: str
    seconds: float
    findings: tuple[Finding, ...] = ()
    refused: str = ""
    """The error that `check` ended with, in one sentence: no such release, for example."""
    crash: str = ""
    """The last line of a traceback, or how the process ended."""

    @property
    def breaks(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.severity == "break")

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many findings are break, guarded and optional."""
        counted = Counter(one.severity for one in self.findings)
        return counted["break"], counted["guarded"], counted["optional"]


def run(clone: Clone, target: str, limit: float) -> Run:
    """Check `clone` on vLLM `target`, for `limit` seconds at most."""
    command = [sys.executable, "-m", "bench.forks.running", str(clone.root), target]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_BENCH, timeout=limit)
    except subprocess.TimeoutExpired:
        return Run(clone, target, limit, crash=f"not done after {limit:g} s")
    seconds = time.monotonic() - start
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return Run(clone, target, seconds, crash=lines[-1])
    answer = json.loads(done.stdout)
    return Run(clone, target, seconds, tuple(Finding(*row) for row in answer["findings"]), answer["refused"])


def _main(root: str, version: str) -> None:
    findings: list[tuple[str, str, int, str]] = []
    refused = ""
    try:
        done = api.check(root, against=[f"vllm=={version}"])
        findings = [(one.severity, one.file, one.line, one.symbol) for one in done.findings]
    except api.UkyError as error:
        refused = str(error)
    sys.stdout.write(json.dumps({"findings": findings, "refused": refused}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
