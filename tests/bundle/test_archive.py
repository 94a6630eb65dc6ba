"""An archive is there whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.bundle import archive
from patcher.bundle.sealing import Sealed
from patcher.errors import TreeError, UsageError
from patcher.i18n import phrase

ROOT = Path(__file__).parents[2]


def sealed(name: str, content: bytes) -> Sealed:
    return Sealed(name, phrase("the log"), len(content), content, Counter())


FILES = (sealed("REPORT.md", b"a"), sealed("log/tail.txt", os.urandom(100_000)))


def without_nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that has no files without a name."""

    @contextlib.contextmanager
    def none(_: Path) -> Iterator[Any]:
        raise archive._NoNameError
        yield

    monkeypatch.setattr(archive, "_nameless", none)


@pytest.fixture(params=["nameless", "beside"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "beside":
        without_nameless(monkeypatch)
    return str(request.param)


def test_what_is_in_it(tmp_path: Path, way: str) -> None:
    path = tmp_path / "b.tar.gz"
    assert archive.write(path, "b", FILES) == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["b.tar.gz"]
    with tarfile.open(path) as found:
        members = found.getmembers()
        assert [member.name for member in members] == ["b", "b/REPORT.md", "b/log/tail.txt"]
        assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
        assert {member.mode for member in members if member.isfile()} == {0o600}
        content = found.extractfile("b/log/tail.txt")
        assert content is not None
        assert content.read() == FILES[1].content


def test_nothing_that_is_there_is_replaced(tmp_path: Path, way: str) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        archive.write(path, "b", FILES)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is there already"):
        archive.write(tmp_path / "link", "b", FILES)
    assert path.read_text() == "mine"
    assert {one.name for one in tmp_path.iterdir()} == {"b.tar.gz", "link"}


def test_one_that_comes_meanwhile_stays(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.tar.gz"
    pack: Callable[..., None] = archive._pack

    def late(*arguments: Any) -> None:
        pack(*arguments)
        path.write_text("mine")

    monkeypatch.setattr(archive, "_pack", late)
    with pytest.raises(UsageError):
        archive.write(path, "b", FILES)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("b.tar.gz", "mine")]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_nothing(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def full(stream: Any, top: str, files: Any) -> None:
        stream.write(b"half")
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(archive, "_pack", full)
    with pytest.raises(TreeError, match=r"cannot be written"):
        archive.write(tmp_path / "b.tar.gz", "b", FILES)
    assert list(tmp_path.iterdir()) == []


def test_a_real_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("a disk of its own needs root")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\nfrom patcher.errors import TreeError\n"
        "from tests.bundle.test_archive import FILES\nfrom patcher.bundle import archive\n"
        "try: archive.write(Path(sys.argv[2]) / 'b.tar.gz', 'b', FILES)\n"
        "except TreeError as error: print(error)\n"
        "print(list(Path(sys.argv[2]).iterdir()))"
    )
    inside = f'mount -t tmpfs -o size=64k none "$2" && exec {sys.executable} -c "$0" "$1" "$2"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, program, str(ROOT), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "No space left on device" in done.stdout
    assert done.stdout.endswith("[]\n")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        folder = Path("/proc/self")
    else:
        folder = tmp_path / "mine"
        folder.mkdir(mode=0o500)
    with pytest.raises(TreeError, match="cannot be written"):
        archive.write(folder / "b.tar.gz", "b", FILES)


def test_a_kill_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\nfrom tests.bundle.test_archive import FILES\n"
        "from patcher.bundle import archive\n"
        "pack = archive._pack\n"
        "def slow(*a):\n    pack(*a); print('packed', flush=True); time.sleep(60)\n"
        "archive._pack = slow\narchive.write(Path(sys.argv[2]) / 'b.tar.gz', 'b', FILES)"
    )
    running = subprocess.Popen([sys.executable, "-c", program, str(ROOT), str(tmp_path)], stdout=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == b"packed\n"
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []
