"""Which interpreter is meant, and which folders it imports from, read off the files where the layout is known."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from patcher.agent.installed.interpreter import SITE_NAMES, executable, read
from patcher.agent.installed.layout import Interpreter, Unusable
from patcher.agent.said import Said, phrase
from patcher.errors import EnvironmentProbeError
from patcher.language.heard import heard


def find_interpreter(python: Path | None) -> Interpreter:
    """Take `python` (executable, environment or its bin folder), else the active environment, else this interpreter."""
    if python is not None:
        try:
            return _read(python)
        except Unusable as error:
            advice = "Give --python an interpreter, a virtual environment or its bin folder."
            raise EnvironmentProbeError(heard(error.title), cause=heard(error.cause), advice=advice) from error
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
        return _with(found, tuple(problems), (phrase("the environment is that of ${variable}", variable=variable),))
    return _with(_running(), tuple(problems), (phrase("the environment is the one that uky-patch itself runs in"),))


def _with(found: Interpreter, problems: tuple[Said, ...], notes: tuple[Said, ...]) -> Interpreter:
    return Interpreter(
        found.python, found.version, found.site, found.extra, problems + found.problems, found.notes + notes
    )


def _running() -> Interpreter:
    """Take this process's own path; what follows its site folders was added by their `.pth` files."""
    entries = sys.path if getattr(sys.flags, "safe_path", False) else sys.path[1:]
    folders = [folder for folder in map(Path, filter(None, entries)) if folder.is_dir()]
    site = [folder for folder in folders if folder.name in SITE_NAMES]
    stdlib = {Path(os.__file__).parent, Path(os.__file__).parent / "lib-dynload"}
    before = folders[: folders.index(site[0])] if site else folders
    extra = [folder for folder in before if folder not in stdlib]
    return Interpreter(Path(sys.executable), "{}.{}.{}".format(*sys.version_info), tuple(site), tuple(extra))


def _read(given: Path) -> Interpreter:
    python = executable(given)
    return _running() if python == Path(sys.executable) else read(python)
