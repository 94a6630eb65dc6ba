"""The logs that are near a place where there is none: for an error that says what could have been meant."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from patcher.diagnose.folders import is_named_like_a_log, may_hold_logs
from patcher.diagnose.opening import opened
from patcher.diagnose.scanning import Scanner
from patcher.errors import UsageError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.records.symptoms import Symptom

Advice: TypeAlias = Phrase | Phrases | str

SHOWN = 5
_LOOKED_AT = 60
"""Files that are opened, the newest first."""
_SEEN = 50_000
"""Names that are looked at below a folder."""
_HEAD = 1 << 16


def logs_near(symptoms: Sequence[Symptom], place: Path, *, deep: bool = False) -> list[Path]:
    """The newest files of a folder that tell of a run, with `deep` those below it too; none where it cannot be read.

    Where `place` is a file, there or not, its folder counts, without itself, and names like its own come first.
    """
    folder = place if place.is_dir() else place.parent
    named = sorted(_named(folder, deep=deep), key=_changed, reverse=True)
    alike = difflib.get_close_matches(place.name, [one.name for one in named], n=SHOWN) if folder != place else []
    named = [*(one for one in named if one.name in alike), *(one for one in named if one.name not in alike)]
    scanner = Scanner(symptoms)
    found = (one for one in named[:_LOOKED_AT] if one != place and tells_of_a_run(scanner, one))
    return [one for one, _ in zip(found, range(SHOWN), strict=False)]


def tells_of_a_run(scanner: Scanner, file: Path) -> bool:
    """Whether the beginning or the end of a file holds anything of a training run."""
    try:
        with opened(str(file)) as stream:
            head = stream.read(_HEAD)
            tail = b""
            while piece := stream.read(1 << 20):
                tail = (tail + piece)[-_HEAD:]
    except UsageError:
        return False
    return not scanner.scan([(str(file), BytesIO(head + b"\n" + tail))]).blank


def advice_near(found: Sequence[Path], command: str, otherwise: Advice = "") -> Advice:
    """What to do next: the logs that were found, and the command for the first of them."""
    if not found:
        return otherwise
    names = ", ".join(map(str, found))
    first = f"{command} {shlex.quote(str(found[0]))}"
    return phrase("Logs of runs near it: {names}. For the first: {command}", names=names, command=first)


def _named(folder: Path, *, deep: bool) -> Iterator[Path]:
    seen = 0
    for at, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if may_hold_logs(one)] if deep else []
        seen += len(names)
        if seen > _SEEN:
            return
        yield from (Path(at) / name for name in names if is_named_like_a_log(name))


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
