"""What Ray says of the run's cluster, and the ends of its own logs."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import traces_key
from patcher.jobs.agent.traces import noted, session_of
from patcher.remote.agent.environs import search
from patcher.remote.agent.facts import Untold, run
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.jobs.agent.processes import Process
    from patcher.secrets.redacting import Redactor

EACH = 20.0
"""Seconds that each question to Ray may take: its command line takes some to load."""
SECONDS = 2 * EACH + 1.0
_WANTED = (
    "raylet.out",
    "raylet.err",
    "gcs_server.out",
    "gcs_server.err",
    "monitor.log",
    "monitor.err",
    "dashboard.log",
    "dashboard_agent.log",
    "runtime_env_agent.log",
    "runtime_env_setup-*.log",
    "python-core-driver-*.log",
    "worker-*.err",
    "worker-*.out",
)
"""In the order in which they are taken. Of the workers only what tells of trouble."""
_TROUBLE = re.compile(rb"Traceback|Error|ERROR|FATAL|Fatal|\[[EF] |SIG[A-Z]{3,4}|[Kk]illed|out of memory|OOM")
LAST = 1 << 14
"""Bytes of each log's end."""
FILES = 24
NEAR = 300.0
"""Seconds between the last words of a run's log and of its Ray's."""
WHOLE = 1 << 20


def rays(
    job: dict[str, Any] | None,
    log: str | None,
    mine: list[Process],
    environments: dict[int, dict[str, str]],
    python: str | None,
    redactor: Redactor,
) -> dict[str, Any]:
    """`asked`: commands with what they printed, or why not; `logs`: ends of the session's logs; `session`: its folder.

    `sure` is false where the session only fell silent when `log` did, and nothing else tells that it is the run's.
    """
    folder, sure = _session(job, mine, log)
    found: dict[str, Any] = {"asked": [], "logs": [], "session": folder, "sure": sure}
    raylet = next((process for process in mine if process.name == "raylet"), None)
    address = _option(raylet.pid, "gcs-address") if raylet is not None else None
    if raylet is not None and address:
        environment = environments.get(raylet.pid, {})
        found["asked"] = [
            _ask(words, address, python, environment, redactor) for words in (["status"], ["list", "nodes"])
        ]
    if folder is not None:
        found["logs"] = _logs(folder, redactor)
    return found


def _session(job: dict[str, Any] | None, mine: list[Process], log: str | None) -> tuple[str | None, bool]:
    for process in mine:
        folder = session_of(process.pid)
        if folder is not None:
            return folder, True
    if job is not None:
        own = [
            note["path"] for note in noted(job["folder"], traces_key.key(), "session") if os.path.isdir(note["path"])
        ]
        return (own[-1], True) if own else (None, False)
    newest = os.path.realpath("/tmp/ray/session_latest")
    try:
        told = os.stat(os.path.join(newest, "logs", "raylet.out"))
        if log is not None and told.st_uid == os.getuid() and abs(told.st_mtime - os.stat(log).st_mtime) < NEAR:
            return newest, False
    except OSError:
        pass
    return None, False


def _option(pid: int, name: str) -> str | None:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    spelled = (f"--{name}=", f"--{name.replace('-', '_')}=")
    return next((word.partition("=")[2] for word in words if word.startswith(spelled)), None)


def _ask(
    words: list[str], address: str, python: str | None, environment: dict[str, str], redactor: Redactor
) -> dict[str, Any]:
    """Ask the `ray` of the interpreter that trains, with Ray's own variables as the cluster has them."""
    places = [os.path.dirname(python)] if python else []
    program = shutil.which("ray", path=search(*places, environment.get("PATH", ""), os.environ.get("PATH", "")))
    told: dict[str, Any] = {"command": " ".join(["ray", *words]), "output": "", "reason": None}
    if program is None:
        told["reason"] = "there is no ray"
        return told
    settings = {name: value for name, value in environment.items() if name.startswith("RAY_")}
    try:
        output = run([program, *words, "--address", address], EACH, settings)
    except Untold:
        told["reason"] = "no answer"
        return told
    told["output"] = redactor.text((output.out if output.code == 0 else output.out + output.err)[-LAST:])
    return told


def _logs(folder: str, redactor: Redactor) -> list[dict[str, Any]]:
    """The ends of the logs that may tell something, bounded in number and size."""
    found: list[dict[str, Any]] = []
    room = WHOLE
    deadline = time.monotonic() + EACH
    for pattern in _WANTED:
        for path in sorted(glob.glob(os.path.join(glob.escape(os.path.join(folder, "logs")), pattern))):
            if len(found) >= FILES or room <= 0 or time.monotonic() > deadline:
                return found
            content, size = _end(path)
            if not content or (pattern.startswith("worker") and not _TROUBLE.search(content)):
                continue
            room -= len(content)
            text = redactor.content(content).decode("utf-8", "replace")
            found.append({"name": os.path.basename(path), "size": size, "text": text})
    return found


def _end(path: str) -> tuple[bytes, int]:
    """The last whole lines of a file, and its size."""
    try:
        with files.open_binary(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - LAST))
            content = stream.read(LAST)
    except OSError:
        return b"", 0
    return (content if size <= LAST else content[content.find(b"\n") + 1 :]), size
