"""Runs a program of verl's in a runtime environment, in a folder of its own, and ends what it started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PLAIN = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "OMP_NUM_THREADS": "2",
    "TORCHDYNAMO_DISABLE": "1",
    "PYTHONUNBUFFERED": "1",
}
"""What keeps a run on a CPU small, quiet and off the network. Without torch's compiler no C++ compiler is needed."""


@dataclass(frozen=True, slots=True)
class Ran:
    code: int | None
    """None: it had its time."""
    text: str

    @property
    def end(self) -> str:
        return self.text[-6000:]


def ran(
    python: Path, command: Sequence[str | Path], paths: Sequence[Path], seconds: float, more: Mapping[str, str]
) -> Ran:
    """Run it with `paths` before all else that Python imports from; its output and exit code."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="uky-run-", dir="/tmp") as folder:
        environment = {
            **kept,
            **PLAIN,
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(map(str, paths)),
            "RAY_TMPDIR": folder,
            **more,
        }
        with (Path(folder) / "log").open("w+b") as log:
            child = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                code = child.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            _end(child, folder)
            log.seek(0)
            text = log.read().decode("utf-8", "replace")
        shutil.rmtree(f"{folder}/ray", ignore_errors=True)
    return Ran(code, text)


def _end(child: subprocess.Popen[bytes], folder: str) -> None:
    """Kill its process group, and what of Ray still has the folder in its command or environment."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            with contextlib.suppress(OSError):
                started_with = (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
                if folder.encode() in started_with:
                    os.kill(int(path.name), signal.SIGKILL)
