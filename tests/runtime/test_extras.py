"""The tool in the environment that trains: its wheel, installed beside vLLM's CPU build, changes no package there."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.packages.releases import wheel
from tests.runtime import environment

pytestmark = [pytest.mark.runtime, pytest.mark.network]

ROOT = Path(__file__).parents[2]
NAMES = (("ray", "ray"), ("train", "torch"), ("train", "verl"), ("train", "vllm"))
"""Each extra and a package of it: without limits, so that `pip install 'uky-patch[train]'` changes no version there."""
QUIET = ("--quiet", "--disable-pip-version-check")
VERL, BUILD = "0.8.0", environment.BUILDS[0]
METADATA = "uky_patch-{}.dist-info/METADATA"
EXTRAS = {f"Requires-Dist: {name}; extra == '{extra}'" for extra, name in NAMES}


def output(*command: str | Path, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, cwd="/")
    assert done.returncode in codes, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trains(python: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that sees all packages of the real one, and takes new ones beside them.

    So nothing is written to the environment that the other tests share. What pip would replace there comes in here a
    second time, and is then seen in the lists.
    """
    folder = tmp_path_factory.mktemp("extras") / "trains"
    whole = python(BUILD)
    output(whole, "-m", "venv", folder)
    found = folder / "bin" / "python"
    (environment._packages(found) / "shared.pth").write_text(f"{environment._packages(whole)}\n")
    return found


def test_the_wheel_works_in_the_environment_that_trains_and_changes_none_of_its_packages(
    trains: Path, tmp_path: Path
) -> None:
    before = set(output(trains, "-m", "pip", "freeze", *QUIET[1:]).splitlines())
    conflicts = output(trains, "-m", "pip", "check", codes=(0, 1))
    output(trains, "-m", "pip", "wheel", *QUIET, "--no-deps", "-w", tmp_path, ROOT)
    built = next(tmp_path.glob("uky_patch-*.whl"))
    output(trains, "-m", "pip", "install", *QUIET, built)
    after = set(output(trains, "-m", "pip", "freeze", *QUIET[1:]).splitlines())
    assert before <= after, f"changed: {sorted(before - after)}"
    assert output(trains, "-m", "pip", "check", codes=(0, 1)) == conflicts

    assert set(zipfile.ZipFile(built).read(METADATA.format(built.name.split("-")[1])).decode().splitlines()) >= EXTRAS

    tree = tmp_path / "fork"
    shutil.copytree(wheel("verl", VERL) / "verl", tree / "verl")
    tool = trains.with_name("uky-patch")
    state = json.loads(output(tool, "status", "--root", tree, "--format", "json", codes=(1,)))
    assert state["versions"]["vllm"] == BUILD
    assert state["environment"]["python"] == str(trains)
    applied = json.loads(output(tool, "apply", "--root", tree, "--format", "json"))["records"]
    assert "applied" in {record["outcome"] for record in applied}
    output(tool, "status", "--root", tree)
    output(tool, "check", "--root", tree, codes=(0, 1))
