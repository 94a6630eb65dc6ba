"""Cleaning up takes what the job has left, and nothing of anybody else's."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.jobs import Job
from patcher.jobs.cleaning import Cleaned, Leftovers, list_leftovers, take_away
from patcher.remote.host import HERE, Host
from tests.jobs.conftest import Site
from tests.jobs.test_running import alive, wait_for

LEAVES = """
import os, socket, sys, time
tag, after = sys.argv[1], float(sys.argv[2])
sockets = socket.socket(socket.AF_UNIX); sockets.bind(f"/tmp/verl_vllm_zmq_{tag}.ipc"); sockets.listen(1)
segment = open(f"/dev/shm/psm_{tag}", "wb"); segment.write(b"x" * 100_000); segment.flush()
port = socket.socket(); port.bind(("127.0.0.1", 0)); port.listen(1)
open("port", "w").write(str(port.getsockname()[1]))
open(f"ready.{tag}", "w").close()
time.sleep(after)
"""


def paths(tag: str) -> tuple[Path, Path]:
    return Path(f"/dev/shm/psm_{tag}"), Path(f"/tmp/verl_vllm_zmq_{tag}.ipc")


@pytest.fixture
def tags() -> Iterator[tuple[str, str]]:
    """What the job's things and somebody else's are called."""
    found = (uuid.uuid4().hex, uuid.uuid4().hex)
    yield found
    for tag in found:
        for path in paths(tag):
            path.unlink(missing_ok=True)


def see(site: Site, job: Job | None = None, *, caches: bool = False, running: bool = False) -> Leftovers:
    return list_leftovers(site.open(), job.id if job else None, caches=caches, running=running)


def take(site: Site, found: Leftovers, *, caches: bool = False, running: bool = False) -> Cleaned:
    return take_away(site.open(), found, caches=caches, running=running, grace=2.0)


def whats(found: Leftovers, kind: str) -> list[str]:
    return [thing.what for thing in found.things if thing.kind == kind]


@contextlib.contextmanager
def stranger(folder: Path, tag: str) -> Iterator[subprocess.Popen[bytes]]:
    """The same program, started by nobody's job."""
    program = subprocess.Popen([sys.executable, "-c", LEAVES, tag, "60"], cwd=folder)
    try:
        wait_for(lambda: (folder / f"ready.{tag}").exists())
        yield program
    finally:
        program.kill()
        program.wait()


def test_what_it_left_goes_with_all_that_it_holds_and_the_neighbours_stays(
    here: Site, tags: tuple[str, str], tmp_path: Path
) -> None:
    mine, theirs = tags
    here.write("leaves.py", LEAVES)
    with stranger(tmp_path, theirs) as other:
        job = here.start(f"(setsid {sys.executable} leaves.py {mine} 60 &); until [ -e ready.{mine} ]; do :; done")
        here.follow(job)
        found = see(here)
        (process,) = (thing for thing in found.things if thing.kind == "process")
        assert process.ports == (int((here.root / "port").read_text()),)
        assert process.owner
        assert "leaves.py" in process.command
        assert "mark" in str(process.why)
        segment, sockets = paths(mine)
        assert (whats(found, "shm"), whats(found, "socket")) == ([str(segment)], [str(sockets)])
        done = take(here, found)
        assert (set(done.done), dict(done.left)) == ({thing.key for thing in found.things}, {})
        assert not alive(int(process.what))
        assert not segment.exists()
        assert not sockets.exists()
        assert other.poll() is None
        assert all(path.exists() for path in paths(theirs))
        assert see(here).things == ()


def test_what_killed_processes_had_open_is_known_by_what_was_noted(
    here: Site, tags: tuple[str, str], tmp_path: Path
) -> None:
    mine, theirs = tags
    here.write("leaves.py", LEAVES)
    job = here.start(f"exec {sys.executable} leaves.py {mine} 60")
    with stranger(tmp_path, theirs) as other:
        wait_for(
            lambda: (
                mine in (Path(job.folder) / "traces").read_text() if (Path(job.folder) / "traces").exists() else False
            )
        )
        wait_for(lambda: (Path(job.folder) / "traces").read_text().count(mine) == 2)
        assert job.pid is not None
        os.kill(job.pid, signal.SIGKILL)
        other.kill()
        other.wait()
    here.follow(job)
    found = see(here)
    assert whats(found, "process") == []
    assert sorted(thing.what for thing in found.things) == sorted(str(path) for path in paths(mine))
    assert len(take(here, found).done) == 2
    assert [path.exists() for path in (*paths(mine), *paths(theirs))] == [False, False, True, True]


def test_what_a_job_makes_in_its_first_millisecond_is_noted(here: Site, tags: tuple[str, str]) -> None:
    segment = paths(tags[0])[0]
    job = here.start(f"exec 9>{segment}; exec sleep 60")
    traces = Path(job.folder) / "traces"
    wait_for(lambda: traces.exists() and tags[0] in traces.read_text(), 20.0)
    assert job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    here.follow(job)
    assert whats(see(here), "shm") == [str(segment)]


