"""The level `job`: the run script of the tree, run as a job for as long as it may take."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from patcher import jobs
from patcher.checks import Check
from patcher.preflight.preflight import PreflightOptions, check_job
from patcher.remote.host import HERE, Host
from patcher.remote.link import linked
from patcher.session.session import Session
from tests.agent.preflight_programs.standins import tree

LOG = Path(__file__).parents[1] / "data" / "train-0.8.0.log"


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return tree(tmp_path / "fork", verl="__version__ = '0.8.0'")


def prove(fork: Path, script: str, wish: PreflightOptions | None = None, before: tuple[Check, ...] = ()) -> Check:
    (fork / "run_debug.sh").write_text(script)
    host = Host(HERE, HERE, path=str(fork), python=sys.executable)
    return check_job(Session(root_option=fork, python=Path(sys.executable)), host, wish or PreflightOptions(), before)


@pytest.mark.slow
def test_a_job_that_trains_proves_it(fork: Path) -> None:
    check = prove(fork, f"cat '{LOG}'\n")
    assert (check.name, check.level, check.status) == ("job", "job", "ok")
    assert "2 steps" in str(check.detail)


def test_a_job_that_fails_is_told_with_what_it_said_last(fork: Path) -> None:
    check = prove(fork, "echo no model here; exit 3\n")
    assert check.status == "fail"
    assert "exit code 3" in str(check.detail)
    assert "no model here" in str(check.detail)
    assert check.fix == "uky-patch job logs here"


def test_it_trains_on_the_data_and_the_model_that_were_named(fork: Path) -> None:
    script = 'test "$TRAIN_FILES$VAL_FILES$MODEL_PATH" = "/d/t.parquet/d/t.parquet/m"\n'
    assert prove(fork, script, PreflightOptions(data="/d/t.parquet", model="/m")).status == "ok"


def test_a_job_that_takes_longer_than_its_budget_is_left_running(fork: Path) -> None:
    check = prove(fork, "sleep 60\n", PreflightOptions(budget=1.0))
    host = Host(HERE, HERE, path=str(fork), python=sys.executable)
    with linked(host, fork) as link:
        there = jobs.running(link.open()[0])
        assert there is not None
        jobs.stop(link.open()[0], there.id, grace=1.0)
    assert check.status == "warn"
    assert check.fix == "uky-patch job attach here"


def test_no_job_is_started_where_a_check_before_it_has_failed(fork: Path) -> None:
    before = (Check("torch", "env", "fail", 0.1, "no torch"),)
    check = prove(fork, "touch started\n", before=before)
    assert check.status == "skip"
    assert "torch" in str(check.detail)
    assert not (fork / "started").exists()
