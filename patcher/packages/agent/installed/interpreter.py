"""An interpreter by its path, and the folders that it imports from: off its files, else by asking it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from patcher.messages import Message, phrase, why
from patcher.packages.agent.installed.layout import Interpreter, Unusable, from_files

ASK_SECONDS = 20
SITE_NAMES = ("site-packages", "dist-packages")
_ASK = (
    "import sys, json, site; u = [site.getusersitepackages()] if sys.prefix == sys.base_prefix else []; "
    "print(json.dumps([sys.path, sys.version.split()[0], u]))"
)


def executable(given: Path) -> Path:
    """The interpreter of an environment, its bin folder, a name on PATH, or the path itself.

    Links are not followed, as they say which environment is meant. Raises Unusable where there is none.
    """
    path = Path(os.path.expanduser(given))
    is_name = len(path.parts) == 1 and (path.name.startswith("python") or not path.is_dir())
    on_path = shutil.which(str(path)) if is_name else None
    if on_path:  # As a shell has it: `python3` is that of PATH, whatever lies in the folder where one stands.
        return Path(on_path).absolute()
    path = path.absolute()
    if path.is_dir():
        folder = path if path.name in ("bin", "Scripts") else path / "bin"
        for name in ("python", "python3"):
            if os.path.lexists(folder / name):
                return folder / name
        cause = phrase("{folder} has neither python nor python3", folder=folder)
        raise Unusable(phrase("no interpreter in {path}", path=given), cause)
    if not os.path.lexists(path):
        raise Unusable(phrase("no interpreter at {path}", path=given), phrase("there is no such file"))
    return path


def read(python: Path, seconds: float | None = ASK_SECONDS) -> Interpreter:
    """Where `python` imports from. Only where its files do not tell it is run, for at most `seconds`; None: never.

    Raises Unusable.
    """
    found = from_files(python)
    if found is None and seconds is None:
        raise Unusable(phrase("cannot use {path}", path=python), phrase("its files do not tell where it imports from"))
    return found or _ask(python, seconds or 0)


def _ask(python: Path, seconds: float) -> Interpreter:
    """Run the interpreter for its paths: the last resort, for wrapper scripts and unknown layouts."""
    title = phrase("cannot use {path}", path=python)
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd="/",
        )
    except subprocess.TimeoutExpired as error:
        raise Unusable(title, phrase("it did not tell its paths within {seconds} s", seconds=seconds)) from error
    except OSError as error:
        raise Unusable(title, why(error)) from error
    try:
        entries, version, user_sites = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise Unusable(phrase("{path} is no Python interpreter", path=python), _last_line(done.stderr)) from error
    site = [Path(entry) for entry in entries if Path(entry).name in SITE_NAMES]
    users = [Path(user) for user in user_sites if not os.environ.get("PYTHONNOUSERSITE") and Path(user).is_dir()]
    return Interpreter(python, version, tuple(dict.fromkeys(users + site)))


def _last_line(said: str) -> Message:
    lines = said.strip().splitlines()
    return phrase("{line}", line=lines[-1]) if lines else phrase("it printed no paths")
