"""The built wheel brings the records along and finds them."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.network, pytest.mark.slow]


def test_an_installed_wheel_has_the_records_of_the_checkout(tmp_path: Path) -> None:
    quiet = ["-q", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "v")], check=True)
    python = str(tmp_path / "v/bin/python")
    subprocess.run([python, "-m", "pip", "wheel", *quiet, "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    wheel = next(tmp_path.glob("uky_patch-*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("patches", "settings", "templates"):
        here = {path.name for path in (ROOT / folder).iterdir() if not path.name.startswith(".")}
        assert {Path(name).name for name in names if f"patcher/data/{folder}/" in name} >= here
    assert "patcher/data/docs/matrix.md" in names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]
    subprocess.run([python, "-m", "pip", "install", *quiet, str(wheel)], check=True)
    run = subprocess.run(
        [str(tmp_path / "v/bin/uky-patch"), "list", "--format", "json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    listed = {record["id"] for record in json.loads(run.stdout)["records"]}
    assert listed == {path.stem for path in (ROOT / "patches").glob("*.toml")}
