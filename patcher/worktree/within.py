"""Whether a path leads into a folder."""

from __future__ import annotations

import os


def lies_in(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether `path` is `folder` or below it: as it is written, or by where its links lead."""
    real = os.path.join(os.path.realpath(folder), "")
    return any(os.path.join(place, "").startswith(real) for place in (os.path.abspath(path), os.path.realpath(path)))


def leads_into(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether `path` with all links resolved is `folder` or below it."""
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))
