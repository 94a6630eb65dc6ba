"""The scripts that globs name, read; what could not be read is told."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from patcher.analysis.model import Use
from patcher.check.scripts.kinds import reader_of
from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.worktree import files


def script_uses(file: str, text: str) -> tuple[tuple[Use, ...], tuple[Phrase, ...]]:
    """The uses in a script, in its order, and what of it was not understood. `file` is how findings name it."""
    reader = reader_of(file, text)
    if reader is None:
        return (), (phrase("{file} is not a kind of script that is read", file=file),)
    uses: dict[Use, None] = {}
    notes: list[Phrase] = []
    last = 1
    try:
        for found in reader(file, text, 1):
            last = found.line
            if isinstance(found, Use):
                uses[found] = None
            else:
                notes.append(phrase("{file} is not understood from line {line} on", file=file, line=last))
    except RecursionError:
        notes.append(phrase("{file} is not understood from line {line} on", file=file, line=last))
    return tuple(uses), tuple(notes)


def uses_of_scripts(root: Path, globs: Iterable[str]) -> tuple[tuple[Use, ...], tuple[Phrase, ...]]:
    """The uses in the files that the globs name, below `root` or by an absolute path, and what could not be read.

    Raises UsageError for a glob that no file matches: a check of nothing would pass for a check without findings.
    """
    uses: list[Use] = []
    notes: list[Phrase] = []
    for pattern in globs:
        paths = _matching(root, pattern)
        if not paths:
            raise UsageError(
                phrase("no file matches {pattern}", pattern=repr(pattern)),
                cause=phrase("it was looked for below {folder}", folder=root),
                advice=phrase("Quote it, so that the shell leaves it alone: --scripts 'examples/**/*.sh'"),
            )
        for path in paths:
            name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            try:
                place = files.inside(root, path) if path.is_relative_to(root) else path
                text = files.read_text(place, files.SETTINGS_BYTES, encoding="utf-8-sig", follow=True)
            except (OSError, UnicodeDecodeError) as error:
                notes.append(phrase("{file} cannot be read: {problem}", file=name, problem=error))
                continue
            found, told = script_uses(name, text)
            uses += found
            notes += told
    return tuple(dict.fromkeys(uses)), tuple(notes)


def _matching(root: Path, pattern: str) -> list[Path]:
    base, relative = (root, pattern) if not Path(pattern).is_absolute() else (Path("/"), pattern.lstrip("/"))
    try:
        found = {path for path in base.glob(relative) if path.is_file()}
    except (ValueError, NotImplementedError):
        return []
    return sorted(found)
