"""In which releases of its package the line of code that failed stands, and since which release it is another one.

  File ".../site-packages/sglang/srt/managers/pool.py", line 203, in update
    free = self.pool.available_size()
NotImplementedError                 ▶ sglang 0.4.9 has this line, 0.4.10 has another there: a newer release may be right
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from packaging.version import Version

from patcher.diagnose.asking_code import folder_of
from patcher.diagnose.diagnosis import Explanation, FailedLine
from patcher.diagnose.exception_message import Matter
from patcher.diagnose.frame import Frame, distribution
from patcher.diagnose.parties import GIVES_ALL, party
from patcher.diagnose.release_search import final, first, release_folder
from patcher.errors import ReleaseError
from patcher.packages.releases import versions

_OF_CODE: frozenset[Matter] = frozenset(
    (
        "key", "none", "claim", "unwritten", "unprovided", "undefined-name", "index", "place", "empty", "unpacking",
        "type", "missing-attribute", "missing-argument", "unexpected-argument", "too-many-arguments", "argument-twice",
        "shape", "dtype", "device", "divisor", "deleted", "collective", "around", "words",
    )
)  # fmt: skip
"""Failures that code may cause. A file that is not there, or memory that is used up, is not one."""
NOT_OF_CODE = ("torch", "numpy", "pandas", "pyarrow")
"""Distributions that are large and rarely at fault: their callers are."""
_REFUSES = re.compile(r"\s*raise\s+\w")
_OF_A_SETTING = re.compile(r"\bassert\b.*\b(?:args|cfg|config)\.")
"""A line that refuses a setting: `assert self.args.scheduler in schedulers`."""
_SHORTEST = 12
"""Characters, without spaces, of a line that is looked for. A shorter one, as `return x`, stands in many places."""
_TELLING = 25
"""Characters above which a line that stands in another file of the package is taken for the same, moved."""
_MOST_SERIES = 12
"""Releases, far apart, that are searched for one with the line where the log does not tell the version."""


def failed_line(explanation: Explanation, known: Mapping[str, str]) -> FailedLine | None:
    """Find the first release after the installed one whose file no longer holds the line that failed.

    None where the line is of no package on the index, refuses something by its own words (`raise ValueError("…")`),
    still stands in the newest release, or stands in none, as in a tree with changes of its own.

    Args:
        known: versions by distribution.
    """
    parts, at, code = explanation.parts, explanation.at, _squeezed(explanation.line)
    name = party(at)
    if parts is None or at is None or not name or name in NOT_OF_CODE or parts.matter not in _OF_CODE:
        return None
    # Who gave what a line only hands on is at fault, however such a line is written later.
    if GIVES_ALL.search(explanation.line) or (parts.matter == "claim" and _OF_A_SETTING.search(explanation.line)):
        return None
    bare = parts.matter in ("unprovided", "claim")
    if len(code) < _SHORTEST or (_REFUSES.match(explanation.line) and not bare):
        return None
    inner, called = path_within(at, name), _called(explanation.line) if parts.matter in _OF_CALLEE else ""
    try:
        releases = final(versions(name))
    except ReleaseError:
        return None

    @cache
    def stands(release: str) -> bool | None:
        package = package_folder(name, release, inner)
        return None if package is None else _holds(package.parent / inner, code)

    @cache
    def asks(release: str) -> bool:
        """Whether the file still calls the same, with other arguments or in another statement."""
        package = package_folder(name, release, inner)
        return package is not None and bool(called) and _holds(package.parent / inner, called)

    having = release_with(releases, known.get(name, ""), stands)
    later = [one for one in releases if having and Version(one) > Version(having)]
    if not later or stands(later[-1]) is not False:
        return None
    changed = first(later[:-1], later[-1], lambda release: None if (found := stands(release)) is None else not found)
    changed = changed or later[0]
    if asks(changed):
        return None  # `self.engine.backward(loss, sync=True, **kwargs)` fails as `self.engine.backward(loss)` did.
    package = package_folder(name, changed, inner)
    if package is None or (len(code) >= _TELLING and _is_elsewhere(package, code)):
        return None
    return FailedLine(name, having if name in known else "", changed)


def release_with(
    releases: Sequence[str], known: str, stands: Callable[[str], bool | None], most: int = _MOST_SERIES
) -> str:
    """The known release if the line stands there; if none is known, the newest of `most` where it does, else ""."""
    if known:
        known = known.partition("+")[0]
        return known if known in releases and stands(known) else ""
    series = [one for one in releases[:-1] if not Version(one).micro]
    apart = max(1, -(-len(series) // most))
    return next((one for one in (*releases[-1:], *series[::-1][::apart]) if stands(one)), "")


def path_within(at: Frame, name: str) -> str:
    """The path of a frame's file below the folder of packages: `vllm/engine/llm.py`, also for a checkout."""
    folders = at.path.split("/")
    top = max((place for place, one in enumerate(folders[:-1]) if distribution(one) == name), default=0)
    return at.path if at.package else "/".join(folders[top:])


def package_folder(name: str, release: str, inner: str) -> Path | None:
    """The top folder of a file's package in the sources of a release; None where they cannot be had."""
    try:
        return folder_of(release_folder(name, release), inner.partition("/")[0])
    except ReleaseError:
        return None


def _squeezed(code: str) -> str:
    """Code without what formatters change: spaces, brackets around an expression, a comma at the end, quotes."""
    return re.sub(r",(?=[\])}])|[()\\]", "", re.sub(r"\s+", "", code)).replace("'", '"')


def _called(line: str) -> str:
    """What a line calls, without its arguments, as `_squeezed` has it; "" for a name that many lines may call."""
    found = _CALLS.search(line.split("\n")[0])
    name = _squeezed(found["name"]) if found is not None else ""
    return name if len(name) >= _SHORTEST_NAME else ""


_OF_CALLEE: frozenset[Matter] = frozenset(
    ("none", "missing-attribute", "unexpected-argument", "missing-argument", "too-many-arguments", "argument-twice")
)
"""Failures that are of what is called, whatever else stands in the line."""
_SHORTEST_NAME = 8
"""Characters of a name that is looked for. A shorter one, as `update`, is called in many places."""
_CALLS = re.compile(r"(?P<name>[A-Za-z_][\w.]*)\(")


def _holds(file: Path, code: str) -> bool:
    try:
        return code in _squeezed(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False


def _is_elsewhere(package: Path, code: str) -> bool:
    """Whether another file of the package holds the line."""
    return any(_holds(file, code) for file in package.rglob("*.py"))
