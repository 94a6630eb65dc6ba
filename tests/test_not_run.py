"""What was not run is said at the end of a run, in every lane."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests import not_run, tools

if TYPE_CHECKING:
    import pytest

PROBE = """
import pytest
from tests import tools
@tools.needs("no-such-program")
def test_marked(): ...
@pytest.mark.parametrize("n", [1, 2])
def test_asked(n):
    tools.require("no-such-program")
def test_other():
    pytest.skip("there is no moon")
@pytest.mark.hosts
def test_lane(): ...
def test_run(): ...
"""


def test_the_end_of_a_run_lists_it(tmp_path: Path) -> None:
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  hosts: x\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-m", "not slow and not hosts and not runtime and not ux", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        stdin=subprocess.DEVNULL,
    )
    answer = done.stdout[done.stdout.index("not run, as") :].splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert answer[0] == "not run, as this machine lacks what they need: 4"
    assert [line.partition("(")[0].strip() for line in answer[1:3]] == [
        "3  not installed: no-such-program",
        "1  there is no moon",
    ]
    lanes = "slow (make test-matrix), hosts (make test-hosts), runtime (make test-runtime), ux (make test-ux)"
    assert answer[3] == f"lanes not run: {lanes}"


def test_each_lane_names_the_others() -> None:
    plain = not_run.PLAIN
    assert not_run.lanes_left_out("") == []
    assert not_run.lanes_left_out("hosts") == [
        "slow (make test-matrix)",
        "runtime (make test-runtime)",
        "ux (make test-ux)",
        plain,
    ]
    assert not_run.lines([], "") == []


def test_programs_of_root_are_found_without_their_folders_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mkthing").write_text("#!/bin/sh\n")
    (tmp_path / "mkthing").chmod(0o755)
    monkeypatch.setattr(tools, "OF_ROOT", (str(tmp_path),))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert tools.missing("mkthing", "sh") == ""
    assert tools.missing("mkthing", "no-such-program") == "not installed: no-such-program"
    assert tools.search_path("/usr/bin:/bin") == f"/usr/bin:/bin:{tmp_path}"
    assert tools.search_path(f"{tmp_path}:/bin") == f"{tmp_path}:/bin"
