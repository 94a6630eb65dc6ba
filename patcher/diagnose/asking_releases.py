"""Which releases of the asking package still ask for a name that another package lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from packaging.version import Version

from patcher.diagnose.asking_code import still_asks
from patcher.diagnose.diagnosis import Direction
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.frame import Frame, distribution
from patcher.diagnose.release_search import Has, final, first, negated, release_folder
from patcher.errors import ReleaseError
from patcher.packages.releases import versions

_MOST = 10
"""Releases that are searched: fewer than of the package that lacks the name, as this only adds to that answer."""


def with_asker(found: Direction, at: Frame, parts: MessageParts, known: Mapping[str, str]) -> Direction:
    """The direction, with the package whose code asks and the releases of that which do not. Raises OutOfTimeError."""
    if found.removed_in:
        return replace(found, asker=distribution(at.package), asks_until=_asks_until(at, found, parts, known))
    if found.added_in:
        return replace(found, asker=distribution(at.package), asks_since=_asks_since(at, found, parts, known))
    return found


def _word(found: Direction, parts: MessageParts) -> str:
    """The word by which code asks for what is missing."""
    return parts.symbol if parts.matter == "missing-module" else re.split(r"[.(]", found.symbol.rstrip(")"))[-1]


def _asking(name: str, at: Frame, word: str) -> Has:
    """Whether a release of the asking package uses a word in the file of a frame."""

    @cache
    def asks(release: str) -> bool | None:
        try:
            return still_asks(release_folder(name, release), at.path, word)
        except ReleaseError:
            return None

    return asks


def _asks_since(at: Frame, found: Direction, parts: MessageParts, known: Mapping[str, str]) -> str:
    """The first release of the asking package whose file contains the name; "" where all of them do, or where that is
    not known."""
    name, word = distribution(at.package), _word(found, parts)
    try:
        releases = final(versions(name))
    except ReleaseError:
        return ""

    asks = _asking(name, at, word)
    here = known.get(name, "").partition("+")[0] or next(reversed(releases), "")
    if here not in releases or not asks(here):
        return ""
    return first(releases[: releases.index(here)], here, asks, most=_MOST, left_out=0) or ""


def _asks_until(at: Frame, found: Direction, parts: MessageParts, known: Mapping[str, str]) -> str:
    """The first newer release of the asking package whose file does not contain the name; "" where none is known."""
    name, word = distribution(at.package), _word(found, parts)
    try:
        releases = final(versions(name))
    except ReleaseError:
        return ""
    here = known.get(name, "0")
    later = [one for one in releases if Version(one) > Version(here)]

    asks = _asking(name, at, word)

    def asks_no_more(release: str) -> bool | None:
        return negated(asks(release))

    if not later or not asks_no_more(later[-1]):
        return ""
    # If the installed release does not have the word either, the name came from `getattr(module, name)`.
    if name in known and asks_no_more(here.partition("+")[0]) is not False:
        return ""
    # If the installed release is unknown, the oldest one may never have asked.
    return first(later, later[-1], asks_no_more, most=_MOST, left_out=0) or (later[0] if name in known else "")
