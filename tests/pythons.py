"""Other Pythons than the one that runs the tests, where another user can start them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WANTED = ("3.8", "3.12", "3.13", "3.10", "3.9", "3.11")
_LEFT_OUT = shutil.ignore_patterns("test", "tests", "site-packages", "__pycache__", "idlelib", "config-*", "ensurepip")


def another(folder: Path) -> Path | None:
    """An interpreter of another version than this one, that any user may run; copied below `folder` if need be.

    None where this machine has no other. `folder` must be one that any user may enter.
    """
    here = ".".join(map(str, sys.version_info[:2]))
    for version in (wanted for wanted in WANTED if wanted != here):
        for python in _installed(version):
            if _anybody_may(python):
                return python
            if copied := _copied(python, version, folder):
                return copied
    system = Path("/usr/bin/python3")
    return system if system.exists() and system.resolve() != Path(sys.executable).resolve() else None


def _installed(version: str) -> list[Path]:
    places = [Path("/usr/bin"), Path("/usr/local/bin")]
    homes = (Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python", Path("/opt/py38"))
    for home in homes:
        places += sorted(path for path in home.glob("*/bin"))
    return [path for place in places if (path := place / f"python{version}").exists()]


def _anybody_may(python: Path) -> bool:
    """Whether somebody who is nobody can start it. A folder on the way, or its library, may be closed to others.

    What setpriv itself starts is still looked up with root's rights, so `env` does.
    """
    if os.geteuid() != 0:
        return True
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "env", "--"]
    tried = [str(python), "-I", "-c", "import json, zlib, select"]
    return subprocess.run([*nobody, *tried], check=False, capture_output=True, cwd="/").returncode == 0


def _copied(python: Path, version: str, folder: Path) -> Path | None:
    """The interpreter and its library in `folder`, told to look for its shared library beside itself."""
    prefix = python.resolve().parent.parent
    made = folder / f"python{version}"
    start = made / "bin" / f"python{version}"
    if not start.exists():
        shutil.copytree(prefix / "lib" / f"python{version}", made / "lib" / f"python{version}", ignore=_LEFT_OUT)
        for library in (prefix / "lib").glob("libpython*.so*"):
            shutil.copy(library, made / "lib", follow_symlinks=True)
        start.parent.mkdir()
        start.write_bytes(_moved(python.read_bytes()))
        subprocess.run(["chmod", "-R", "a+rX", str(made)], check=True)
        start.chmod(0o755)
    return start if _anybody_may(start) else None


def _moved(binary: bytes) -> bytes:
    """An executable whose path to its shared library, where it names one, is replaced by one of the same length."""
    beside = b"$ORIGIN/../lib"
    found = re.search(rb"/[\x21-\x7e]{%d,}/lib(?=\0)" % (len(beside) - 5), binary)
    return binary.replace(found[0], beside.ljust(len(found[0]), b"\0")) if found else binary


def open_to_all(python: Path, folder: Path) -> Path:
    """This interpreter if any user may run it, else a copy of it below `folder`."""
    real = python.resolve()
    if all(place.stat().st_mode & 0o001 for place in real.parents):
        return python
    version = "{}.{}".format(*sys.version_info)
    return _copied(python, version, folder) or python


@contextlib.contextmanager
def environment_open_to_all(python: Path, folder: Path) -> Iterator[Path]:
    """An environment's interpreter if any user may run it, else one below `folder` that finds the same packages.

    These are mounted there, as they may lie in a closed home. Needs root.
    """
    if _anybody_may(python):
        yield python
        return
    prefix = python.parent.parent
    own = open_to_all(python, folder)
    with_caches = ["--exclude=site-packages", "--exclude=test", "--include=*/", "--include=*.pyc", "--exclude=*"]
    library = f"python{sys.version_info[0]}.{sys.version_info[1]}/"
    source, to = python.resolve().parent.parent / "lib" / library, own.parent.parent / "lib" / library
    subprocess.run(["rsync", "-a", *with_caches, f"{source}/", f"{to}/"], check=True)
    place = folder / "environment"
    (place / "bin").mkdir(parents=True)
    (place / "lib").mkdir()
    (place / "bin" / "python").symlink_to(own)
    (place / "pyvenv.cfg").write_text(f"home = {own.parent}\ninclude-system-site-packages = false\n")
    subprocess.run(["mount", "--bind", str(prefix / "lib"), str(place / "lib")], check=True)
    try:
        yield place / "bin" / "python"
    finally:
        subprocess.run(["umount", "--lazy", str(place / "lib")], check=True)
