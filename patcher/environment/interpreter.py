"""Which interpreter is meant, and which folders it imports from, read off the files where the layout is known."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from patcher.environment.layout import Interpreter, from_files
from patcher.errors import EnvironmentProbeError
from patcher.language import Phrase, phrase
from patcher.language.said import said

ASK_SECONDS = 20
_SITE_NAMES = ("site-packages", "dist-packages")
_ASK = (
    "import sys, json, site; u = [site.getusersitepackages()] if sys.prefix == sys.base_prefix else []; "
    "print(json.dumps([sys.path, sys.version.split()[0], u]))"
)


def find_interpreter(python: Path | None) -> Interpreter:
    """Take `python` (executable, environment or its bin folder), else the active environment, else this interpreter."""
    if python is not None:
        return _read(_executable(python))
    problems = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if not (value := os.environ.get(variable)):
            continue
        try:
            found = _read(_executable(Path(value)))
        except EnvironmentProbeError as error:
            passed = "${variable} is {value}, which is passed over: {why}"
            problems.append(phrase(passed, variable=variable, value=value, why=error.title))
            continue
        return _with(found, tuple(problems), (phrase("the environment is that of ${variable}", variable=variable),))
    return _with(_running(), tuple(problems), (phrase("the environment is the one that uky-patch itself runs in"),))


def _with(found: Interpreter, problems: tuple[Phrase, ...], notes: tuple[Phrase, ...]) -> Interpreter:
    return Interpreter(
        found.python, found.version, found.site, found.extra, problems + found.problems, found.notes + notes
    )


def _executable(given: Path) -> Path:
    """The interpreter's path as given: links are not followed, as they say which environment is meant."""
    path = given.expanduser()
    if len(path.parts) == 1 and not path.exists() and (on_path := shutil.which(str(path))):
        return Path(on_path)
    path = path.absolute()
    if path.is_dir():
        folder = path if path.name in ("bin", "Scripts") else path / "bin"
        for name in ("python", "python3"):
            if os.path.lexists(folder / name):
                return folder / name
        raise EnvironmentProbeError(
            phrase("no interpreter in {path}", path=given),
            cause=phrase("{folder} has neither python nor python3", folder=folder),
            advice="Give --python an interpreter, a virtual environment or its bin folder.",
        )
    if not os.path.lexists(path):
        raise EnvironmentProbeError(
            phrase("no interpreter at {path}", path=given),
            cause="there is no such file",
            advice="Give --python an interpreter, a virtual environment or its bin folder.",
        )
    return path


def _running() -> Interpreter:
    """Take this process's own path; what follows its site folders was added by their `.pth` files."""
    entries = sys.path if getattr(sys.flags, "safe_path", False) else sys.path[1:]
    folders = [folder for folder in map(Path, filter(None, entries)) if folder.is_dir()]
    site = [folder for folder in folders if folder.name in _SITE_NAMES]
    stdlib = {Path(os.__file__).parent, Path(os.__file__).parent / "lib-dynload"}
    before = folders[: folders.index(site[0])] if site else folders
    extra = [folder for folder in before if folder not in stdlib]
    return Interpreter(Path(sys.executable), "{}.{}.{}".format(*sys.version_info), tuple(site), tuple(extra))


def _read(python: Path) -> Interpreter:
    return _running() if python == Path(sys.executable) else from_files(python) or _ask(python)


def _ask(python: Path) -> Interpreter:
    """Run the interpreter for its paths: the last resort, for wrapper scripts and unknown layouts."""
    import json

    advice = "Give --python an interpreter, a virtual environment or its bin folder."
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=ASK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        cause = phrase("it did not tell its paths within {seconds} s", seconds=ASK_SECONDS)
        raise EnvironmentProbeError(phrase("cannot use {path}", path=python), cause=cause, advice=advice) from error
    except OSError as error:
        title = phrase("cannot use {path}", path=python)
        raise EnvironmentProbeError(title, cause=said(error), advice=advice) from error
    try:
        entries, version, user_sites = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        lines = done.stderr.strip().splitlines()
        raise EnvironmentProbeError(
            phrase("{path} is no Python interpreter", path=python),
            cause=lines[-1] if lines else phrase("it printed no paths"),
            advice=advice,
        ) from error
    site = [Path(entry) for entry in entries if Path(entry).name in _SITE_NAMES]
    users = [Path(user) for user in user_sites if not os.environ.get("PYTHONNOUSERSITE") and Path(user).is_dir()]
    return Interpreter(python, version, tuple(dict.fromkeys(users + site)))
