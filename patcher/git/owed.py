"""What is being written and not yet committed: a note in git's folder of the checkout, so that a later run commits it.

The note is on the disk before the first file is replaced and goes when the branch has moved. It lies beside git's
index, not in the tool's own folder, which goes when the last record is taken out.
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
from patcher.git.series import REMOVED, Stored
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
    """Commits to be made, and the SHA-256 that each file has, by its path below the tree's root, when they may be."""

    steps: tuple[Stored, ...]
    shas: Mapping[str, str]


def write(checkout: Checkout, owed: Owed) -> None:
    """Put the note on the disk. Raises TreeError where that fails."""
    steps = [{"message": step.message, "blobs": dict(step.blobs)} for step in owed.steps]
    data = {"format": FORMAT, "steps": steps, "files": dict(owed.shas)}
    place = _place(checkout)
    try:
        files.write_whole_file(place, json.dumps(data, indent=1).encode(), mode=0o600)
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be written, so nothing was changed", path=place)) from error


def read(checkout: Checkout) -> Owed | None:
    """The note that an earlier run has left; None where there is none.

    Raises:
        TreeError: it cannot be read, or is damaged.
    """
    place = _place(checkout)
    try:
        data = parse_json(files.read(place, files.DATA_BYTES))
        if data["format"] != FORMAT:
            raise ValueError
        steps = tuple(Stored(str(step["message"]), _blobs(step["blobs"])) for step in data["steps"])
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
    """Take the note away; none is fine. Raises TreeError where that fails."""
    place = _place(checkout)
    try:
        place.unlink(missing_ok=True)
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be removed", path=place)) from error


def _place(checkout: Checkout) -> Path:
    """One for each tree: several may lie in one checkout."""
    suffix = f"-{digest_of(os.fsencode(checkout.prefix))[:12]}" if checkout.prefix else ""
    return checkout.repository.folder / f"uky-patch-commit{suffix}.json"


def _blobs(entry: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    found = {str(path): (mode, blob) for path, (mode, blob) in entry.items()}
    if not all(entry == REMOVED or (entry[0] in _MODES and _BLOB.fullmatch(entry[1])) for entry in found.values()):
        raise ValueError
    return found
