"""A job's folder may be made up: whatever its record claims, nothing that the job did not make is taken away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher import jobs
from patcher.jobs.agent import processes
from patcher.jobs.agent.folder import notes_key
from patcher.jobs.agent.runner import start_of
from patcher.jobs.agent.traces import seal
from tests.jobs.conftest import Site
from tests.jobs.test_cleaning import paths, see, take, whats
from tests.jobs.test_running import alive, wait_for
from tests.lanes import one_in

ID = "20261122-101112-f0f0f0"


@pytest.fixture(params=["this user", "another user"])
def canary(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own with a child, none of any job's."""
    before: list[str] = []
    if request.param == "another user":
        if os.geteuid() != 0:
            pytest.skip("another user needs root")
        before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    program = subprocess.Popen([*before, "sh", "-c", "sleep 600 & exec sleep 601"], start_new_session=True)
    wait_for(lambda: b"601" in Path(f"/proc/{program.pid}/cmdline").read_bytes())
    yield program
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def forge(site: Site, name: str = ID, notes: list[dict[str, Any]] | None = None, **values: Any) -> Path:
    """A job's folder as somebody may put it into the tree."""
    at = site.root / ".uky-patch/host/jobs" / name
    at.mkdir(parents=True)
    for above in (at, *list(at.parents)[:3]):
        os.chown(above, *site.owner)
    record = {"id": name, "script": "run.sh", "root": str(site.root), "machine": processes.here(), "started": 1.0}
    (at / "job.json").write_text(json.dumps({**record, **values}))
    (at / "log").write_text("")
    (at / "traces").write_text("".join(json.dumps(note) + "\n" for note in notes or ()))
    return at


def noted(pid: int) -> dict[str, Any]:
    return {"pid": pid, "start": start_of(pid)}


def clean_and_stop(site: Site) -> None:
    for running in (False, True):
        found = see(site, running=running, caches=True)
        take(site, found, running=running, caches=True)
    jobs.stop(site.open(), None, grace=0.2)


def test_a_process_that_a_record_claims_survives(here: Site, canary: subprocess.Popen[bytes]) -> None:
    for number, claim in enumerate(("process", "runner")):
        at = forge(here, f"{ID}{number}", **{claim: noted(canary.pid)})
        clean_and_stop(here)
        assert canary.poll() is None
        shutil.rmtree(at)
    forge(here, process=noted(canary.pid), runner=noted(canary.pid), end=None)
    clean_and_stop(here)
    assert canary.poll() is None
    assert alive(canary.pid)


def test_neither_the_first_process_nor_this_one_is_claimed(here: Site) -> None:
    everything = processes.table()
    for pid in (1, os.getpid(), os.getppid()):
        job = {
            "id": ID,
            "folder": str(here.root),
            "machine": processes.here(),
            "process": noted(pid),
            "runner": noted(pid),
        }
        assert processes.claims(job, everything) == {}


@pytest.mark.parametrize(("key", "value"), [("boot", "00000000-0000-0000-0000-000000000000"), ("space", "pid:[1]")])
def test_a_record_from_before_the_machine_was_started_claims_nothing(key: str, value: str, here: Site) -> None:
    job = here.start("(setsid sleep 61 &); true")
    here.follow(job)
    record = Path(job.folder) / "job.json"
    told = json.loads(record.read_text())
    before = record.read_text()
    told["machine"][key] = value
    record.write_text(json.dumps(told))
    assert see(here).things == ()
    record.write_text(before)
    assert len(see(here).things) == 1


def test_in_a_copied_tree_the_original_jobs_processes_are_nobodys(here: Site, tmp_path: Path) -> None:
    job = here.start("exec sleep 61")
    copied = tmp_path / "copied"
    shutil.copytree(here.root, copied, symlinks=True, ignore=shutil.ignore_patterns("tmux"))
    told = json.loads((Path(job.folder) / "job.json").read_text())
    there = dict(told, id=job.id, folder=str(copied / ".uky-patch/host/jobs" / job.id))
    everything = processes.table()
    assert job.pid in processes.claims(dict(told, folder=job.folder), everything)
    assert processes.claims(there, everything) == {}


