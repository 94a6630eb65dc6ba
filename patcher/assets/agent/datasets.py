"""What a data set holds, and a copy of its first rows, by the pyarrow or pandas of the interpreter that trains."""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from patcher.assets.agent import parquet
from patcher.messages import Message, Refusal, phrase
from patcher.worktree import disk
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

SECONDS = 120.0
"""How long one look may take, imports included."""


def report(request: Request) -> dict[str, Any]:
    """Rows, columns with their types, and the first row, shortened. `python` reads `file`. Raises Refusal."""
    path = _file(request)
    started = time.monotonic()
    told = _ask(request, {"do": "report", "file": path})
    told["seconds"] = time.monotonic() - started
    told["file"] = path
    told["size"] = os.path.getsize(path)
    return told


def tiny(request: Request) -> dict[str, Any]:
    """Write the first `rows` rows of `file` to `to`, beside it by default, in one step.

    A file that is there and was not made so is replaced with `force` alone. Raises Refusal.
    """
    path = _file(request)
    folder, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    if stem.lower().endswith("_tiny") and not request.args.get("to"):
        title = phrase("{path}: it is a tiny data set already", path=path)
        raise Refusal("tiny", title, None, phrase("Name the whole data set."))
    target = os.path.join(folder, request.args.get("to") or f"{stem}_tiny{extension}")
    if os.path.exists(target) and os.path.samefile(target, path):
        raise Refusal("same", phrase("{path}: would overwrite itself", path=path))
    temporary = f"{target}.uky-{os.getpid()}-{os.urandom(4).hex()}"
    rows, force = int(request.args.get("rows") or 2), bool(request.args.get("force"))
    task = {"do": "tiny", "file": path, "to": target, "temporary": temporary, "rows": rows, "force": force}
    try:
        told = _ask(request, task)
        if told["how"] == "written":
            told["how"] = "updated" if os.path.lexists(target) else "written"
            _settle(temporary, target, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return {"file": target, "of": path, "rows": told["rows"], "how": told["how"]}


def _settle(temporary: str, target: str, source: str) -> None:
    try:
        disk.sync(temporary)
        disk.set_mode(temporary, os.stat(source).st_mode & 0o777)
        disk.replace(temporary, target)
    except OSError as error:
        cause = phrase("{reason}", reason=error.strerror or str(error))
        raise Refusal("unwritable", phrase("{path}: cannot be written", path=target), cause) from error


def _file(request: Request) -> str:
    path = os.path.expanduser(str(request.args["file"]))
    path = os.path.normpath(os.path.join(str(request.args.get("folder") or "/"), path))
    if os.path.isfile(path):
        return path
    near = sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(path)), "*.parquet")))[:8]
    names = ", ".join(os.path.basename(name) for name in near)
    advice = phrase("There are: {names}", names=names) if near else phrase("Name the file, or set data for this host.")
    title = (
        phrase("{path}: is a folder", path=path) if os.path.isdir(path) else phrase("{path}: there is none", path=path)
    )
    raise Refusal("missing", title, None, advice)


def _program() -> str:
    return str(parquet.__loader__.get_source(parquet.__name__))  # type: ignore[union-attr]


def _ask(request: Request, task: dict[str, Any]) -> dict[str, Any]:
    """Run the program above in a process of its own, which may hang or crash."""
    python = str(request.args["python"])
    try:
        child = subprocess.Popen(
            [python, "-W", "ignore", "-c", _program(), json.dumps(task)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise Refusal(
            "python", phrase("{python}: does not start", python=python), phrase("{reason}", reason=str(error))
        ) from error
    try:
        out, err = child.communicate(timeout=float(request.args.get("seconds") or SECONDS))
    except subprocess.TimeoutExpired:
        _kill(child)
        raise _hung(python, task["file"], float(request.args.get("seconds") or SECONDS)) from None
    finally:
        if child.poll() is None:
            _kill(child)
    try:
        told = parse_json(out)
    except ValueError:
        raise _crashed(python, child.returncode, err) from None
    if "problem" in told:
        raise _problem(python, task, told)
    return dict(told)


def _kill(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    child.communicate()


def _hung(python: str, file: str, seconds: float) -> Refusal:
    title = phrase("{path}: no answer within {seconds} s", path=file, seconds=int(seconds))
    cause = phrase("{python} was reading it, or importing pyarrow", python=python)
    return Refusal("hung", title, cause, phrase("See whether the disk of the file or of the interpreter answers."))


def _crashed(python: str, code: int, err: bytes) -> Refusal:
    last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
    cause = phrase("{reason}", reason=last[0]) if last else None
    if code < 0:
        return Refusal("crashed", phrase("{python}: died of signal {number}", python=python, number=-code), cause)
    return Refusal("crashed", phrase("{python}: ended with {number}", python=python, number=code), cause)


def _problem(python: str, task: dict[str, Any], told: dict[str, Any]) -> Refusal:
    kind = str(told["problem"])
    cause: Message | None = phrase("{reason}", reason=told["text"]) if told.get("text") else None
    if kind == "reader":
        title = phrase("{python}: has neither pyarrow nor pandas with fastparquet", python=python)
        return Refusal(kind, title, cause, phrase("Install pyarrow there: verl reads its data with it."))
    if kind == "taken":
        title = phrase("{path}: is there, and was not made from a data set by this tool", path=task["to"])
        return Refusal(kind, title, None, phrase("Give another name with --to, or replace it with --force."))
    if kind == "memory":
        return Refusal(kind, phrase("{path}: the first rows do not fit into memory", path=task["file"]))
    advice = phrase("Name a parquet file, or write this one anew.")
    return Refusal(kind, phrase("{path}: cannot be read as parquet", path=task["file"]), cause, advice)
