"""What was edited on this machine in the tree that a migration brought, and which files are new in it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Iterator

from patcher.messages import Refusal, phrase, why
from patcher.migrate.agent.comparing import differ
from patcher.remote.agent.place import OURS
from patcher.remote.agent.place import root as root_of
from patcher.worktree import disk, files, layout, manifest, path_guard
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request
    from patcher.worktree.manifest import Manifest

LARGEST = 8 << 20
"""The largest file, in bytes, that is read for a diff. A guess: it is sent and held in memory."""
MOST_NEW = 2000
"""The most new files that are listed. A guess: nobody reads more."""
_SKIPPED = (layout.FOLDER, layout.KEPT, ".git", "__pycache__")
_RENDERED = OURS + "/rendered.json"


def list_edits(request: Request) -> dict[str, Any]:
    """Compare the tree with the manifest of the last migration. Reads only.

    Answers `edits`: path, change (see `Change` of `patcher.migrate.host_edits`) and the digest that was sent; `new`:
    files in folders of sent files, new folders as `name/`, and the files in those that `within` names; `more`: the
    number of further new files; `commit`: the commit that was sent.
    """
    root = root_of(request)
    sent = manifest.read(root)
    if sent is None:
        advice = phrase("Migrate to it first, or name the folder that was migrated to with --path.")
        raise Refusal("none", phrase("{path}: no migration has brought it there", path=root), None, advice)
    found = differ(root, sent, sent)
    edits = []
    for path in found.send:
        if not path.startswith(layout.FOLDER + "/"):
            how = "gone" if path in found.absent else _how(os.path.join(root, path), sent.files[path].link is not None)
            edits.append([path, how, sent.files[path].sha256])
    new = sorted(_new(root, sent, request.args.get("within", [])))
    return {"edits": edits, "new": new[:MOST_NEW], "more": max(0, len(new) - MOST_NEW), "commit": sent.commit}


def _how(place: str, was_link: bool) -> str:
    """The kind of change of a file that exists and is not as it was sent."""
    there = os.lstat(place)
    if was_link or not stat.S_ISREG(there.st_mode):
        return "link"
    return "large" if there.st_size > LARGEST else "edited"


def _new(root: str, sent: Manifest, within: list[str]) -> Iterator[str]:
    """What is in the folders of sent files and was neither sent nor rendered."""
    known = {*sent.files, *_rendered(root)}
    folders = {""}
    for path in sent.files:
        while os.path.dirname(path) not in folders:
            path = os.path.dirname(path)
            folders.add(path)
    for folder in sorted(folders):
        if folder.split("/")[0] in _SKIPPED or not _is_plain(root, folder):
            continue
        for name in disk.names(os.path.join(root, folder)):
            path = folder + "/" + name if folder else name
            there = disk.status(os.path.join(root, path))
            if there is None or path in known or path in folders or name in _SKIPPED:
                continue
            if stat.S_ISREG(there.st_mode) and not name.endswith(".pyc"):
                yield path
            elif stat.S_ISDIR(there.st_mode):
                yield path + "/"
                if any((path + "/").startswith(one + "/") or one.startswith(path + "/") for one in within):
                    below = disk.files_below(os.path.join(root, path))
                    yield from (f"{path}/{one}" for one in below if not one.endswith(".pyc"))


def _is_plain(root: str, folder: str) -> bool:
    """Whether it is a real folder of the tree. A symlink may lead to a data set with a million files."""
    place = os.path.join(root, folder) if folder else root
    return os.path.realpath(place) == place and os.path.isdir(place)


def _rendered(root: str) -> list[str]:
    """The paths of the files that were written from templates: `git_ignore.py` and run scripts."""
    try:
        found = parse_json(files.read(os.path.join(root, _RENDERED), files.SOURCE_BYTES))
    except (OSError, ValueError):
        return []
    return list(found) if isinstance(found, dict) else []


def read_files(request: Request) -> dict[str, Any]:
    """The bytes of the files `paths`, one after another in the body of the answer.

    Answers their `sizes`, -1 for a file that is missing, too large or no regular file.
    """
    root = root_of(request)
    guard = path_guard.PathGuard(root)
    sizes, contents = [], []
    for path in request.args["paths"]:
        path_guard.check(path)
        content = _content(root, path) if guard.has_folder(path) else None
        sizes.append(-1 if content is None else len(content))
        contents.append(content or b"")
    request.reply_body = b"".join(contents)
    return {"sizes": sizes}


def _content(root: str, path: str) -> bytes | None:
    place = os.path.join(root, path)
    there = disk.status(place)
    if there is None or not stat.S_ISREG(there.st_mode) or there.st_size > LARGEST:
        return None
    try:
        return files.read(place, LARGEST)
    except OSError as error:
        raise Refusal("unreadable", phrase("{path}: cannot be read", path=path), why(error)) from error