def test_files_that_a_record_claims_survive(here: Site, tmp_path: Path) -> None:
    tag = uuid.uuid4().hex
    segment, socket = paths(tag)
    session = tmp_path / "session_2026-11-22_10-11-12_123456_1"
    session.mkdir()
    (session / "canary").write_text("somebody's")
    segment.write_text("somebody's")
    bind = "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", bind, str(socket)], check=True)
    notes = []
    for kind, path in (("shm", segment), ("socket", socket), ("session", session)):
        found = path.lstat()
        note = {"kind": kind, "path": str(path), "device": found.st_dev, "inode": found.st_ino, "pid": 1}
        notes += [note, {**note, "seal": seal(ID, note, b"guessed")}, {**note, "seal": seal(ID, note, b"")}]
    try:
        forge(here, notes=notes)
        assert see(here).things == ()
        clean_and_stop(here)
        assert all(os.path.lexists(path) for path in (segment, socket, session / "canary"))
        told = "".join(json.dumps({**note, "seal": seal(ID, note, notes_key(make=True))}) + "\n" for note in notes)
        (here.root / ".uky-patch/host/jobs" / ID / "traces").write_text(told)
        assert len(see(here).things) == 3  # So it was the seal that was wanting.
    finally:
        segment.unlink(missing_ok=True)
        socket.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "place", one_in(3, ["~", ".", "..", "/", "verl", "verl/trainer", "tests", ".git", "~/.cache", "/tmp"])
)
def test_a_cache_is_none_where_the_tree_or_others_files_are(
    place: str, here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "HF_HOME", "HF_HUB_CACHE")
    forge(here, variables=dict.fromkeys(names, place))
    kept = []
    for above in (here.root, here.root / "verl/trainer", here.root / "tests", tmp_path):
        for folder in ("A" * 52, "triton", "ab", "torch_compile_cache"):
            (above / folder).mkdir(parents=True, exist_ok=True)
            (above / folder / "file").write_text("somebody's")
            kept.append(above / folder / "file")
        (above / "uv.lock").write_text("version = 1\n")
        kept.append(above / "uv.lock")
    clean_and_stop(here)
    assert all(path.exists() for path in kept)


def test_a_folder_of_jobs_that_is_a_link_holds_none(here: Site, tmp_path: Path) -> None:
    job = here.start("exec sleep 61")
    at = Path(job.folder)
    jobs_folder = at.parent
    (jobs_folder / "20991231-000000-ffffff").symlink_to(at)
    assert see(here, running=True).job == job.id
    (jobs_folder / "20991231-000000-ffffff").unlink()
    moved = tmp_path / "elsewhere"
    shutil.copytree(jobs_folder, moved, symlinks=True, ignore=shutil.ignore_patterns("tmux"))
    jobs_folder.rename(jobs_folder.with_name("kept"))
    jobs_folder.symlink_to(moved)
    with pytest.raises(Exception, match="no job has been started"):
        see(here)
    jobs_folder.unlink()
    jobs_folder.with_name("kept").rename(jobs_folder)
    assert "process" in {thing.kind for thing in see(here, running=True).things}
    assert str(job.pid) in whats(see(here, running=True), "process")


NONSENSE: list[Any] = [
    [],
    5,
    None,
    {"process": 5},
    {"process": {"pid": -1, "start": 1}},
    {"process": {"pid": "1", "start": 1}, "runner": []},
    {"process": {"pid": 1 << 70, "start": 1}, "runner": {"pid": 2.5}},
    {"machine": 5, "variables": {"TRITON_CACHE_DIR": 5}, "arguments": [[]], "started": "now", "clock": {}},
    {"started": float("inf"), "ordered": float("nan")},
]


@pytest.mark.parametrize(
    "record",
    one_in(8, NONSENSE),
    ids=str,
)
def test_nonsense_in_a_record_is_no_crash(record: Any, here: Site) -> None:
    at = forge(here)
    (at / "job.json").write_text(json.dumps(record))
    clean_and_stop(here)
    (at / "end.json").write_text(json.dumps(record))
    clean_and_stop(here)
    (at / "job.json").write_text("[" * 100_000)
    clean_and_stop(here)
