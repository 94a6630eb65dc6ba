"""What runs in the workers of a Ray cluster. It is sent to them by value, and imports nothing of this project."""

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
"""Between a worker and the agent: it passes the requests on, and ends the agent in time. Ray kills a worker's own
children with it, and this is none of them: a commit that has begun comes to its end. Nothing is made on the disk.

The agent starts with the site's packages and variables, because it tells which packages a worker sees there. So code of
the site (`sitecustomize.py`, a `.pth` file) runs before it and may print. The answers therefore have a descriptor of
their own, which the agent's last argument names, and its standard output is standard error."""


def work(start: str, program: bytes, requests: bytes, limit: float) -> dict[str, Any]:
    """Run the agent on this node, in a process of its own, and give its answers as they come from it.

    `start` is what Python is started with; `program` and then `requests` go to its standard input. The agent has
    `limit` seconds. `failed` tells why there are no answers.
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
    """The worker's variables, but GPUs as it was started: Ray hides them from a task that asks for none."""
    text = Path("/proc/self/environ").read_text(encoding="utf-8", errors="replace")
    began = dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
    devices = {name for name in (*os.environ, *began) if name.endswith("_VISIBLE_DEVICES")}
    now = {name: value for name, value in os.environ.items() if name not in devices}
    return {**now, **{name: began[name] for name in devices if name in began}}


def now() -> float:
    """The worker's clock."""
    return time.time()


class Actor:
    """An object of the agent that lasts on a node, loaded from memory, so that nothing is written there."""

    def __init__(self, program: bytes, of: str) -> None:
        """`of`: its class, `module:Class`."""
        exec(zlib.decompress(program.partition(b"\n")[2]), {"__name__": "sent"})  # noqa: S102
        module, _, name = of.partition(":")
        self._inner = getattr(import_module(module), name)()

    def ask(self, verb: str, args: dict[str, Any]) -> Any:
        return self._inner.ask(verb, args)
