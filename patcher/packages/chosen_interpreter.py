"""Which interpreter counts: --python, `python` of uky-patch.toml, $VIRTUAL_ENV, $CONDA_PREFIX, or the running one.

Where it imports from is read off its files where their layout is known. Only else is it run, and one that the tree
names only if the user trusts the tree.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patcher.errors import EnvironmentProbeError, RecordError
from patcher.i18n import Phrases
from patcher.i18n import phrase as sentence
from patcher.i18n.codec import decode
from patcher.messages import phrase
from patcher.packages.agent.interpreter import ASK_SECONDS, Interpreter, Unusable, executable, read, running

ChosenBy = Literal["option", "settings", "activation", "default"]
"""What an interpreter was chosen by: --python, uky-patch.toml, an activated environment, or nothing at all."""


@dataclass(frozen=True, slots=True)
class NamedPython:
    """The interpreter that the uky-patch.toml of the tree at `root` names."""

    path: Path
    place: str
    """`uky-patch.toml:3`, the line that names it."""
    root: Path


def find_interpreter(python: Path | None, named: NamedPython | None = None) -> tuple[Interpreter, ChosenBy]:
    """Take `python` (executable, environment or its bin folder), else what the tree names, else the active environment.

    Without any of these it is the interpreter that this process runs in. What the tree names is read off its files; it
    is only run where they do not tell, and the user trusts the tree.

    Raises EnvironmentProbeError where `python` cannot be used, RecordError where what the tree names cannot.
    """
    if python is not None:
        try:
            return _read(python), "option"
        except Unusable as error:
            advice = "Give --python an interpreter, a virtual environment or its bin folder."
            raise EnvironmentProbeError(decode(error.title), cause=decode(error.cause), advice=advice) from error
    if named is not None:
        return _as_named(named), "settings"
    problems = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = os.environ.get(variable, "")
        if not value.startswith("/"):  # A relative one means whatever lies where one stands.
            continue
        try:
            found = _read(Path(value))
        except Unusable as error:
            passed = "${variable} is {value}, which is passed over: {why}"
            problems.append(phrase(passed, variable=variable, value=value, why=error.title))
            continue
        note = phrase("the environment is that of ${variable}", variable=variable)
        chosen: ChosenBy = "activation"
        break
    else:
        found, chosen = running(), "default"
        note = phrase("the environment is the one that uky-patch itself runs in")
    return found._replace(problems=(*problems, *found.problems), notes=(*found.notes, note)), chosen


def _as_named(named: NamedPython) -> Interpreter:
    from patcher.trust import is_trusted

    try:
        python = executable(named.path)
        if not os.access(python, os.X_OK):
            raise Unusable(phrase("cannot use {path}", path=python), phrase("it is not there, or may not be run"))
        return read(python, ASK_SECONDS if is_trusted(named.root) else None)
    except Unusable as error:
        raise RecordError(
            sentence("{place}: python names no interpreter that can be used", place=named.place),
            cause=Phrases((decode(error.title), decode(error.cause)), ": "),
            advice=sentence("Write the path of the interpreter that trains there, or name it with --python."),
        ) from error


def _read(given: Path) -> Interpreter:
    python = executable(given)
    return running() if python == Path(sys.executable) else read(python)
