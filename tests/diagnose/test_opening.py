"""Files, folders and what bars the way to them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from pathlib import Path

import pytest

from patcher.diagnose.diagnose import is_being_written
from patcher.diagnose.log_files import logs_named
from patcher.diagnose.log_stream import open_log
from patcher.errors import UsageError


def read(path: Path | str, most: int = 1 << 16) -> bytes:
    with open_log(str(path)) as stream:
        pieces = []
        while piece := stream.read(most):
            pieces.append(piece)
        return b"".join(pieces)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("name", ["run.log", "run.log.gz"])
def test_packed_logs_are_known_by_how_they_begin(tmp_path: Path, pack: type[bytes], name: str) -> None:
    path = tmp_path / name
    path.write_bytes(pack(b"ready\n" * 100_000))
    assert read(path) == b"ready\n" * 100_000


def test_a_packed_log_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    content = os.urandom(100_000).hex().encode()
    path.write_bytes(gzip.compress(content)[:60_000])
    assert content.startswith(read(path))
    assert len(read(path)) > 50_000


def test_a_packed_log_that_is_cut_before_its_first_line_is_not_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    path.write_bytes(b"\x1f\x8b\x08broken")
    with pytest.raises(UsageError, match="cannot read") as raised:
        read(path)
    assert "cut off" in str(raised.value.cause)


def test_a_packed_log_that_is_damaged_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    packed = bytearray(gzip.compress(os.urandom(100_000).hex().encode()))
    packed[50_000:50_400] = bytes(400)
    path.write_bytes(packed)
    with pytest.raises(UsageError, match="cannot read"):
        read(path)


def test_a_log_that_grows_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"ready\n" * 10)
    with open_log(str(path)) as stream, path.open("ab") as more:
        assert stream.read(6) == b"ready\n"
        more.write(b"more\n" * 1000)
        more.flush()
        assert stream.read(10_000) == b"ready\n" * 9
        assert stream.read(10_000) == b""


def test_a_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"ready\n" * 50_000))
    writer.start()
    assert read(path) == b"ready\n" * 50_000
    writer.join()


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ready\n")))
    assert read("-") == b"ready\n"


def test_what_is_no_log_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no log"):
        read(tmp_path / "none.log")
    with pytest.raises(UsageError, match="is no log"):
        read(sys.executable)
    packed = tmp_path / "run.log.bz2"
    packed.write_bytes(bz2.compress(os.urandom(10_000)))
    with pytest.raises(UsageError, match="is no log"):
        read(packed)
    with pytest.raises(UsageError, match="there are no logs"):
        logs_named(str(tmp_path))
    (tmp_path / "empty.log").write_bytes(b"")
    assert read(tmp_path / "empty.log") == b""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_log_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(UsageError, match="cannot read"):
        read(path)


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ready\n")


def test_a_session_of_ray_and_its_rotated_logs(tmp_path: Path) -> None:
    logs = tmp_path / "session_2026" / "logs"
    touch(
        logs,
        *("worker-1-01-7.out", "worker-1-01-7.out.1", "worker-1-01-7.out.2", "worker-1-01-7.err", "old/x.log.gz"),
        *("raylet.out", "gcs_server.out", "python-core-worker-1_7.log", "dashboard.log", "notes.md"),
    )
    (logs / "empty.err").touch()
    (tmp_path / "session_latest").symlink_to(logs.parent)
    touch(tmp_path, "session_2025/logs/worker-0.out")
    found = logs_named(str(tmp_path))
    own = [[Path(part).name for part in one.parts] for one in found if not one.of_ray_daemon]
    assert own == [
        ["x.log.gz"],
        ["worker-1-01-7.err"],
        ["worker-1-01-7.out.2", "worker-1-01-7.out.1", "worker-1-01-7.out"],
    ]
    kept = sorted(Path(part).name for one in found if one.of_ray_daemon for part in one.parts)
    assert kept == ["gcs_server.out", "raylet.out"]


def test_an_empty_session_does_not_hide_the_logs_beside_it(tmp_path: Path) -> None:
    (tmp_path / "session_latest").mkdir()
    (tmp_path / "train.log").write_text("ready\n")
    assert [one.parts for one in logs_named(str(tmp_path))] == [(str(tmp_path / "train.log"),)]
    (tmp_path / "train.log").write_text("")
    with pytest.raises(UsageError, match="there are no logs") as raised:
        logs_named(str(tmp_path))
    assert str(raised.value.cause) == "1 log there, and nothing in it"


def test_whether_a_file_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("x")
    assert is_being_written(path) is False
    with path.open("rb"):
        assert is_being_written(path) is False
    with path.open("ab"):
        assert is_being_written(path) is True
    assert is_being_written(tmp_path / "none") is None
