"""Real processes with the real probing inside."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.preflight.conftest import runtime
from tests.watch.probe.environment import interpreter

__all__ = ["runtime"]
Start = Callable[..., list[int]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a script, one process a rank; each has said a line when this returns."""
    with ExitStack() as stack:

        def begin(script: str, *, python: Path | None = None, ranks: int = 1, probing: bool = True) -> list[int]:
            file = tmp_path / "train.py"
            file.write_text(script)
            environ = {**os.environ, "PROBING": "1" if probing else "0", "WORLD_SIZE": str(ranks)}
            command = [str(python or interpreter()), "-u", str(file)]
            running = []
            for rank in range(ranks):
                own = {**environ, "RANK": str(rank), "MASTER_FILE": str(tmp_path / "store")}
                process = subprocess.Popen(
                    command,
                    env=own,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                )
                stack.callback(process.wait)
                stack.callback(os.killpg, process.pid, 9)
                running.append(process)
            for process in running:
                assert process.stdout is not None
                stack.enter_context(process.stdout)
                while "ready" not in (line := process.stdout.readline()):
                    assert line, process.wait()
            return [process.pid for process in running]

        yield begin
