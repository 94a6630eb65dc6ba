"""A job on a host, watched over the connection; and what real torch and Ray do when they hang."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.jobs.follow_log import LastingConnection
from patcher.records.symptom_parse import load_symptoms
from patcher.watch.host_log import HostLog
from patcher.watch.machines import host_machine
from patcher.watch.run_state import RunState
from patcher.watch.stacks.grouping import ProcessGroups
from patcher.watch.stacks.symptoms import find_in_stacks
from patcher.watch.watcher import Listener, Outcome, Watcher
from tests.jobs.conftest import Site
from tests.jobs.conftest import here as here
from tests.jobs.conftest import there as there
from tests.machines import REQUIRED, Machine
from tests.runtime.environment import interpreter
from tests.watch.conftest import PROGRAM, Stalled
from tests.watch.test_watch import INTERRUPTIBLE

Start = Callable[..., Stalled]
pytestmark = pytest.mark.hosts


def watcher(site: Site, job: Any, limit: float) -> tuple[Watcher, LastingConnection]:
    lasting = LastingConnection(site.link.reconnect, site.open(), lambda _: None)
    source = HostLog(site.host, job, lasting)
    place = host_machine(site.host.name, {"job": job.id}, lasting.do, str(site.root))
    return Watcher(source, [place], RunState("debug", limit), Listener()), lasting


def rank_started(site: Site, name: str) -> Any:
    """Ranks of a program of `stalls.py` as a job of the host's own Python."""
    site.write("stalls.py", PROGRAM.read_text())
    return site.start(f"exec python3 stalls.py ranks:{name}:3 lock")


def test_a_job_of_another_user_over_ssh_is_asked_by_its_hook(there: Site) -> None:
    found = watcher(there, rank_started(there, "held_lock"), 3)[0].watch()
    assert found.stalled
    assert found.status.phase == "dataset"
    assert found.snapshot is not None
    grouped = found.snapshot.grouped
    assert [group.ranks for group in grouped.odd] == [(1,)]
    assert {process.how for process in found.snapshot.processes if process.role == "rank"} <= {"faulthandler", "py-spy"}
    assert grouped.odd[0].where == "stalls.py:consume_batch"


