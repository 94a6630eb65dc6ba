"""Write rendered files into the tree of a host, all in one request (atomic replace). What somebody edited or made
stays.

A file is known as rendered by its hash line, or by its hash in `.uky-patch/host/rendered.json`.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

from patcher.messages import Refusal, phrase, why
from patcher.worktree import disk, files, layout
from patcher.worktree.hashing import digest_of
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

PREFIX = "# rendered by uky-patch "


def digest(text: str) -> str:
    """The sha256 of a text, lone surrogates included."""
    return digest_of(text.encode("utf-8", "surrogateescape"))


def is_rendered(text: str) -> bool:
    """Whether the text was rendered by the tool at all, edited since or not."""
    return _line(text) is not None


def is_untouched(text: str) -> bool:
    """Whether the text is as it was rendered, by whatever version."""
    line = _line(text)
    if line is None:
        return False
    return line.rstrip("\n").endswith("sha256:" + digest(text.replace(line, "", 1)))


def _line(text: str) -> str | None:
    return next((line for line in text.splitlines(keepends=True)[:20] if line.startswith(PREFIX)), None)


_OURS = layout.HOST
_HASHES = _OURS + "/rendered.json"
_STAGED = _OURS + "/laid"
"""The beginning of the names of files that are written and not in their place yet. They are not written beside their
place: there a killed agent would leave them for ever."""
_MANIFEST = _OURS + "/manifest.json"
_LARGEST = 2**20
"""Bytes of a file that are sent back for a diff: a run script has some thousand."""


def write_files(request: Request) -> dict[str, Any]:
    """Write the files of the body, which are listed in `files` by path, size and mode.

    With `dry`, writes nothing. Answers for each file what became of it (see `WriteOutcome` in
    `patcher.profiles.rendered_file`) and, if another text is there, that text.
    """
    root = request.kept["root"]
    hashes = _json(os.path.join(root, _HASHES))
    sent = _json(os.path.join(root, _MANIFEST)).get("files", {})
    found = []
    at = 0
    for file in request.args["files"]:
        content = request.body[at : at + file["size"]]
        at += file["size"]
        found.append(_look(root, file["path"], content, file["mode"], hashes, sent))
    if not request.args.get("dry"):
        _write(root, found, hashes)
    return {"files": [{"path": one["path"], "outcome": one["outcome"], "there": one["there"]} for one in found]}


def _look(
    root: str, path: str, content: bytes, mode: int, hashes: dict[str, Any], sent: dict[str, Any]
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
        one["outcome"] = "written"
        return one
    except OSError as error:
        raise _unusable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        one["outcome"] = "foreign"
        return one
    try:
        there = files.read(place, files.SOURCE_BYTES)
    except OSError as error:
        raise _unusable(path, error) from error
    if there == content:
        one["outcome"] = "unchanged"
        one["chmod"] = stat.S_IMODE(status.st_mode) != mode and path not in sent
        return one
    text = there[:_LARGEST].decode("utf-8", "surrogateescape")
    one["there"] = text
    if path in sent:
        one["outcome"] = "foreign"
    elif hashes.get(path) == digest_of(there) or is_untouched(text):
        one["outcome"] = "updated"
    else:
        one["outcome"] = "kept" if path in hashes or is_rendered(text) else "foreign"
    return one


def _write(root: str, found: list[dict[str, Any]], hashes: dict[str, Any]) -> None:
    known = dict(hashes)
    staged: list[tuple[str, dict[str, Any]]] = []
    beside = os.path.join(root, _STAGED)
    try:
        for one in found:
            if one["outcome"] in ("written", "updated"):
                _make_our_folder(root)
                temporary = f"{beside}.{len(staged)}"
                staged.append((temporary, one))
                _stage(temporary, one["content"], one["mode"])
        for temporary, one in staged:
            os.replace(temporary, one["place"])
        for one in found:
            if one["chmod"]:
                os.chmod(one["place"], one["mode"])
            if one["outcome"] in ("written", "updated", "unchanged"):
                known[one["path"]] = digest_of(one["content"])
        if known != hashes:
            _make_our_folder(root)
            text = json.dumps(known, indent=1, sort_keys=True) + "\n"
            place = os.path.join(root, _HASHES)
            files.write_whole_file(place, text.encode("ascii"), mode=0o600, draft=f"{place}.new")
    except OSError as error:
        for temporary, _ in staged:
            try:
                os.unlink(temporary)
            except OSError:
                pass
        raise _unusable(found[0]["path"] if not staged else staged[-1][1]["path"], error) from error


def _make_our_folder(root: str) -> None:
    os.makedirs(os.path.join(root, _OURS), 0o700, exist_ok=True)
    disk.hide_from_git(os.path.join(root, layout.FOLDER))


def _stage(temporary: str, content: bytes, mode: int) -> None:
    """Write a file anew; one that an agent left which was killed goes first."""
    try:
        os.unlink(temporary)
    except FileNotFoundError:
        pass
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())


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


def _unusable(path: str, error: OSError) -> Refusal:
    return Refusal("unwritable", phrase("{path}: cannot be written", path=path), why(error))
