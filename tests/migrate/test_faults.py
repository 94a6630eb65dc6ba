"""What can go wrong on a host or on the way to it: the right error, nothing half done, and running again works."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import forks
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.cuts import WORDS, Course
from tests.migrate.moving import Site, Told, failed, other_host, sent_to
from tests.migrate.test_end_to_end import job
from tests.remote.cutting import Fault, Line

pytestmark = [pytest.mark.network, pytest.mark.hosts]

BARE = ("--python", "/usr/bin/python3")
"""For a host on which nothing for training is installed: the interpreter is named, so that the records are known."""


def test_without_rsync_there_the_tree_goes_by_tar(site: Site, tmp_path: Path) -> None:
    with other_host(tmp_path, "bare", f"--bind /dev/null {shutil.which('rsync')}") as bare:
        moving.packages(bare)
        there = sent_to(site, bare)
        told = there.mover.migrate("bare", *WORDS)
        assert told.code == 0, told.text
        assert "tar" in told.steps["transfer"]["detail"]
        moving.arrived(site.mover.tree, there.there)


def test_without_rsync_here_the_tree_goes_by_tar(site: Site, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "env", "uname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "ssh").symlink_to(site.machine.shims / "ssh")
    site.mover.env["PATH"] = f"{tools}"
    site.mover.env["GIT_EXEC_PATH"] = subprocess.run(
        ["git", "--exec-path"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for name in ("tr", "cat"):
        (tools / name).symlink_to(str(shutil.which(name)))
    told = site.mover.migrate("site", *WORDS)
    assert told.code == 0, told.text
    assert "tar" in told.steps["transfer"]["detail"]
    moving.arrived(site.mover.tree, site.there)


def test_a_disk_that_is_too_small(site: Site, tmp_path: Path) -> None:
    with other_host(tmp_path, "tiny", "-t tmpfs -o size=500k,mode=777 tmpfs /mnt") as tiny:
        failed(
            sent_to(site, tiny).mover.migrate("tiny", "--path", "/mnt/fork", *BARE, *WORDS),
            "tiny",
            "disk is full",
            "name another folder",
        )
        assert tiny.do("find", "/mnt/fork", "-name", "*.py", check=False) == ""


def test_a_disk_that_fills_up_meanwhile(site: Site, tmp_path: Path) -> None:
    noise = random.Random(5).randbytes(6_000_000)
    with other_host(tmp_path, "full", "-t tmpfs -o size=90m,mode=777 tmpfs /mnt") as full:
        from tests.remote import cutting

        with cutting.line(full, "slow") as slow:
            there = sent_to(site, full)
            assert there.mover.migrate("full", "--path", "/mnt/fork", *BARE, *WORDS).code == 0
            mounted = full.sees(Path("/mnt/fork"))
            old = moving.shape(mounted)
            (site.mover.tree / "noise.bin").write_bytes(noise)
            forks.edit(site.mover.tree / "README.md", lambda text: text + "more\n")
            slow.set(Fault(rate=2_000_000))
            process = there.mover.start("migrate", "slow", "--path", "/mnt/fork", *BARE, *WORDS)
            deadline = time.monotonic() + 30
            while slow.total < 2_000_000 and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.02)
            full.do("sh", "-c", "cat /dev/zero > /mnt/filler", check=False)
            out, err = process.communicate(timeout=60)
            told = Told(process.returncode, out, err, 0)
            failed(told, "disk is full", "Free some")
            assert "Traceback" not in told.text
            full.quiet()
            assert moving.differing(moving.shape(mounted), old) == []
            full.do("rm", "/mnt/filler")
            slow.set()
            again = there.mover.migrate("slow", "--path", "/mnt/fork", *BARE, *WORDS)
            assert again.code == 0, again.text
            assert (mounted / "noise.bin").read_bytes() == noise


def test_a_folder_that_may_not_be_written_to(site: Site) -> None:
    site.machine.do("sh", "-c", "mkdir -p shut && chmod 555 shut")
    path = str(site.machine.home / "shut/fork")
    failed(site.mover.migrate("site", "--path", path, *WORDS), "shut", "ermission denied", "Name a folder")


def agents(host: Machine) -> list[int]:
    """The agent's processes there."""
    found = []
    for pid in host.pids():
        with contextlib.suppress(OSError):
            if b"zlib.decompress" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_the_agent_is_killed_at_any_moment(course: Course) -> None:
    """kill -9, twenty times: the run takes it up again; where it cannot, the next command settles what is left."""
    site, line = course.site, course.line
    moments = random.Random(3)
    for number in range(20):
        course.reset()
        line.set()
        process = site.mover.start("migrate", "line", *WORDS)
        bounds = course.whole["transfer" if number % 2 else ("probe", "render", "verify")[number % 3]]
        at = moments.randint(*bounds)
        deadline = time.monotonic() + 30
        while line.total < at and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        gone = number % 4 == 0
        for pid in agents(site.machine):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if gone:
            line.set(Fault(after=0))
        out, err = process.communicate(timeout=60)
        told = Told(process.returncode, out, err, 0)
        assert "Traceback" not in told.text, told.text
        assert told.code in ((0, 5) if gone else (0,)), told.text
        site.machine.quiet()
        if not (site.there / ".uky-patch/host/journal.json").exists():
            course.left(told)
        course.finished()


