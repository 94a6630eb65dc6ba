"""An agent with a few more verbs, for what can go wrong on the way."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.remote import agent_program

if TYPE_CHECKING:
    import pytest

VERBS = ("echo", "nap", "attend", "chatter", "die", "half", "process", "noise", "bug")

_SOURCE = """
from __future__ import annotations
import os, signal, subprocess, time
from patcher.messages import phrase

def echo(request):
    request.reply_body = request.body
    return {"args": request.args}

def nap(request):
    time.sleep(request.args["seconds"])
    if request.args.get("mark"):
        open(request.args["mark"], "w").close()
    return {}

def attend(request):
    end = time.monotonic() + request.args["seconds"]
    while time.monotonic() < end and not request.gone():
        time.sleep(0.05)
    return {"gone": request.gone()}

def chatter(request):
    for number in range(request.args["count"]):
        request.emit_body(b"x" * request.args["size"], number=number)
    return {}

def die(request):
    os.kill(os.getpid(), signal.SIGKILL)

def half(request):
    os.write(request._server._sink._fd, b'{"id": 1, "resu')
    os._exit(0)

def process(request):
    return {"pid": os.getpid(), "folder": os.getcwd(), "locale": os.fsencode("\\u4e2d").hex()}

def noise(request):
    print("said by a verb", flush=True)
    subprocess.run(["echo", "said by a child"], check=True)
    return {"read": subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout.decode()}

def bug(request):
    raise ZeroDivisionError("a bug")
"""


def toys(monkeypatch: pytest.MonkeyPatch, **constants: float) -> None:
    """Agents from now on know the verbs above; `constants` are set in `patcher.remote.agent.serving`."""
    whole = agent_program._sources()
    verbs = "".join(f'\n    "{verb}": "patcher.toy:{verb}",' for verb in VERBS)
    extra = f"agent = SOURCES['patcher.agent'].replace('= {{', {'= {' + verbs!r}, 1)\n".replace("{{", "{")
    extra += "SOURCES['patcher.agent'] = agent\nserve = SOURCES['patcher.remote.agent.serving']\n"
    for name, value in constants.items():
        extra += f"import re\nserve = re.sub(r'(?m)^{name} = .*', '{name} = {value}', serve)\n"
    extra += f"SOURCES['patcher.remote.agent.serving'] = serve\nSOURCES['patcher.toy'] = {_SOURCE!r}\n"
    monkeypatch.setattr(agent_program, "_sources", lambda: whole + extra)


def children(name: str = "") -> set[int]:
    """The processes that this one has started and not yet done with, zombies included; only those called `name`."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            after = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(after[1]) == os.getpid() and name in (entry / "comm").read_text():
                found.add(int(entry.name))
    return found


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def within(seconds: float) -> Iterator[None]:
    """Turns of a loop that waits for something; the last one has taken `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.05)
