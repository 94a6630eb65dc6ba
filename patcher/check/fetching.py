"""The sources of many releases at once, a few at a time; one that cannot be had does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.check.matrix import Missing
from patcher.errors import ReleaseError
from patcher.i18n import Phrases, phrase
from patcher.packages.agent.folders import MODULES
from patcher.packages.releases import sources

if TYPE_CHECKING:
    from patcher.packages.releases import Progress

AT_ONCE = 4
"""Transfers at a time: an index is shared with others."""


def fetch_sources(package: str, releases: Sequence[str], progress: Progress) -> dict[str, Path | Missing]:
    """The folder that holds the package, for each release in the order given, or why there is none."""
    found: dict[str, Path | Missing] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {pool.submit(_fetch, package, release): release for release in releases}
        try:
            for done in as_completed(asked):
                found[asked[done]] = done.result()
                fields = {"name": package, "done": len(found), "total": len(releases)}
                progress(phrase("sources of {name}: {done} of {total} {total:release|releases}", **fields), 0, None)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    progress("", 0, None)
    return {release: found[release] for release in releases}


def _fetch(package: str, release: str) -> Path | Missing:
    try:
        folder = sources(package, release)
    except ReleaseError as error:
        return Missing(release, Phrases((error.title, error.cause)))
    module = folder / MODULES.get(package, package.replace("-", "_"))
    if not module.is_dir():
        return Missing(release, phrase("its files hold no package {name}", name=module.name))
    return module
