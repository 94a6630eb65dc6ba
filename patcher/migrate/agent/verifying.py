"""Check that the tree on this machine is the one that was sent: hashes, marked lines, the ledger. Reads only."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from patcher.messages import Message, phrase, why
from patcher.remote.agent.place import root as root_of
from patcher.worktree import files, hashing, layout, manifest
from patcher.worktree.digest_cache import DigestCache
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request


def verify(request: Request) -> dict[str, Any]:
    """Read every file of the manifest, the body, and count the lines that are marked with `word` in the files `marked`.

    With `stamps`, files whose size and times are as when they were last read are not read again. Answers `wrong`: the
    reason by path; `marks`: the marked lines by record, by path; `ledger`: the ids of its records, None if there is no
    ledger, or a message if it cannot be read.
    """
    root = root_of(request)
    wanted = manifest.unpack(request.body).files
    marked = request.args["marked"]
    return {
        "wrong": _wrong(root, wanted, stamps=bool(request.args.get("stamps"))),
        "marks": {path: _marks(root, path, request.args["word"]) for path in marked},
        "ledger": _ledger(root),
    }


def _wrong(root: str, wanted: dict[str, manifest.Entry], *, stamps: bool) -> dict[str, Message]:
    paths = [path for path, entry in wanted.items() if entry.link is None]
    known = DigestCache(root, os.path.join(root, layout.DIGESTS))
    found, failed = known.digests(paths) if stamps else hashing.digests(root, paths)
    wrong = {path: _missing(error) for path, error in failed.items()}
    for path, entry in wanted.items():
        if entry.link is not None:
            problem = _link(os.path.join(root, path), entry.link)
            if problem is not None:
                wrong[path] = problem
        elif path in found and found[path].sha256 != entry.sha256:
            wrong[path] = phrase("has another content")
    return wrong


def _link(place: str, target: str) -> Message | None:
    try:
        there = os.readlink(place)
    except OSError as error:
        return _missing(error) if not os.path.lexists(place) else phrase("is no symlink")
    return None if there == target else phrase("leads to {target}", target=there)


def _missing(error: OSError) -> Message:
    return phrase("is not there") if isinstance(error, (FileNotFoundError, NotADirectoryError)) else why(error)


def _marks(root: str, path: str, word: str) -> dict[str, int]:
    try:
        place = files.inside(root, os.path.join(root, path))  # A record may name a file by a symlink in the tree.
        return marked_lines(files.read(place, files.SOURCE_BYTES).decode("utf-8", "replace"), word)
    except OSError:
        return {}


def _ledger(root: str) -> Any:
    try:
        return sorted(parse_json(files.read(os.path.join(root, layout.LEDGER), files.SOURCE_BYTES))["records"])
    except FileNotFoundError:
        return None
    except OSError as error:
        return why(error)
    except (ValueError, KeyError, TypeError) as error:
        return phrase("it is damaged: {problem}", problem=str(error))


def marked_lines(text: str, word: str) -> dict[str, int]:
    """How many lines each record has marked: with `# WORD[record]`, or `# WORD[one, two]` for both."""
    pattern = re.compile(rf"#[ \t]*{re.escape(word)}\[([^\]\r\n]*)\]", re.IGNORECASE)
    found: dict[str, int] = {}
    for line in text.splitlines():
        names = {name.strip() for match in pattern.finditer(line) for name in match[1].split(",")}
        for name in names:
            found[name] = found.get(name, 0) + 1
    return found
