"""Render one of a host's own files, compare it with what is there, and put it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.profiles import NAMES
from patcher.profiles.model import Put, Rendered
from patcher.remote.host import Profile
from patcher.session.host import named_host, reached, versions_on
from patcher.session.session import Session

RUN = "run.sh"
"""Stands for the run script of the host's profile."""
_FIELDS = ("python", "data", "models", "output")
_VARIABLES = {"triton_cache": "TRITON_CACHE_DIR", "hf_home": "HF_HOME", "gpus": "CUDA_VISIBLE_DEVICES"}
_VARIABLE = re.compile(r"[A-Z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shown:
    """A rendered file, and what became of it or would."""

    host: str
    file: Rendered
    put: Put


def render(
    session: Session, name: str, host: str | None, sets: Iterable[str], profile: Profile | None, *, write: bool
) -> Shown:
    """Render `name` for a host (None: this machine) and look what is there; with `write`, put it.

    Raises UsageError for a name or a setting that there is not, RecordError for a profile that cannot be used.
    """
    given = _given(name, sets)
    where = named_host(session, host, profile=profile, **given)
    path = f"run_{where.profile.replace('-', '_')}.sh" if name == RUN else name
    if path not in NAMES:
        names = ", ".join((*NAMES, RUN))
        raise UsageError(
            phrase("there is no file {name!r} to render", name=name), advice=phrase("There are: {names}", names=names)
        )
    if write and where.here and where.python is None:
        session.require_environment()
    from patcher.profiles import render_one
    from patcher.profiles.putting import put

    root = session.tree.root
    with reached(session, where, "render" if write else None) as found:
        file = render_one(path, found.host, found.survey, versions_on(session, found), root)
        (done,) = put(found.connection, (file,), dry=not write)
    return Shown(where.name, file, done)


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
