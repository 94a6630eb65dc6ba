"""What runs in the workers of a Ray cluster.

Ray sends the functions of this module to the workers by value (cloudpickle), so it imports nothing of this project.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

GUARD = """
import os, subprocess, sys
start, imported, size, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
if os.fork():
    os._exit(0)
os.setsid()
given = sys.stdin.buffer.read()
if len(given) < size:
    sys.exit("the worker has ended")
sink = os.dup(1)
command = [sys.executable, "-X", "utf8", "-u", "-c", start, imported, str(sink)]
process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, pass_fds=[sink], cwd="/")
os.close(sink)
try:
    process.communicate(given, timeout=limit)
except subprocess.TimeoutExpired:
    process.kill()
    process.wait()
if process.returncode < 0:
    sys.exit(f"ended by signal {-process.returncode}")
"""
"""The program between a worker and the agent: it passes the requests on, and ends the agent after `limit` seconds. Ray
kills the children of a worker with it; by the fork and `setsid` this program is none, so a commit that has begun comes
to its end. Nothing is written to the disk.

The agent starts with the site's packages and variables, because it tells which packages a worker sees there. So code of
the site (`sitecustomize.py`, a `.pth` file) runs before it and may print. The answers therefore have a descriptor of
their own, which the agent's last argument names, and its standard output is standard error."""


def work(start: str, program: bytes, requests: bytes, limit: float) -> dict[str, Any]:
    """Run the agent on this node, in a process of its own, for `limit` seconds at most.

    `start` are the statements for `python -c`; `program` and then `requests` go to its standard input. Returns
    `answers`, the frames of the agent; `failed`, why there are none, if that is so; and the version of `python`.
    """
    given = program + requests
    spec = find_spec("verl")
    imported = list(spec.submodule_search_locations or ())[:1] if spec is not None else []
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", GUARD, start, "".join(imported), str(len(given)), str(limit)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        out, err = process.communicate(given, timeout=limit + 5)
    except subprocess.TimeoutExpired as error:
        out, err = error.stdout or b"", error.stderr or b""
    output = err.decode("utf-8", "replace").strip()[-2000:]
    return {"answers": out, "failed": output or "it said nothing", "python": sys.version.split()[0]}


def environment() -> dict[str, str]:
    """The worker's variables, but those such as CUDA_VISIBLE_DEVICES as it was started with: Ray hides all GPUs from a
    task that asks for none, and the agent is to list them.
    """
    text = Path("/proc/self/environ").read_text(encoding="utf-8", errors="replace")
    began = dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
    devices = {name for name in (*os.environ, *began) if name.endswith("_VISIBLE_DEVICES")}
    now = {name: value for name, value in os.environ.items() if name not in devices}
    return {**now, **{name: began[name] for name in devices if name in began}}


def now() -> float:
    """The time on the node, in seconds since 1970."""
    return time.time()


class Actor:
    """Holds an object of a class that is sent to nodes (`patcher.cluster.joining.SENT_TO_NODES`) for several calls."""

    def __init__(self, program: bytes, of: str) -> None:
        """Load `program` into this process, from memory, and make an object of the class `of`, `module:Class`."""
        # The first line of the program is its size. It starts no agent, as its `__name__` is not `__main__`.
        exec(zlib.decompress(program.partition(b"\n")[2]), {"__name__": "sent"})  # noqa: S102
        module, _, name = of.partition(":")
        self._inner = getattr(import_module(module), name)()

    def ask(self, verb: str, args: dict[str, Any]) -> Any:
        """What the object answers."""
        return self._inner.ask(verb, args)
