"""A host's own files: git_ignore.py and the run scripts, rendered from templates for its paths and versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.homes import home

if TYPE_CHECKING:
    from patcher.profiles.layout import Layout
    from patcher.profiles.model import Rendered
    from patcher.remote.host import Host
    from patcher.remote.survey import Survey

NAMES = ("git_ignore.py", "run_standard.sh", "run_debug.sh", "run_fast_load.sh")
"""All files that are rendered, below the tree's root. They belong to each host and are not sent."""


def render_all(host: Host, survey: Survey | None, versions: Mapping[str, str], tree_root: Path) -> tuple[Rendered, ...]:
    """All files of `NAMES` for a host. `versions` are the host's by name, verl's among them; `tree_root` is here.

    A note that concerns several files is with the first of them. Raises RecordError for a profile that cannot be used.
    """
    told: set[str] = set()
    found = []
    for name in NAMES:
        file = render_one(name, host, survey, versions, tree_root)
        fresh = tuple(note for note in file.notes if str(note) not in told)
        told |= {str(note) for note in fresh}
        found.append(replace(file, notes=fresh))
    return tuple(found)


def render_one(name: str, host: Host, survey: Survey | None, versions: Mapping[str, str], tree_root: Path) -> Rendered:
    """The file `name`, one of `NAMES`, with all of its notes. Raises RecordError for a profile that cannot be used."""
    from patcher.profiles import git_ignore, run_script

    where = where_on(host, survey, tree_root)
    if name == git_ignore.NAME:
        return git_ignore.git_ignore(host, where, tree_root)
    return run_script.run_script(host, survey, versions, tree_root, where, run_script.NAMES[name])


def where_on(host: Host, survey: Survey | None, tree_root: Path) -> Layout:
    """The host's paths by constant. Without a survey the home and the tree are this machine's."""
    from patcher.profiles.layout import layout

    if survey is not None:
        return layout(host, survey.home, survey.place.path)
    return layout(host, str(home()), str(tree_root))
