"""Commits that an apply still owes: a note in `.git`, so that after a crash the next run makes them.

The note is written before the first file is replaced, and removed when the branch has moved. It is not in the tool's
own folder, because that is removed with the last record.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import TreeError
from patcher.git.checkout import Checkout
from patcher.git.series import REMOVED, StoredCommit
from patcher.i18n import phrase
from patcher.tree.errors import tree_error
from patcher.worktree import files
from patcher.worktree.hashing import digest_of
from patcher.worktree.json_text import parse_json

FORMAT = 1
_BLOB = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MODES = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class Owed:
    """Commits to make once the files are written."""

    steps: tuple[StoredCommit, ...]
    shas: Mapping[str, str]
    """The SHA-256 that each file must have for that, by its path below the tree's root."""


def write(checkout: Checkout, owed: Owed) -> None:
    """Write the note. Raises TreeError if that fails."""
    steps = [{"message": step.message, "blobs": dict(step.blobs)} for step in owed.steps]
    data = {"format": FORMAT, "steps": steps, "files": dict(owed.shas)}
    place = _place(checkout)
    try:
        files.write_whole_file(place, json.dumps(data, indent=1).encode(), mode=0o600)
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be written, so nothing was changed", path=place)) from error


def read(checkout: Checkout) -> Owed | None:
    """The note of an earlier run; None if there is none.

    Raises:
        TreeError: it cannot be read, or is damaged.
    """
    place = _place(checkout)
    try:
        data = parse_json(files.read(place, files.DATA_BYTES))
        if data["format"] != FORMAT:
            raise ValueError
        steps = tuple(StoredCommit(str(step["message"]), _blobs(step["blobs"])) for step in data["steps"])
        return Owed(steps, {str(path): str(sha) for path, sha in data["files"].items()})
    except FileNotFoundError:
        return None
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be read", path=place)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TreeError(
            phrase("{path}: damaged", path=place),
            cause=phrase("it says what an interrupted apply has written and not committed"),
            advice=phrase("See with git status what is not committed, commit it, and remove that file."),
        ) from error


def remove(checkout: Checkout) -> None:
    """Remove the note if there is one. Raises TreeError if that fails."""
    place = _place(checkout)
    try:
        place.unlink(missing_ok=True)
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be removed", path=place)) from error


def _place(checkout: Checkout) -> Path:
    """The note's path. Its name has a digest of the tree's folder, as several trees may lie in one checkout."""
    suffix = f"-{digest_of(os.fsencode(checkout.prefix))[:12]}" if checkout.prefix else ""
    return checkout.repository.folder / f"uky-patch-commit{suffix}.json"


def _blobs(entry: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Mode and blob hash by path. Raises ValueError for anything that `write` does not write."""
    found = {str(path): (mode, blob) for path, (mode, blob) in entry.items()}
    if not all(entry == REMOVED or (entry[0] in _MODES and _BLOB.fullmatch(entry[1])) for entry in found.values()):
        raise ValueError
    return found