def test_a_job_at_work_is_left_alone_unless_it_is_meant(here: Site) -> None:
    job = here.start("exec sleep 60")
    found = see(here)
    assert found.things == ()
    assert {thing.what for thing in found.alone} >= {str(job.pid)}
    assert alive(job.pid)
    found = see(here, running=True)
    assert str(job.pid) in whats(found, "process")
    assert not take(here, found, running=True).left
    assert not alive(job.pid)
    assert here.follow(job).kind == "stopped"


def test_a_number_that_another_process_has_by_now_is_not_stopped(here: Site) -> None:
    here.follow(here.start("(setsid sleep 61 &)"))
    found = see(here)
    (thing,) = found.things
    kind, pid, start = thing.key.split(":")
    later = Leftovers(found.job, found.state, (type(thing)(kind, f"{kind}:{pid}:{int(start) + 1}", pid, ""),), ())
    done = take(here, later)
    assert (dict(done.done), len(done.left)) == ({}, 1)
    assert alive(int(pid))
    assert not take(here, found).left


def test_what_was_not_listed_stays(here: Site) -> None:
    here.follow(here.start("(setsid sleep 61 &); (setsid sleep 62 &)"))
    found = see(here)
    first, second = found.things
    take(here, Leftovers(found.job, found.state, (first,), ()))
    assert not alive(int(first.what))
    assert alive(int(second.what))


def test_another_users_process_with_the_mark_is_shown_and_stays(here: Site) -> None:
    if os.geteuid() != 0:
        pytest.skip("another user needs root")
    job = here.start("true")
    here.follow(job)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "60"]
    other = subprocess.Popen(command, env={**os.environ, "UKY_PATCH_JOB": job.id})
    try:
        wait_for(lambda: Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n")
        found = see(here)
        assert found.things == ()
        assert str(other.pid) in [thing.what for thing in found.alone]
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_who_holds_a_port_that_the_log_says_is_taken_is_told(here: Site) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(1)
        port = held.getsockname()[1]
        here.follow(here.start(f"echo 'OSError: [Errno 98] Address already in use (port {port})'; exit 1"))
        (thing,) = [thing for thing in see(here).alone if thing.ports == (port,)]
        assert thing.what == str(os.getpid())
        assert str(port) in str(thing.why)


HASH = "A" * 52


def test_caches_are_the_trees_own_and_only_what_a_compiler_calls_so(here: Site, tmp_path: Path) -> None:
    outside = tmp_path / "shared"
    for folder in (here.root / ".triton/cache" / HASH, here.root / "outputs" / HASH, outside / HASH):
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text("{}")
    (here.root / "outputs/global_step_1").mkdir()
    (here.root / "outputs/global_step_1/model.pt").write_text("weights")
    (here.root / ".triton/cache/link").symlink_to(outside)
    (here.root / ".triton/cache" / ("B" * 52)).symlink_to(outside)
    locks = here.root / ".cache/huggingface/hub/.locks"
    locks.mkdir(parents=True)
    for name in ("held.lock", "stale.lock"):
        (locks / name).touch()
    here.follow(here.start("true"))
    here.host = here.link.host = Host(HERE, HERE, path=str(here.root), env={"TRITON_CACHE_DIR": "outputs"})
    assert see(here).things == ()
    with (locks / "held.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = see(here, caches=True)
        wanted = [here.root / ".triton/cache" / HASH, here.root / "outputs" / HASH]
        assert sorted(whats(found, "cache")) == sorted(map(str, wanted))
        assert whats(found, "lock") == [str(locks / "stale.lock")]
        assert len(take(here, found, caches=True).done) == 3
    assert (here.root / "outputs/global_step_1/model.pt").exists()
    assert (outside / HASH / "kernel.json").exists()
    assert [path.exists() for path in wanted] == [False, False]
    here.host = here.link.host = Host(HERE, HERE, path=str(here.root), env={"TRITON_CACHE_DIR": str(outside)})
    assert whats(see(here, caches=True), "cache") == []


def test_caches_stay_while_a_job_of_the_tree_runs(here: Site) -> None:
    (here.root / ".triton/cache" / HASH).mkdir(parents=True)
    here.start("exec sleep 60")
    found = see(here, caches=True)
    assert found.things == ()
    assert [thing.kind for thing in found.alone if thing.kind == "cache"] == ["cache"]


def test_over_ssh(there: Site) -> None:
    job = there.start("(setsid sleep 61 &); true")
    there.follow(job)
    found = see(there)
    (thing,) = found.things
    assert thing.owner == there.root.owner()
    assert not take(there, found).left
    assert not alive(int(thing.what))


def test_as_it_is_called(here: Site, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*words: str) -> tuple[int, str, str]:
        code = run(["--root", str(here.root), "clean", *words])
        return code, *capsys.readouterr()

    program = f"{sys.executable} -c 'import time; time.sleep(61.5)' --token=hf_abcdefghijklmnopqrstuvwx"
    here.follow(here.start(f"(setsid {program} &)"))
    time.sleep(0.3)
    code, out, _ = call("--dry-run")
    assert code == 1
    assert "sleep(61.5)" in out
    assert "hf_" not in out
    code, out, err = call()
    assert code == 1
    assert "--yes" in err
    code, out, _ = call("--yes", "--format", "json")
    assert code == 0
    assert '"done": true' in out
    code, out, _ = call()
    assert code == 0
    assert "has left nothing" in out
