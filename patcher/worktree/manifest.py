"""What a migration brought: each file with its digest.

On the host it is `.uky-patch/host/manifest.json`. It tells the next migration what it may replace without a question.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import NamedTuple

from patcher.messages import Refusal, phrase, why
from patcher.worktree import files
from patcher.worktree.json_text import parse_json
from patcher.worktree.layout import MANIFEST

FORMAT = 1


class Entry(NamedTuple):
    """One file, or a symlink where there is a `link`: its target, of which `sha256` then is."""

    sha256: str
    mode: int
    size: int
    link: str | None = None


class Manifest(NamedTuple):
    """`tool` is the version that wrote it, `time` is UTC in ISO 8601, `dirty`: with changes that are in no commit."""

    files: dict[str, Entry]
    commit: str | None
    dirty: bool
    tool: str
    time: str


class UnknownFormatError(ValueError):
    """Written by a version of the tool that knows more than this one."""


def render(manifest: Manifest) -> bytes:
    """As JSON, one line a file, sorted."""
    head = {"format": FORMAT, "tool": manifest.tool, "time": manifest.time}
    head.update(commit=manifest.commit, dirty=manifest.dirty)
    lines = [
        json.dumps(path) + ": " + json.dumps(entry if entry.link is not None else entry[:3])
        for path, entry in sorted(manifest.files.items())
    ]
    return (json.dumps(head)[:-1] + ', "files": {\n' + ",\n".join(lines) + "\n}}\n").encode("ascii")


def parse(content: bytes) -> Manifest:
    """Raises UnknownFormatError, and ValueError for anything that is no manifest."""
    found = parse_json(content)
    try:
        if found["format"] != FORMAT:
            raise UnknownFormatError(found["format"])
        files = {path: _entry(*values) for path, values in found["files"].items()}
        return Manifest(files, found["commit"], bool(found["dirty"]), str(found["tool"]), str(found["time"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _entry(sha256: str, mode: int, size: int, link: str | None = None) -> Entry:
    if not (isinstance(sha256, str) and isinstance(mode, int) and isinstance(size, int)):
        raise ValueError("an entry is digest, mode, size")
    return Entry(sha256, mode & 0o777, size, link)


def pack(manifest: Manifest) -> bytes:
    """As it crosses the connection."""
    return zlib.compress(render(manifest), 1)


def unpack(content: bytes) -> Manifest:
    return parse(zlib.decompress(content))


def read(root: str) -> Manifest | None:
    """The manifest of the last migration into `root`; None when there was none. Raises Refusal."""
    try:
        return parse(files.read(os.path.join(root, MANIFEST), files.DATA_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refusal("manifest", phrase("{path}: cannot be read", path=MANIFEST), why(error)) from error
    except UnknownFormatError as error:
        cause = phrase("its format is {format}, and this uky-patch knows {known}", format=str(error), known=FORMAT)
        advice = phrase("Update uky-patch here: a newer one has been at work there.")
        raise Refusal("manifest", phrase("{path}: cannot be read", path=MANIFEST), cause, advice) from error
    except ValueError as error:
        advice = phrase("Remove it there. Files are then compared by content, and what differs is moved aside.")
        raise Refusal("manifest", phrase("{path}: damaged", path=MANIFEST), advice=advice) from error


def save(root: str, manifest: Manifest) -> None:
    """Replace the manifest in one step."""
    place = os.path.join(root, MANIFEST)
    files.write_whole_file(place, render(manifest), draft=place + ".new")
