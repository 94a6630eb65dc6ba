"""Trees to measure on: a verl release as fetched, patched or not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from patcher.demo import options
from patcher.packages.releases import wheel

VERL = "0.6.1"
VLLM = "0.20.2"
BIN = Path(sys.executable).parent
UKY_PATCH = str(BIN / "uky-patch")


def fresh(folder: Path, source: Path) -> None:
    """Make `folder` a new copy of the release."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / "verl", folder / "verl", ignore=shutil.ignore_patterns("__pycache__"))


def renamed(package: Path, place: Path) -> None:
    """Make `place` a copy of a package that imports itself by its new name."""
    shutil.copytree(package, place)
    name = re.compile(rf"(?<![\w.]){package.name}(?=[.\s])")
    for file in place.rglob("*.py"):
        file.write_text(name.sub(place.name, file.read_text()))


def release() -> Path:
    """The folder of the release, fetched if need be."""
    return wheel("verl", VERL)


def command(root: Path, *arguments: str) -> list[str]:
    """A uky-patch command on `root`, with the versions of the demo assumed."""
    return [UKY_PATCH, "--root", str(root), "--python", sys.executable, *options(VLLM), *arguments]


def patched(folder: Path, source: Path) -> None:
    """Make `folder` a copy of the release with all records applied. Fetches vLLM's sources on the way."""
    fresh(folder, source)
    subprocess.run(command(folder, "apply"), check=True, stdout=subprocess.DEVNULL)
