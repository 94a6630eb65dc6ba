"""Search the releases of a package, oldest first, for the first one that shows something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from packaging.version import InvalidVersion, Version

from patcher.check import targets
from patcher.check.history import Bisection
from patcher.diagnose.fetch_limit import is_over, pass_over
from patcher.errors import ReleaseError

_MOST_LOOKS = 20
"""Releases searched for one name. Halving a thousand releases takes ten; before that, up to six are searched backwards
from the last one."""
_LEFT_OUT = 12
"""Releases searched besides, where none of those shows it: a name may have been there in one series only."""
_DECIDED = 3
"""Releases before the one that is found of which one at least must tell that it does not show it."""
Has = Callable[[str], "bool | None"]
"""Whether a release has something; None where its sources do not tell, or cannot be had."""


def first(
    releases: Sequence[str], target: str, shows: Has, *, most: int = _MOST_LOOKS, left_out: int = _LEFT_OUT
) -> str | None:
    """The first release that shows it, of the last series of such releases up to the target; None where all of them do.

    Searched first are the first releases of each minor series (`1.2.0`), then those between two of them. That takes
    fewer searches than halving some hundred releases, and does not miss a name that only some series had.
    """

    def look(release: str, wanted: AbstractSet[str]) -> AbstractSet[str] | None:
        found = shows(release)
        return None if found is None else wanted if found else frozenset()

    def bisect(among: Sequence[str], end: str) -> str | None:
        found = Bisection(among, {"it"}, look, end, most=most, extra=left_out).run()["it"]
        # Of jax 0.4 to 0.8 nobody knows whether a `__getattr__` of its own serves the name, so 0.9 is not the first.
        before = among[: among.index(found)] if found in among else among
        return found if any(shows(one) is not None for one in before[-_DECIDED:]) else None

    series = [one for one in releases if not Version(one).micro]
    found = bisect(series, target)
    if found is None or found not in releases:
        return bisect(releases, target) if len(series) < len(releases) else found
    before = series.index(found) if found in series else len(series)  # The target need not be the first of a series.
    since = releases.index(series[before - 1]) if before else 0
    return bisect(releases[since : releases.index(found)], found) or found


def final(releases: Sequence[str]) -> list[str]:
    """The releases in order, without pre-releases and those whose version is no version of PEP 440."""
    found = []
    for one in releases:
        try:
            version = Version(one)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            found.append((version, one))
    return [one for _, one in sorted(found)]


def release_folder(name: str, release: str) -> Path:
    """As that of `check`. Raises OutOfTimeError where the release had to be fetched and the time is over."""
    if not is_over():
        return targets.release_folder(name, release)
    try:
        return targets.release_folder(name, release, offline=True)
    except ReleaseError:
        pass_over(name, release)


def negated(value: bool | None) -> bool | None:
    """The opposite of what a release tells; None where it tells nothing."""
    return None if value is None else not value
