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
    """One file, or a symlink."""

    sha256: str
    """Of the content; of a symlink's target."""
    mode: int
    """Permission bits."""
    size: int
    """Bytes."""
    link: str | None = None
    """A symlink's target; None for a file."""


class Manifest(NamedTuple):
    """The files of a migration, by path below the tree's root, and where they come from."""

    files: dict[str, Entry]
    commit: str | None
    dirty: bool
    """Whether files had changes that are in no commit."""
    tool: str
    """The version of uky-patch that wrote it."""
    time: str
    """UTC in ISO 8601."""


class UnknownFormatError(ValueError):
    """The manifest was written by a newer version of the tool."""


def render(manifest: Manifest) -> bytes:
    """The manifest as JSON, with one line for each file, sorted."""
    head = {"format": FORMAT, "tool": manifest.tool, "time": manifest.time}
    head.update(commit=manifest.commit, dirty=manifest.dirty)
    lines = [
        json.dumps(path) + ": " + json.dumps(entry if entry.link is not None else entry[:3])
        for path, entry in sorted(manifest.files.items())
    ]
    return (json.dumps(head)[:-1] + ', "files": {\n' + ",\n".join(lines) + "\n}}\n").encode("ascii")


def parse(content: bytes) -> Manifest:
    """The inverse of `render`. Raises UnknownFormatError, and ValueError for anything that is no manifest."""
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
    """The manifest as it is sent over the connection; `unpack` is the inverse, and raises zlib.error or ValueError."""
    return zlib.compress(render(manifest), 1)


def unpack(content: bytes) -> Manifest:
    return parse(zlib.decompress(content))


def read(root: str) -> Manifest | None:
    """The manifest of the last migration to `root`; None if there was none. Raises Refusal if it cannot be read."""
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
    """Write the manifest of the tree at `root` in one step. Raises OSError."""
    place = os.path.join(root, MANIFEST)
    files.write_whole_file(place, render(manifest), draft=place + ".new")
