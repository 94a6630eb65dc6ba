"""What runs in the workers of a Ray cluster. It is sent to them by value, and imports nothing of this project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PROGRAM = """
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop())
from patcher.cluster.node import main
main()
"""
GUARD = """
import io, os, shutil, subprocess, sys, tempfile, zipfile
program, size, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
if os.fork():
    os._exit(0)
os.setsid()
cargo = sys.stdin.buffer.read(size)
ask = sys.stdin.buffer.read()
if len(cargo) < size:
    sys.exit("the worker has ended")
folder = tempfile.mkdtemp(prefix="uky-patch-")
try:
    with zipfile.ZipFile(io.BytesIO(cargo)) as archive:
        archive.extractall(folder)
    process = subprocess.Popen([sys.executable, "-c", program, folder], stdin=subprocess.PIPE, cwd=folder)
    try:
        process.communicate(ask, timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
finally:
    shutil.rmtree(folder, ignore_errors=True)
if process.returncode < 0:
    sys.exit(f"ended by signal {-process.returncode}")
"""
"""Between a worker and its program: it makes the program's folder, ends the program in time and removes the folder. Ray
kills a worker's own children with it, so it is none: what has begun to write comes to its end, and nothing is left."""


def work(cargo: bytes, ask: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run the tool, which is the cargo, on the node in a process of its own, and give what it says."""
    spec = find_spec("verl")
    origin = list(spec.submodule_search_locations or ())[:1] if spec is not None else []
    ask = dict(ask, imported=origin[0] if origin else None, limit=limit)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", GUARD, PROGRAM, str(len(cargo)), str(limit)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        out, err = process.communicate(cargo + json.dumps(ask).encode(), timeout=limit + 5)
    except subprocess.TimeoutExpired as error:
        out, err = error.stdout or b"", error.stderr or b""
    lines = [line for line in out.splitlines() if line.strip()]
    if not lines:
        said = err.decode("utf-8", "replace").strip()[-2000:]
        return {"crashed": said or "it said nothing", "python": sys.version.split()[0]}
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def environment() -> dict[str, str]:
    """The worker's variables, but GPUs as it was started: Ray hides them from a task that asks for none."""
    text = Path("/proc/self/environ").read_text(encoding="utf-8", errors="replace")
    began = dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
    devices = {name for name in (*os.environ, *began) if name.endswith("_VISIBLE_DEVICES")}
    now = {name: value for name, value in os.environ.items() if name not in devices}
    return {**now, **{name: began[name] for name in devices if name in began}}


def now() -> float:
    """The worker's clock."""
    return time.time()


class Sampler:
    """An actor on a node: the agent's own `Sampler`, from sources that were sent, so that nothing is written there."""

    def __init__(self, sources: dict[str, str]) -> None:
        class Sent:
            def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
                if name in sources:
                    return ModuleSpec(name, self, is_package=any(other.startswith(name + ".") for other in sources))  # type: ignore[arg-type]
                return None

            def create_module(self, spec: Any) -> None:  # noqa: ARG002
                return None

            def exec_module(self, module: Any) -> None:
                exec(compile(sources[module.__name__], module.__name__, "exec"), module.__dict__)  # noqa: S102

        sys.meta_path.insert(0, Sent())
        self._sampler = import_module("patcher.watch.agent.sampler").Sampler()

    def ask(self, verb: str, args: dict[str, Any]) -> Any:
        return self._sampler.ask(verb, args)
