"""The `setup` lines of a host: what they leave counts for all that is looked at and started there."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from patcher.errors import RecordError, UsageError
from patcher.i18n import phrase
from patcher.remote import agent_program
from patcher.remote.channel import RefusedError
from patcher.remote.connection import connect
from patcher.remote.host import HERE, Host
from patcher.remote.survey import Survey, survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.session.hosts import find_host
from patcher.trust import trust
from tests.packages.venvs import Venv
from tests.remote.test_host_tables import loaded

MODULES = """
module() { for name in "${@:2}"; do echo "loading $name" >&2; eval "$(cat "$MODULE_FOLDER/$name")"; done; }
export MODULE_FOLDER=%s
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a tree, a script that defines `module`, and a module that activates an environment."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX", "PYENV_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = Venv(tmp_path / "elsewhere/train")
    for package, version in (("vllm", "0.20.2"), ("torch", "2.11.0"), ("ray", "2.49.0")):
        made.install(package, version)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/verl").write_text(f"export VIRTUAL_ENV={tmp_path}/elsewhere/train UKY_COUNT=x$UKY_COUNT\n")
    (tmp_path / "modules.sh").write_text(MODULES % (tmp_path / "modules"))
    return tmp_path


def surveyed(folder: Path, *lines: str) -> Survey:
    host = Host(HERE, HERE, path=str(folder / "fork"), setup=lines)
    with connect(host) as connection:
        open_tree_folder(connection, "fork", None)
        survey_host(connection, host)
        return survey_host(connection, host)


def refused(folder: Path, *lines: str) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        surveyed(folder, *lines)
    assert caught.value.kind == "setup"
    return caught.value


def test_an_environment_that_a_line_activates_is_the_one_that_trains(folder: Path) -> None:
    without = surveyed(folder).interpreter
    assert without is None or not without.python.startswith(str(folder))
    found = surveyed(folder, f"source {folder}/modules.sh", "module load verl").interpreter
    assert found is not None
    assert found.python.startswith(f"{folder}/elsewhere/train/bin/python")
    assert found.origin == "active"


def test_the_lines_run_once_for_a_connection(folder: Path) -> None:
    surveyed(folder, f"echo once >> {folder}/count")
    assert (folder / "count").read_text() == "once\n"


def test_a_line_that_fails_is_named_with_what_it_printed(folder: Path) -> None:
    error = refused(folder, f"source {folder}/modules.sh", "module load nothing; false", "touch never")
    assert error.title == phrase("a line of setup failed: {line}", line="module load nothing; false")
    assert "exit code 1" in str(error.cause)
    assert "No such file" in str(error.cause)
    assert "setup" in str(error.advice)
    assert not (folder / "never").exists()


@pytest.mark.parametrize("line", ["exit 3", "exec true", "kill -9 $$"])
def test_a_line_that_ends_the_shell_is_refused(folder: Path, line: str) -> None:
    assert "ended the shell" in str(refused(folder, "echo before", line).cause)


def test_an_unfinished_line_is_refused(folder: Path) -> None:
    assert "unexpected" in str(refused(folder, 'echo "before').cause)


def test_a_service_that_a_line_starts_is_not_waited_for(folder: Path) -> None:
    began = time.monotonic()
    surveyed(folder, "sleep 30 &")
    assert time.monotonic() - began < 20


def test_a_large_environment_arrives_whole(folder: Path) -> None:
    lines = [f"export UKY_{number}=$(printf %100000d 0)" for number in range(8)]
    assert surveyed(folder, *lines, f"export VIRTUAL_ENV={folder}/elsewhere/train").interpreter is not None


def test_a_secret_is_refused_in_the_table_and_a_variable_that_names_one_is_not(tmp_path: Path) -> None:
    table = '[hosts.h]\nsetup = ["export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz123456"]\n'
    with pytest.raises(RecordError, match="1"):
        find_host(loaded(tmp_path, table), "h")
    for value in ("${MY_TOKEN}", "$(cat ~/.token)"):
        found = find_host(loaded(tmp_path, f'[hosts.h]\nsetup = ["export HF_TOKEN={value}"]\n'), "h")
        assert found.setup == (f"export HF_TOKEN={value}",)


def test_a_trees_own_lines_run_on_this_machine_only_where_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tree = tmp_path / "tree"
    tree.mkdir()
    settings = loaded(tree, '[hosts.here]\nsetup = ["touch planted"]\n')
    with pytest.raises(UsageError, match="names a command for this machine: touch planted"):
        find_host(settings, HERE)
    trust(tree)
    assert find_host(settings, HERE).setup == ("touch planted",)


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize(
    ("named", "place"),
    [
        ("verl", "miniforge3/envs/verl/bin/python"),
        ("verl", ".conda/envs/verl/bin/python"),
        ("~/envs/verl", "envs/verl/bin/python"),
        ("~/envs/verl/bin/python", "envs/verl/bin/python"),
        ("envs/verl", "envs/verl/bin/python"),
        ("verl; touch planted", ""),
        ("$(touch planted)", ""),
    ],
)
def test_the_named_interpreter_starts_the_agent_where_the_hosts_own_is_too_old(
    tmp_path: Path, shell: str, named: str, place: str
) -> None:
    for name, text in ((place, "echo named; exit 42"), ("bin/python3", "echo old; exit 98")):
        if name:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
    command = agent_program.COMMAND.replace("exec sh", f"exec {shell}").replace("/usr/bin/python3", "")
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    done = subprocess.run(
        [shell, "-c", command],
        input=f"{named}\n",
        text=True,
        capture_output=True,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": path},
    )
    assert ("named" in done.stdout) == bool(place), done
    assert not (tmp_path / "planted").exists()
