"""Render a host's own files: git_ignore.py and the run scripts, from templates, for its paths and versions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.profiles import git_ignore, kubernetes, run_script
from patcher.profiles.layout import layout_on
from patcher.profiles.rendered_file import NAMES, Rendered, WrittenFile, write_files
from patcher.remote.host import Host, Profile
from patcher.remote.survey import Survey
from patcher.session.hosts import host_for_session, reach_host, versions_on_host
from patcher.session.session import Session

RUN = "run.sh"
"""Stands for the run script of the host's profile."""
_FIELDS = ("python", "data", "models", "output")
_VARIABLES = {"triton_cache": "TRITON_CACHE_DIR", "hf_home": "HF_HOME", "gpus": "CUDA_VISIBLE_DEVICES"}
_VARIABLE = re.compile(r"[A-Z_][A-Za-z0-9_]*", re.ASCII)


def render_all(host: Host, survey: Survey | None, versions: Mapping[str, str], tree_root: Path) -> tuple[Rendered, ...]:
    """All files of `NAMES` for a host. `versions` are the host's by name, verl's among them; `tree_root` is here.

    A note that concerns several files is with the first of them. Raises RecordError for a profile that cannot be used.
    """
    seen: set[str] = set()
    files = []
    for name in NAMES:
        file = render_one(name, host, survey, versions, tree_root)
        fresh = tuple(note for note in file.notes if str(note) not in seen)
        seen |= {str(note) for note in fresh}
        files.append(replace(file, notes=fresh))
    return tuple(files)


def render_one(name: str, host: Host, survey: Survey | None, versions: Mapping[str, str], tree_root: Path) -> Rendered:
    """The file `name`, one of `NAMES`, with all of its notes. Raises RecordError for a profile that cannot be used."""
    where = layout_on(host, survey, tree_root)
    if name == git_ignore.NAME:
        return git_ignore.git_ignore(host, where, tree_root)
    return run_script.run_script(host, survey, versions, tree_root, where, run_script.NAMES[name])


@dataclass(frozen=True, slots=True)
class RenderedOnHost:
    """A rendered file, and what became of it or would; None for a manifest, which has no place on the host."""

    host: str
    file: Rendered
    written: WrittenFile | None


def render_file(
    session: Session,
    name: str,
    host: str | None,
    sets: Iterable[str],
    profile: Profile | None,
    *,
    write: bool,
    diff: bool = False,
) -> RenderedOnHost:
    """Render `name` for a host (None: this machine) and compare it with what is there; with `write`, write it.

    A manifest is only rendered: with `write` or `diff` it is an error.

    Raises UsageError for a name or a setting that there is not, RecordError for a profile that cannot be used.
    """
    given = _given(name, sets)
    where = host_for_session(session, host, profile=profile, **given)
    if name in kubernetes.NAMES:
        if write or diff:
            command = shlex.join(["uky-patch", "render", name, *(("--host", host) if host is not None else ())])
            raise UsageError(
                phrase("{name}: is not put on the host", name=name),
                advice=phrase("Give it to kubectl: {command} | kubectl apply -f -", command=command),
            )
        return RenderedOnHost(where.name, kubernetes.manifest(where, name), None)
    path = run_script.script_name(where.profile) if name == RUN else name
    if path not in NAMES:
        names = ", ".join((*NAMES, RUN, *kubernetes.NAMES))
        raise UsageError(
            phrase("there is no file {name!r} to render", name=name), advice=phrase("There are: {names}", names=names)
        )
    if write and where.here and where.python is None:
        session.require_environment()
    root = session.tree.root
    with reach_host(session, where, "render" if write else None) as found:
        file = render_one(path, found.host, found.survey, versions_on_host(session, found), root)
        (written,) = write_files(found.connection, (file,), dry=not write)
    return RenderedOnHost(where.name, file, written)


def _given(name: str, sets: Iterable[str]) -> dict[str, Any]:
    """`--set` as keys of a host's table: a field, a variable, a constant of git_ignore.py, or a hydra override."""
    given: dict[str, Any] = {}
    for text in sets:
        key, separator, value = text.partition("=")
        if text.startswith("~") or (separator and (key.startswith("+") or "." in key)):
            given.setdefault("overrides", []).append(text)
        elif not separator or not key:
            raise UsageError(
                phrase("--set {text!r} cannot be read", text=text), advice=phrase("Write it as KEY=VALUE.")
            )
        elif key in _FIELDS:
            given[key] = value
        elif key in _VARIABLES or _VARIABLE.fullmatch(key):
            table = "constants" if name == "git_ignore.py" else "env"
            given.setdefault(table, {})[_VARIABLES.get(key, key)] = value
        else:
            known = ", ".join((*_FIELDS, *_VARIABLES))
            advice = phrase("There are {names}; else a VARIABLE, or a hydra.key.", names=known)
            raise UsageError(phrase("--set: there is no {key!r}", key=key), advice=advice)
    return given
