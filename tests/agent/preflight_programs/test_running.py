"""Packages that hang, crash, shout, lie or leave somebody behind: each is told, and stops nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from patcher.preflight.agent.run_programs import Program
from tests.agent.preflight_programs.standins import ENGINES, TORCH, alive, told, tree

PLACES = Program(["places"], ["git_ignore.py", "data"], {"data": None, "model": None, "usual": {}})


def test_a_hanging_import_is_told_with_its_line_and_stops_nothing_else(tmp_path: Path) -> None:
    root = tree(tmp_path, torch=TORCH, vllm="import time\n\n\ndef wait():\n    time.sleep(3600)\n\n\nwait()\n")
    started = time.monotonic()
    found = told(root, ENGINES, PLACES, budget=3)
    assert time.monotonic() - started < 5
    assert [found.status(name) for name in ("torch", "gpus", "vllm", "data")] == ["ok", "warn", "fail", "warn"]
    assert found.said("vllm") == "hangs: nothing done any more after 3 s, at vllm/__init__.py:5 in wait"


def test_an_import_that_computes_is_slow_and_does_not_hang(tmp_path: Path) -> None:
    root = tree(tmp_path, torch=TORCH, vllm="while True:\n    pass\n")
    found = told(root, ENGINES, budget=3)
    assert found.status("vllm") == "warn"
    assert found.said("vllm").startswith("slow: still at work after 3 s, at vllm/__init__.py:")


def test_waiting_in_the_standard_library_is_told_with_its_caller(tmp_path: Path) -> None:
    root = tree(tmp_path, torch=TORCH, vllm="import subprocess\nsubprocess.run(['sleep', '3600'])\n")
    assert told(root, ENGINES, budget=3).said("vllm").endswith(" < vllm/__init__.py:2 in <module>")


def test_a_crash_is_told_with_its_line(tmp_path: Path) -> None:
    root = tree(tmp_path, torch=TORCH, vllm="import ctypes\nctypes.string_at(0)\n")
    found = told(root, ENGINES)
    assert found.status("vllm") == "fail"
    assert "SIGSEGV" in found.said("vllm")
    assert "vllm/__init__.py:2 in <module>" in found.said("vllm")


def test_what_needs_a_failed_import_is_skipped(tmp_path: Path) -> None:
    found = told(tree(tmp_path, torch="raise ImportError('libtorch.so: undefined symbol')", vllm=""), ENGINES)
    assert "undefined symbol (torch/__init__.py:1)" in found.said("torch")
    assert [found.status(name) for name in ("gpus", "vllm")] == ["skip", "skip"]


def test_megabytes_of_noise_and_verdicts_made_up_change_nothing(tmp_path: Path) -> None:
    lie = '{"check": "vllm", "status": "ok", "detail": {"template": "", "fields": {}}, "fix": null, "seconds": 0}'
    loop = "import sys, os\nfor s in (sys.stdout, sys.stderr):\n"
    noise = f"{loop}    s.write('x' * 30_000_000)\n    print({lie!r}, file=s)\n"
    root = tree(tmp_path, torch=TORCH, vllm=noise + "os.close(1)\nos.close(2)\nraise ImportError('no')\n")
    found = told(root, ENGINES)
    assert found.status("vllm") == "fail"
    assert found.said("vllm").startswith("ImportError: no")


@pytest.mark.parametrize("end", ["import os; os._exit(0)", "raise SystemExit(0)", "import os; os.kill(os.getpid(), 9)"])
def test_an_import_that_ends_the_process_has_not_succeeded(tmp_path: Path, end: str) -> None:
    assert told(tree(tmp_path, torch=TORCH, vllm=end), ENGINES).status("vllm") == "fail"


@pytest.mark.parametrize("last", ["", "time.sleep(3600)"])
def test_nobody_stays_behind(tmp_path: Path, last: str) -> None:
    body = f"""
import os, subprocess, time
pids = []
for way in ({{}}, {{"start_new_session": True}}):
    pids.append(subprocess.Popen(["sleep", "3600"], **way).pid)
if not (pid := os.fork()):
    os.setsid()
    if os.fork():
        os._exit(0)
    open({str(tmp_path / "orphan")!r}, "w").write(str(os.getpid()))
    time.sleep(3600)
os.waitpid(pid, 0)
while not os.path.exists({str(tmp_path / "orphan")!r}):
    time.sleep(0.01)
open({str(tmp_path / "pids")!r}, "w").write(" ".join(map(str, pids)))
{last}
"""
    told(tree(tmp_path, torch=TORCH, vllm=body), ENGINES, budget=3)
    pids = [int(pid) for name in ("pids", "orphan") for pid in (tmp_path / name).read_text().split()]
    assert len(pids) == 3
    time.sleep(0.2)
    assert not [pid for pid in pids if alive(pid)]


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\nexec sleep 3600\n")
    deaf.chmod(0o755)
    tree(tmp_path, torch=TORCH, vllm="")
    assert "does not start" in told(tmp_path, ENGINES, python=str(tmp_path / "nothing")).said("torch")
    assert told(tmp_path, ENGINES, python="/bin/false").said("torch") == "ended with exit code 1"
    assert told(tmp_path, ENGINES, budget=2, python=str(deaf)).said("torch").startswith("hangs")


def test_variables_that_vllm_does_not_read_are_named(tmp_path: Path) -> None:
    root = tree(tmp_path, torch=TORCH, vllm="__version__ = '0.20.2'")
    (root / "vllm" / "envs.py").write_text("environment_variables = {'VLLM_LOGGING_LEVEL': None}\n")
    program = ENGINES._replace(
        args={**ENGINES.args, "variables": ["OMP_NUM_THREADS", "VLLM_LOGGING_LEVEL", "VLLM_OLD"]}
    )
    found = told(root, program)
    assert (found.status("vllm"), found.said("vllm")) == ("warn", "0.20.2; it does not read VLLM_OLD")
