"""An environment with the real probing, made once into the cache that the tests share."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_path

PACKAGES = ("probing==0.2.4", "ipykernel==6.29.5")


def interpreter(beside: Path | None = None) -> Path:
    """Its Python; with `beside`, one that sees what that interpreter's environment has, such as torch."""
    cache = Path(os.environ.get("UKY_PATCH_CACHE") or user_cache_path("uky-patch"))
    base = beside.parents[1].name if beside else f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = cache / "probing" / "-".join((*PACKAGES, base)).replace("==", "-")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, beside)
            (folder / ".ready").touch()
    return folder / "bin" / "python"


def _make(folder: Path, beside: Path | None) -> None:
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "venv", folder)
    _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES)
    if beside is not None:
        asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        packages = [_run(one, "-c", asked).strip() for one in (python, beside)]
        (Path(packages[0]) / "beside.pth").write_text(f"{packages[1]}\n")


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
