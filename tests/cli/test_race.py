"""Many runs of the real commands on one tree, some of them killed: no corruption, no lost ledger, no hang."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SERVER, Uky
from tests.lanes import ALL_CASES


def start(tree: Path, records: Path, *arguments: str) -> subprocess.Popen[bytes]:
    shared = ["--root", str(tree), "--patches", str(records), "--assume", "vllm==2.1", "--format", "json"]
    command = [sys.executable, "-m", "patcher", *shared, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def all_or_none(text: str) -> bool:
    return text == SERVER or ("# Uky[log-flag]" in text and "# Uky[utils-moved]" in text)


@pytest.mark.slow
def test_sixteen_processes(uky: Uky, tree: Path, records: Path) -> None:
    kinds = (("apply",), ("revert",), ("status",), ("apply",))
    running = [start(tree, records, *kinds[number % 4]) for number in range(16)]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode in (0, 1), err.decode()
        assert b"Traceback" not in err
        outcomes = {r["outcome"] for r in json.loads(out)["records"] if r["id"] in ("log-flag", "utils-moved")}
        assert len(outcomes) <= 1, out.decode()
    assert all_or_none((tree / "verl/server.py").read_text())
    assert uky("apply").code == 0
    assert uky("status").code == 0
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert sorted(path.name for path in tree.iterdir()) == ["verl"]


@pytest.mark.slow
def test_kills_at_random_moments(uky: Uky, tree: Path, records: Path) -> None:
    """Two hundred with UKY_PATCH_ALL_CASES=1."""
    moments = random.Random(0)
    started = time.monotonic()
    start(tree, records, "status").communicate()
    usual = time.monotonic() - started
    for number in range(200 if ALL_CASES else 30):
        process = start(tree, records, ("apply", "revert")[number % 2])
        time.sleep(moments.uniform(0.3, 1.3) * usual)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        text = (tree / "verl/server.py").read_text()
        assert all_or_none(text), text
        if number % 10 == 9:
            status = uky("status")
            assert status.code in (0, 1)
            assert set(status.outcomes.values()) in ({"applied"}, {"pending"})
    assert uky("apply").code == 0
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert sorted(path.name for path in tree.iterdir()) == ["verl"]
