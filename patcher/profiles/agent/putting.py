"""Put rendered files into the tree, all in one request. What somebody edited since, or made by hand, stays."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from patcher.messages import Refusal, phrase, why
from patcher.profiles.agent import rendered
from patcher.worktree import disk, files
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

_OURS = ".uky-patch/host"
_MEMORY = _OURS + "/rendered.json"
_LAID = _OURS + "/laid"
"""Begins the names of files that are written and not in their place yet. Beside it a kill would leave them for ever."""
_MANIFEST = _OURS + "/manifest.json"
_LARGEST = 2**20
"""Bytes of a file that are sent back for a diff."""


def put(request: Request) -> dict[str, Any]:
    """Write the files of the body, which are told in `files` by path, size and mode.

    With `dry`, writes nothing. Answers for each file how it ended (see `patcher.migrate.model.PutAs`) and, where
    another text is there, that text.
    """
    root = request.kept["root"]
    memory = _json(os.path.join(root, _MEMORY))
    sent = _json(os.path.join(root, _MANIFEST)).get("files", {})
    found = []
    at = 0
    for file in request.args["files"]:
        content = request.body[at : at + file["size"]]
        at += file["size"]
        found.append(_look(root, file["path"], content, file["mode"], memory, sent))
    if not request.args.get("dry"):
        _write(root, found, memory)
    return {"files": [{"path": one["path"], "how": one["how"], "there": one["there"]} for one in found]}


def _look(
    root: str, path: str, content: bytes, mode: int, memory: dict[str, Any], sent: dict[str, Any]
) -> dict[str, Any]:
    place = _place(root, path)
    one: dict[str, Any] = {
        "path": path,
        "place": place,
        "content": content,
        "mode": mode,
        "there": None,
        "chmod": False,
    }
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        one["how"] = "written"
        return one
    except OSError as error:
        raise _unusable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        one["how"] = "foreign"
        return one
    try:
        there = files.read(place, files.SOURCE_BYTES)
    except OSError as error:
        raise _unusable(path, error) from error
    if there == content:
        one["how"] = "unchanged"
        one["chmod"] = stat.S_IMODE(status.st_mode) != mode and path not in sent
        return one
    text = there[:_LARGEST].decode("utf-8", "surrogateescape")
    one["there"] = text
    if path in sent:
        one["how"] = "foreign"
    elif memory.get(path) == _sha(there) or rendered.is_untouched(text):
        one["how"] = "updated"
    else:
        one["how"] = "kept" if path in memory or rendered.is_rendered(text) else "foreign"
    return one


def _write(root: str, found: list[dict[str, Any]], memory: dict[str, Any]) -> None:
    remembered = dict(memory)
    laid: list[tuple[str, dict[str, Any]]] = []
    beside = os.path.join(root, _LAID)
    try:
        for one in found:
            if one["how"] in ("written", "updated"):
                os.makedirs(os.path.dirname(beside), 0o700, exist_ok=True)
                temporary = f"{beside}.{len(laid)}"
                laid.append((temporary, one))
                disk.create_anew(temporary, one["content"], mode=one["mode"])
        for temporary, one in laid:
            disk.replace(temporary, one["place"])
        for one in found:
            if one["chmod"]:
                os.chmod(one["place"], one["mode"])
            if one["how"] in ("written", "updated", "unchanged"):
                remembered[one["path"]] = _sha(one["content"])
        if remembered != memory:
            _remember(root, remembered)
    except OSError as error:
        for temporary, _ in laid:
            try:
                os.unlink(temporary)
            except OSError:
                pass
        raise _unusable(found[0]["path"] if not laid else laid[-1][1]["path"], error) from error


def _remember(root: str, memory: dict[str, Any]) -> None:
    place = os.path.join(root, _MEMORY)
    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    content = json.dumps(memory, indent=1, sort_keys=True).encode("ascii") + b"\n"
    files.replace(place, content, mode=0o600, draft=f"{place}.new")


def _place(root: str, path: str) -> str:
    """Where a file goes; its folder must be there, inside the root, and reached without a symlink."""
    folder = os.path.dirname(os.path.join(root, path))
    if (
        path != os.path.normpath(path)
        or path.startswith(("/", "..", ".uky-patch"))
        or os.path.realpath(folder) != folder
    ):
        cause = phrase("it does not lie in a folder of the tree")
        raise Refusal("path", phrase("{path}: cannot be written", path=path), cause)
    return os.path.join(root, path)


def _json(path: str) -> dict[str, Any]:
    try:
        found = parse_json(files.read(path, files.SOURCE_BYTES))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _unusable(path: str, error: OSError) -> Refusal:
    return Refusal("unwritable", phrase("{path}: cannot be written", path=path), why(error))
