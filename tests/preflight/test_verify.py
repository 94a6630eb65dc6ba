"""`verify --level env` on this machine, with packages that stand in for the real ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from patcher import messages
from patcher.cli.app import run
from patcher.preflight import preflight
from patcher.preflight.preflight import PreflightOptions, run_preflight
from patcher.remote.connection import connect
from patcher.remote.host import HERE, Host
from patcher.remote.survey import survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.secrets.redacting import Redactor
from tests.agent.preflight_programs.standins import TORCH, tree

LEVELS = ("markers", "env", "data", "model", "engine", "job")


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    root = tree(tmp_path / "fork", torch=TORCH, vllm="__version__ = '0.20.2'", verl="__version__ = '0.9.1'")
    (root / "vllm" / "envs.py").write_text("environment_variables = {}\n")
    return root


def test_each_check_is_told_when_it_is_there(fork: Path) -> None:
    host = Host(HERE, HERE, path=str(fork), python=sys.executable)
    order: list[str] = []
    with connect(host) as connection:
        open_tree_folder(connection, fork.name, None)
        checks = run_preflight(
            connection, host, survey_host(connection, host), "env", on_check=lambda check: order.append(check.name)
        )
        assert connection.channel.trips == 3
    assert order == [check.name for check in checks]
    assert order[0] == "python"
    assert {check.name: check.status for check in checks}["torch"] == "ok"
    assert {check.name: check.status for check in checks}["ray"] == "fail"


def test_json_has_the_contract_s_keys_and_the_exit_code_tells_of_failures(
    fork: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--root", str(fork), "--python", sys.executable, "--format", "json"]
    assert run([*options, "verify", "--level", "env"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"checks", "nodes", "next"}
    assert all(set(check) == {"name", "level", "status", "seconds", "detail", "fix"} for check in told["checks"])
    assert all(
        check["level"] in LEVELS and check["status"] in ("ok", "warn", "fail", "skip") for check in told["checks"]
    )
    verl = next(check for check in told["checks"] if check["name"] == "verl")
    assert verl["detail"] == "0.9.1, from this tree"


def test_the_report_fits_a_screen_and_sums_the_markers_up(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["--root", str(fork), "--python", sys.executable, "verify", "--level", "engine"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert len([line for line in lines if " markers " in line]) == 1
    assert any("fail  data" in line and "->" in line for line in lines)


def test_verl_of_another_place_is_named(fork: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tree(tmp_path / "other", verl="__version__ = '0.5.0'")
    (fork / "sitecustomize.py").write_text(f"import sys\nsys.path.insert(0, {str(other)!r})\nimport verl\n")
    assert run(["--root", str(fork), "--python", sys.executable, "--format", "json", "verify", "--level", "env"]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["verl"]["detail"] == f"0.5.0 comes from {other}/verl, and not from this tree"
    assert checks["verl"]["fix"].startswith("put the tree first: export PYTHONPATH=")


def test_a_budget_counts_for_each_level(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (fork / "vllm" / "__init__.py").write_text("import time\ntime.sleep(3600)\n")
    options = ["--root", str(fork), "--python", sys.executable, "--format", "json"]
    assert run([*options, "verify", "--level", "env", "--budget", "2"]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["vllm"]["detail"] == "hangs: nothing done any more after 2 s, at vllm/__init__.py:2 in <module>"


def test_secrets_of_the_host_are_in_no_verdict(fork: Path) -> None:
    (fork / "vllm" / "__init__.py").write_text("raise ImportError('token tell-nobody-of-it is refused')\n")
    host = Host(HERE, HERE, path=str(fork), python=sys.executable, secrets={"HF_TOKEN": "tell-nobody-of-it"})
    with connect(host) as connection:
        open_tree_folder(connection, fork.name, None)
        checks = run_preflight(
            connection,
            host,
            survey_host(connection, host),
            "env",
            on_check=lambda _: None,
            wish=PreflightOptions(budget=5),
        )
    said = " ".join(str(check.detail) for check in checks)
    assert "is refused" in said
    assert "tell-nobody-of-it" not in said


def test_the_word_for_a_number_is_no_secret() -> None:
    """`{count:token|tokens}` in a host's template looks like `token: VALUE`."""
    detail = messages.phrase("{count} {count:token|tokens} for {name}", count=1, name="tell-nobody-of-it")
    event = {"name": "engine", "level": "engine", "status": "ok", "seconds": 1.0, "detail": detail, "fix": None}
    assert str(preflight._check(event, Redactor()).detail) == "1 token for tell-nobody-of-it"
    assert "tell-nobody-of-it" not in str(preflight._check(event, Redactor(["tell-nobody-of-it"])).detail)


def test_the_job_is_the_last_level_and_waits_for_those_below_it(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--root", str(fork), "--python", sys.executable, "--format", "json"]
    assert run([*options, "verify", "--level", "job"]) == 1
    last = json.loads(capsys.readouterr().out)["checks"][-1]
    assert (last["name"], last["level"], last["status"]) == ("job", "job", "skip")
    assert "ray" in last["detail"]