@pytest.mark.parametrize("words", [(), ("--once",)])
def test_an_interrupt_at_the_terminal_which_ends_ssh_too_is_the_end(
    there: Site, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """It is no cut connection, which would be opened anew, and of a job that was only looked at it says nothing."""
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl/__init__.py").write_text("")
    there.start("echo step:1 - actor/loss:0.5; until [ -e enough ]; do sleep 0.1; done")
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", INTERRUPTIBLE, "--root", str(tmp_path), "watch", "loop"]
    command += ["--path", str(there.root), *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True
    ) as one:
        assert one.stderr is not None
        while "step 1" not in one.stderr.readline():
            pass
        os.killpg(one.pid, signal.SIGINT)
        out, err = one.communicate(timeout=30)
    there.write("enough", "")
    assert (one.returncode, out) == (130, "" if words else "the job goes on\n")
    assert "reach" not in err


def test_the_line_is_cut_meanwhile(there: Site) -> None:
    job = rank_started(there, "stopped_rank")
    watch, lasting = watcher(there, job, 8)
    cuts: list[int] = []

    def cut() -> None:
        while len(cuts) < 2:
            time.sleep(2)
            link = lasting.link
            if link is not None:
                link.channel._process.kill()
                cuts.append(1)

    thread = threading.Thread(target=cut, daemon=True)
    thread.start()
    found = watch.watch()
    thread.join()
    assert len(cuts) == 2
    assert found.stalled
    assert found.snapshot is not None
    assert [group.ranks for group in found.snapshot.grouped.odd] == [(2,)]


def test_the_end_of_a_job_and_its_exit_code(there: Site) -> None:
    job = there.start("echo dataset len: 3; sleep 3; exit 7")
    found: Outcome = watcher(there, job, 60)[0].watch()
    assert found.end is not None
    assert found.end.code == 7


def test_a_job_that_ends_while_it_is_looked_at(there: Site) -> None:
    job = there.start("echo dataset len: 3; exec sleep 4")
    found = watcher(there, job, 3)[0].watch()
    assert found.stalled or (found.end is not None and found.end.code == 0)


@pytest.fixture
def python() -> str:
    found = interpreter()
    if found is None:
        if os.environ.get(REQUIRED):
            pytest.fail("the runtime environment is missing: make runtime")
        pytest.skip("the runtime environment is missing: make runtime")
    return str(found)


def odd_ranks(found: ProcessGroups) -> list[tuple[int, ...]]:
    return [group.ranks for group in found.odd]


def shown(found: ProcessGroups, symptom: str) -> bool:
    processes = [process for group in found.groups for process in group.processes]
    return symptom in [sign.symptom.id for sign in find_in_stacks(load_symptoms(), processes, (), {})]


def test_a_rank_does_not_come_to_the_all_reduce(stalled: Start, tmp_path: Path, python: str) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        assert odd_ranks(found) == [(1,)]
        if how != "proc":
            others = next(group for group in found.groups if group.ranks == (0, 2))
            assert others.where == "torch/distributed/distributed_c10d.py:all_reduce"
            assert found.odd[0].where.endswith(":prepare_batch")
            assert "elsewhere" in str(found.odd[0].odd)
            assert shown(found, "allreduce-one-absent")

    stalled("ranks:all_reduce:3", str(tmp_path / "store"), python=python).each_way(check, 120)


def test_a_rank_is_not_there_when_the_group_forms(stalled: Start, tmp_path: Path, python: str) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        assert (found.absent, found.size, found.odd) == ((1,), 3, ())
        waiting = next(group for group in found.groups if group.ranks == (0, 2))
        assert str(waiting.action) == "waits for the ranks to form a group"

    stalled("ranks:absent_rank:3", str(tmp_path / "store"), python=python).soon("hook", check, 120)


def test_a_worker_of_a_data_loader_is_stopped(stalled: Start, python: str) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        odd = found.odd[0]
        assert str(odd.action) == "is stopped by a signal"
        assert odd.ranks in ((0,), ())
        if how != "proc":
            assert (odd.role, odd.ranks) == ("loader", (0,))
            waiting = next(group for group in found.groups if group.role == "rank" and group.ranks == (0,))
            assert str(waiting.action) == "waits for data"
            assert shown(found, "dataloader-worker-stopped")

    stalled("ranks:loader:2", python=python).each_way(check, 120)


@pytest.fixture
def ray_folder() -> Iterator[str]:
    folder = f"/tmp/uky-watch-{os.getpid()}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_an_actor_never_answers(stalled: Start, python: str, ray_folder: str) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        if how == "proc":
            return
        driver = next(group for group in found.groups if group.role == "driver")
        assert str(driver.action) == "waits for an answer of Ray"
        rank = next(group for group in found.groups if group.role == "rank")
        assert rank.ranks == (0,)
        assert rank.where.endswith(":load_nothing")
        assert shown(found, "ray-get-never-returns")

    run = stalled("ray_get", ray_folder, python=python, env={"RAY_AUTH_MODE": "disabled"})
    run.each_way(check, 150)


def test_the_command_names_host_phase_and_rank(there: Site, reachable: Machine) -> None:
    """As a user calls it, with the job's host named on the command line."""
    import subprocess
    import sys

    rank_started(there, "stopped_rank")
    root = Path(PROGRAM).parents[2]
    (tree := there.root.parent / "mine").mkdir(exist_ok=True)
    (tree / "verl").mkdir(exist_ok=True)
    (tree / "verl" / "__init__.py").write_text("")
    command = [sys.executable, "-m", "patcher"]
    done = subprocess.run(
        [*command, "--root", str(tree), "watch", "loop", "--path", str(there.root), "--limit", "3", "--format", "json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root), "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["verdict"], found["phase"]) == ("stalled", "dataset")
    (odd,) = (group for group in found["stacks"]["groups"] if group["odd"])
    assert (odd["ranks"], odd["hosts"]) == ([2], ["loop"])
