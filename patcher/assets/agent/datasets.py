"""What a data set holds, and a copy of its first rows, by the pyarrow of the interpreter that trains.

The agent has the standard library alone, so `parquet_program` reads the file in a process of that interpreter.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from patcher.assets.agent import parquet_program
from patcher.messages import Message, Refusal, phrase
from patcher.worktree import disk
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

SECONDS = 120.0
"""How long one look may take: importing pyarrow from a cold network disk takes up to a minute."""


def report(request: Request) -> dict[str, Any]:
    """Rows, columns with their types, and the first row, shortened. `python` reads `file`. Raises Refusal."""
    path = _find_file(request)
    started = time.monotonic()
    answer = _run_program(request, {"do": "report", "file": path})
    return {**answer, "seconds": time.monotonic() - started, "file": path, "size": os.path.getsize(path)}


def tiny(request: Request) -> dict[str, Any]:
    """Write the first `rows` rows of `file` to `to`, by default `NAME_tiny` beside it, all or nothing.

    A file that is there and was not made by this verb is replaced with `force` alone. Raises Refusal.
    """
    args = request.args
    path = _find_file(request)
    folder, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    if stem.lower().endswith("_tiny") and not args.get("to"):
        title = phrase("{path}: it is a tiny data set already", path=path)
        raise Refusal("tiny", title, None, phrase("Name the whole data set."))
    target = os.path.join(folder, args.get("to") or f"{stem}_tiny{extension}")
    if os.path.exists(target) and os.path.samefile(target, path):
        raise Refusal("same", phrase("{path}: would overwrite itself", path=path))
    temporary = f"{target}.uky-{os.getpid()}-{os.urandom(4).hex()}"
    task = {"do": "tiny", "file": path, "to": target, "temporary": temporary}
    try:
        answer = _run_program(request, {**task, "rows": int(args.get("rows") or 2), "force": bool(args.get("force"))})
        if answer["how"] == "written":
            answer["how"] = "updated" if os.path.lexists(target) else "written"
            _put_in_place(temporary, target, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return {"file": target, "of": path, "rows": answer["rows"], "how": answer["how"]}


def _put_in_place(temporary: str, target: str, source: str) -> None:
    try:
        disk.sync(temporary)
        disk.set_mode(temporary, os.stat(source).st_mode & 0o777)
        disk.replace(temporary, target)
    except OSError as error:
        cause = phrase("{reason}", reason=error.strerror or str(error))
        raise Refusal("unwritable", phrase("{path}: cannot be written", path=target), cause) from error


def _find_file(request: Request) -> str:
    path = os.path.expanduser(str(request.args["file"]))
    path = os.path.normpath(os.path.join(str(request.args.get("folder") or "/"), path))
    if os.path.isfile(path):
        return path
    near = sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(path)), "*.parquet")))[:8]
    names = ", ".join(os.path.basename(name) for name in near)
    advice = phrase("There are: {names}", names=names) if near else phrase("Name the file, or set data for this host.")
    title = phrase("{path}: there is none", path=path)
    if os.path.isdir(path):
        title = phrase("{path}: is a folder", path=path)
    raise Refusal("missing", title, None, advice)


def _run_program(request: Request, task: dict[str, Any]) -> dict[str, Any]:
    """Run the program in a process of its own, which may hang or crash. Raises Refusal where it gives no answer.

    It stands in `/`: `python -c` looks for modules in its folder first, and `/` holds nobody's `pyarrow.py`.
    """
    python, file = str(request.args["python"]), task["file"]
    seconds = float(request.args.get("seconds") or SECONDS)
    program = parquet_program.__loader__.get_source(parquet_program.__name__)  # type: ignore[union-attr]
    try:
        child = subprocess.Popen(
            [python, "-W", "ignore", "-c", str(program), json.dumps(task)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        title = phrase("{python}: does not start", python=python)
        raise Refusal("python", title, phrase("{reason}", reason=str(error))) from error
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        title = phrase("{path}: no answer within {seconds} s", path=file, seconds=int(seconds))
        cause = phrase("{python} was reading it, or importing pyarrow", python=python)
        advice = phrase("See whether the disk of the file or of the interpreter answers.")
        raise Refusal("hung", title, cause, advice) from None
    finally:
        if child.poll() is None:
            _kill(child)
    try:
        answer = parse_json(out)
    except ValueError:
        raise _crashed(python, child.returncode, err) from None
    if "problem" in answer:
        raise _refused(python, task, answer)
    return dict(answer)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End it and what it has started: `python` may be a script that starts the interpreter."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    child.communicate()


def _crashed(python: str, code: int, err: bytes) -> Refusal:
    last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
    cause = phrase("{reason}", reason=last[0]) if last else None
    if code < 0:
        return Refusal("crashed", phrase("{python}: died of signal {number}", python=python, number=-code), cause)
    return Refusal("crashed", phrase("{python}: ended with {number}", python=python, number=code), cause)


def _refused(python: str, task: dict[str, Any], answer: dict[str, Any]) -> Refusal:
    """The program's `problem` as an error."""
    kind = str(answer["problem"])
    cause: Message | None = phrase("{reason}", reason=answer["text"]) if answer.get("text") else None
    if kind == "reader":
        title = phrase("{python}: has no pyarrow", python=python)
        return Refusal(kind, title, cause, phrase("Install pyarrow there: verl reads its data with it."))
    if kind == "taken":
        title = phrase("{path}: is there, and was not made from a data set by this tool", path=task["to"])
        return Refusal(kind, title, None, phrase("Give another name with --to, or replace it with --force."))
    if kind == "memory":
        return Refusal(kind, phrase("{path}: the first rows do not fit into memory", path=task["file"]))
    advice = phrase("Name a parquet file, or write this one anew.")
    return Refusal(kind, phrase("{path}: cannot be read as parquet", path=task["file"]), cause, advice)
