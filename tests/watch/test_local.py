"""A log on this machine is read whole and once, whatever becomes of the file; its times are told as far as they can."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from patcher.watch import local_log
from patcher.watch.local_log import LocalLog, log_of
from patcher.watch.run_state import RunState


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_log, "NAP", 0.01)


def followed(path: Path) -> tuple[LocalLog, RunState]:
    source, state = LocalLog(path), RunState("debug")
    source.begin(state)
    return source, state


def phases(source: LocalLog, state: RunState) -> list[str]:
    source.read(state, 0.05)
    return list(state.milestones.begun)


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    source, state = followed(tmp_path / "log")
    assert phases(source, state) == []
    (tmp_path / "log").write_text("x\ndataset len: 3\n")
    assert phases(source, state) == ["config", "dataset"]
    source.close()


def test_a_log_that_is_rotated_is_read_to_its_end_and_then_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x\n")
    source, state = followed(log)
    assert phases(source, state) == ["config"]
    with log.open("a") as old:
        old.write("dataset len: 3\n")
        old.flush()
        log.rename(tmp_path / "log.1")
        log.write_text("colocated worker base class y\n")
        assert phases(source, state) == ["config", "dataset", "resource-pool"]
    source.close()


def test_a_log_that_is_cut_short_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 500 + "\n")
    source, state = followed(log)
    assert phases(source, state) == ["config"]
    os.truncate(log, 0)
    assert phases(source, state) == ["config"]
    with log.open("a") as stream:
        stream.write("dataset len: 3\n")
    assert phases(source, state) == ["config", "dataset"]
    source.close()


def test_the_times_of_a_log_that_is_there_already_are_those_of_its_stamps(tmp_path: Path) -> None:
    log = tmp_path / "log"
    now = time.time() - 100
    lines = [
        (0, "starts"),
        (30, "INFO x dataset\nUsing dataset class: RLHFDataset"),
        (50, "INFO y\ncolocated worker base class z"),
    ]
    text = "".join(
        f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now + at))},123 {words}\n" for at, words in lines
    )
    log.write_text(text)
    os.utime(log, (now + 60, now + 60))
    source, state = followed(log)
    assert [round(at) for at in state.milestones.begun.values()] == [0, 30, 50]
    status = state.status(source.now())
    assert status.seconds == pytest.approx(50, abs=3)
    assert status.silent == pytest.approx(40, abs=3)
    source.close()


def test_stamps_of_another_time_zone_are_shifted_to_when_the_file_was_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    now = time.time() - 10
    elsewhere = now - 8 * 3600
    for at, words in ((0, "a"), (20, "dataset len: 3")):
        stamp = time.strftime("%m-%d %H:%M:%S", time.localtime(elsewhere + at - 20))
        with log.open("a") as stream:
            stream.write(f"INFO {stamp} x\n{words}\n")
    os.utime(log, (now, now))
    source, state = followed(log)
    assert state.milestones.begun["dataset"] == pytest.approx(20, abs=2)
    assert source.now() == pytest.approx(30, abs=3)
    source.close()


def test_the_last_words_are_heard_also_where_they_tell_no_phase(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x\nGenerating train split: 0 examples [00:00, ? examples/s]\r")
    source, state = followed(log)
    source.read(state, 0.02)
    assert state.signs.bar is not None
    source.close()


def test_the_log_of_a_process_is_where_its_output_goes(tmp_path: Path) -> None:
    import subprocess

    log, through = tmp_path / "a log", tmp_path / "tee log"
    script = f"sleep 30 > '{log}' & (sleep 31 | tee '{through}' > /dev/null) & wait"
    with subprocess.Popen(["bash", "-c", script], start_new_session=True) as shell:
        try:
            deadline = time.monotonic() + 10
            found: set[object] = set()
            while found != {log, through} and time.monotonic() < deadline:
                answer = subprocess.run(["pgrep", "-s", str(shell.pid), "sleep"], capture_output=True, text=True).stdout
                found = {log_of(int(pid)) for pid in answer.split()} - {None}
                time.sleep(0.05)
            assert found == {log, through}
        finally:
            os.killpg(shell.pid, 9)
