"""A log that is followed arrives whole and once, whatever happens to the line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from patcher import jobs
from patcher.jobs import follow_log
from patcher.jobs.agent import log_reading, runner
from patcher.jobs.run import follow_and_keep
from patcher.remote.host import Host
from patcher.remote.link import HostLink
from tests.jobs.conftest import Site
from tests.jobs.test_running import log_of
from tests.machines import Machine
from tests.remote import cutting
from tests.remote.cutting import Fault

WRITER = """
import os, random, sys, time
chance = random.Random(7)
number = 0
while number < int(sys.argv[1]) or (len(sys.argv) > 3 and not os.path.exists(sys.argv[3])):
    number += 1
    text = "".join(chance.choice("abc é漢字🙂\\t=|#") for _ in range(chance.randrange(200)))
    end = chance.choice(["\\n", "\\n", "\\r\\n", "\\r", "", "\\n\\n"])
    os.write(1, f"{number} {text}{end}".encode())
    if number % 40 == 0:
        time.sleep(float(sys.argv[2]))
os.write(1, b"the end, without a newline")
"""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_log, "PAUSES", (0.05,))


@pytest.mark.hosts
def test_the_connection_is_killed_twenty_times(there: Site) -> None:
    there.write("writer.py", WRITER)
    job = there.start("exec python3 writer.py 500 0.04 enough")
    texts: list[str] = []
    cuts = 0

    def kill() -> None:
        nonlocal cuts
        while cuts < 20:
            time.sleep(0.35)
            processes = [channel[0] for channel in opened if channel[0].poll() is None]
            if processes:
                processes[-1].kill()
                cuts += 1
        there.write("enough", "")

    opened: list[tuple[object]] = []
    again = there.link.reconnect

    def reconnect() -> object:
        connection = again()
        opened.append((connection.channel._process,))
        return connection

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    verdict = jobs.follow(
        reconnect,  # type: ignore[arg-type]
        reconnect(),  # type: ignore[arg-type]
        job,
        jobs.JobListener(text=texts.append, problem=lambda _: None),
    )
    assert verdict.kind == "ok"
    assert cuts == 20
    assert "".join(texts).encode() == log_of(job)
    assert verdict.offset == len(log_of(job))


@pytest.mark.hosts
def test_the_line_is_cut_at_any_byte(there: Site, reachable: Machine) -> None:
    there.write("writer.py", WRITER)
    job = there.start("exec python3 writer.py 6000 0")
    while not jobs.look(there.open())[0].over:
        time.sleep(0.1)
    size = len(log_of(job))
    chance = random.Random(3)
    with cutting.line(reachable, "cutline") as line:
        link = HostLink(Host("loop", line.name, path=str(there.root)), there.root.name)
        for how in ("cut", "silent"):
            for _ in range(10 if how == "cut" else 1):
                line.set(Fault(down=chance.randrange(20_000, size), how=how, times=1))  # type: ignore[arg-type]
                texts: list[str] = []
                try:
                    first = link.open()[0]
                except Exception:
                    continue
                listener = jobs.JobListener(text=texts.append, problem=lambda _: None)
                verdict = jobs.follow(link.reconnect, first, job, listener)
                assert verdict.kind == "ok"
                assert "".join(texts).encode() == log_of(job)
        link.close()


def test_two_followers_at_once_get_the_same(there: Site) -> None:
    there.write("writer.py", WRITER)
    job = there.start("exec python3 writer.py 3000 0.02")
    results: list[str] = ["", ""]

    def follow(which: int) -> None:
        link = HostLink(there.host, there.root.name)
        texts: list[str] = []
        jobs.follow(link.reconnect, link.open()[0], job, jobs.JobListener(text=texts.append))
        results[which] = "".join(texts)
        link.close()

    threads = [threading.Thread(target=follow, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1] == log_of(job).decode()


@pytest.mark.hosts
def test_two_hundred_megabytes_in_bounded_memory(there: Site) -> None:
    job = there.start(
        "yes 'a line that says little but goes on for a while' | head -c 200000000; echo; echo 'step:1 - end'"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    size = 0
    while not jobs.look(there.open())[0].over:
        time.sleep(0.1)
    verdict = there.follow(job)
    assert time.monotonic() - begun < 60
    assert verdict.kind == "ok"
    assert verdict.offset == 200_000_014
    connection = there.open()

    def count(event: object, body: bytes) -> None:
        nonlocal size
        size += len(body)

    connection.channel.ask("job_follow", on_event=count, id=job.id, offset=0, wait=True)
    assert size == 200_000_014
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 60_000


def test_a_long_log_is_asked_for_the_times_of_the_lines_that_count_alone() -> None:
    """Each time asked for reads the file of times: with 100,000 steps, status took a minute."""
    log = io.BytesIO(b"dataset len: 3\n" + b"".join(b"step:%d - a:1\n" % n for n in range(100_000)))
    asked: list[int] = []

    def when(offset: int) -> float:
        asked.append(offset)
        return float(len(asked))

    lines, offset, newlines = log_reading.find_lines(log, ["dataset len: ", "dataset: "], ["step:"], when)
    assert (len(asked), sorted(asked)) == (1 + log_reading.LAST, asked)
    assert (lines[0][0], lines[-1]) == (1, [100_001, offset, len(asked), "step:99999 - a:1\n"])
    assert newlines == 100_001


def test_a_line_without_an_end_does_not_grow_without_bound(there: Site) -> None:
    job = there.start("head -c 2000000 /dev/zero | tr '\\0' x; printf '\\377\\376 no text \\n'")
    texts: list[str] = []
    verdict = there.follow(job, text=texts.append)
    assert verdict.kind == "ok"
    assert max(len(text) for text in texts) <= 1 << 14
    assert "".join(texts) == log_of(job).decode("utf-8", "replace")


def test_an_interrupt_leaves_the_job_running(there: Site) -> None:
    job = there.start("echo begun; until [ -e go ]; do sleep 0.1; done")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    verdict = there.follow(job, text=interrupt)
    assert (verdict.kind, verdict.job.over) == ("running", False)
    assert jobs.running(there.open()) is not None
    there.write("go", "")
    assert there.follow(job).kind == "ok"


def test_attaching_late_gives_phases_the_times_that_they_had(there: Site) -> None:
    job = there.start(
        "echo '[uky] config begin 0.0s pid=1'; sleep 1.2; echo '[uky] dataset begin 0.0s pid=1'; sleep 0.6; "
        "echo 'Training Progress:   0%| | 0/2 [00:00<?, ?it/s]'"
    )
    while not jobs.look(there.open())[0].over:
        time.sleep(0.1)
    time.sleep(1)
    texts: list[str] = []
    for verdict in (there.follow(job), there.follow(job, text=texts.append)):
        assert verdict.spans["config"] == pytest.approx(1.2, abs=0.5)
        assert verdict.spans["dataset"] == pytest.approx(0.6, abs=0.5)


def test_the_disk_is_full_before_the_start_is_written_down(tmp_path: Path) -> None:
    """The job fills the disk between its start and the note of it: what it needs was set aside before."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], check=True)
    try:
        path = str(small / "job.json")
        runner.set_aside(path, 4096)
        with contextlib.suppress(OSError):
            (small / "log").write_bytes(b"x" * 100_000)
        with pytest.raises(OSError, match="No space"):
            runner.write_whole(path, {"started": 1.0})
        runner.write_reserved(path, {"started": 1.0})
        assert json.loads((small / "job.json").read_bytes()) == {"started": 1.0}
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.parametrize(("code", "kind"), [(7, "failed"), (0, "ok")])
def test_the_disk_is_full_while_the_job_logs(tmp_path: Path, code: int, kind: str) -> None:
    """Its verdict says so, also of one that ended well, whose configuration cannot be kept then; and so does its
    diagnosis."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(small)], check=True)
    try:
        (small / "fork/verl").mkdir(parents=True)
        (small / "fork/verl/__init__.py").write_text("")
        (small / "fork/run.sh").write_text(f"head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; exit {code}\n")
        link = HostLink(Host("here", "here", path=str(small / "fork")), "fork")
        connection, _ = link.open()
        with link.locked("a test"):
            job = jobs.start(connection, link.host, None, profile="debug", script="run.sh")
        problems: list[str] = []
        verdict = follow_and_keep(link, job, jobs.JobListener(problem=lambda problem: problems.append(str(problem))))
        assert (verdict.kind, verdict.job.code) == (kind, code)
        assert "disk" in " ".join(str(line) for line in verdict.lines)
        assert [("cannot be kept" in problem, "disk is full" in problem) for problem in problems] == (
            [(True, True)] if kind == "ok" else []
        )
        link.close()
        command = [sys.executable, "-m", "patcher", "--root", str(small / "fork"), "diagnose", "here"]
        env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
        assert "is full" in done.stdout, done.stderr
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