def test_the_hosts_processes_stand_still_for_a_while(course: Course) -> None:
    site, line = course.site, course.line
    course.reset()
    line.set()
    process = site.mover.start("migrate", "line", *WORDS)
    while line.total < course.whole["transfer"][0] + 50_000 and process.poll() is None:
        time.sleep(0.005)
    stopped = site.machine.pids()
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    time.sleep(3)
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert moving.differing(moving.shape(site.there), course.new) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_the_command_itself_is_ended(how: signal.Signals, course: Course) -> None:
    site, line = course.site, course.line
    for step, share in (("probe", 0.5), ("transfer", 0.1), ("transfer", 0.6), ("transfer", 0.99), ("render", 0.5)):
        course.reset()
        line.set(Fault(rate=3_000_000))
        begin, end = course.whole[step]
        process = site.mover.start("migrate", "line", *WORDS)
        while line.total < begin + share * (end - begin) and process.poll() is None:
            time.sleep(0.002)
        if how is signal.SIGKILL:
            process.kill()
        else:
            os.killpg(process.pid, how)
        out, err = process.communicate(timeout=60)
        told = Told(process.returncode, out, err, 0)
        assert "Traceback" not in told.text, told.text
        if how is signal.SIGINT:
            assert told.code in (0, 130), told.text
        course.left(told)
        assert not _ours_running(site), "ssh or rsync outlives the command"
        course.finished()


def _ours_running(site: Site) -> list[str]:
    deadline = time.monotonic() + 5
    while True:
        listed = subprocess.run(["pgrep", "-af", str(site.machine.config)], capture_output=True, text=True).stdout
        found = [text for text in listed.splitlines() if " ssh " in f" {text} " or "/ssh " in text]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def test_a_killed_job_is_told_as_such(site: Site) -> None:
    job(site, 'echo begun; echo "$$" > pid.txt; sleep 60\n')
    assert site.mover.migrate("site", *WORDS).code == 0
    process = site.mover.start("migrate", "site", "--only", "job")
    pid = site.there / "pid.txt"
    deadline = time.monotonic() + 30
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(os.getpgid(int(pid.read_text())), signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    told = Told(process.returncode, out, err, 0)
    failed(told, code=1)
    assert told.json["job"]["verdict"] == "failed"
    assert "kill" in told.text.lower()
    site.machine.quiet()


def test_a_cut_does_not_start_a_job_twice(site: Site, line: Line) -> None:
    job(site)
    (site.mover.tree / "uky-patch.toml").write_text('[hosts.line]\nscript = "job.sh"\n')
    line.set()
    assert site.mover.migrate("line", *WORDS).code == 0
    line.set()
    told = site.mover.migrate("line", "--only", "job")
    assert told.code == 0, told.text
    whole = line.total
    jobs = site.there / ".uky-patch/host/jobs"
    for number in range(20):
        before = set(jobs.iterdir())
        line.set(Fault(after=whole * (2 * number + 1) // 40, times=1))
        told = site.mover.migrate("line", "--only", "job")
        assert told.code in (0, 5), told.text
        if told.code == 5:
            told = site.mover.migrate("line", "--only", "job")
        assert told.code == 0, told.text
        assert told.json["job"]["step"] == 2
        assert len(set(jobs.iterdir()) - before) == 1
        site.machine.quiet()
