"""What the scenes work on: a tiny model and data set, and verl's releases, as they are and patched for the runtime."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from patcher.packages.releases import wheel
from tests.corpus.making.standing_in import stand_in
from tests.runtime.environment import interpreter

RELEASES = ("0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
OVERLAYS = ("ray==2.55.1", "wandb==0.23.0", "wandb==0.31.0")
"""Releases that some scenes put before the runtime environment's own."""
TINY = Path(__file__).parents[2] / "runtime" / "tiny.py"


def lay(scratch: Path) -> None:
    """Make what is missing in `scratch`."""
    python = str(interpreter())
    (scratch / "home").mkdir(parents=True, exist_ok=True)
    if not (scratch / "tiny" / "train.parquet").exists():
        (scratch / "tiny").mkdir(exist_ok=True)
        subprocess.run([python, str(TINY), str(scratch / "tiny")], check=True)
    for version in RELEASES:
        for name in (f"verl-{version}", f"verl-{version}-patched"):
            tree = scratch / "trees" / name
            if tree.exists():
                continue
            shutil.copytree(wheel("verl", version), tree)
            if name.endswith("patched"):
                patch = [
                    sys.executable,
                    "-m",
                    "patcher",
                    "--root",
                    str(tree),
                    "--python",
                    python,
                    "apply",
                    "--allow-dirty",
                ]
                subprocess.run(patch, check=True)
    tree = scratch / "trees" / "verl-0.8.0-cpu"
    if not tree.exists():
        shutil.copytree(scratch / "trees" / "verl-0.8.0-patched", tree)
        stand_in(tree)
    for overlay in OVERLAYS:
        folder = scratch / "overlays" / overlay.replace("==", "-")
        if not folder.exists():
            subprocess.run([python, "-m", "pip", "install", "--no-deps", "--target", str(folder), overlay], check=True)
