"""A release in the cache that is not as it was fetched is noticed, and fetched anew."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from serving import SOURCES, Server, release_files, wheel_of
from test_fetch import SDIST, WHEEL, kept

from patcher.errors import ReleaseError
from patcher.packages.releases import cache, sources, versions
from patcher.packages.releases.cache import note_of
from tests.worktree.test_files import PLANTED

MODULE = "demo_pkg/deep/a.py"


def change(path: Path) -> None:
    """Other bytes, with the size and the time that they had."""
    found = path.stat()
    path.write_bytes(b"#" * found.st_size)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def instead(path: Path, kind: str) -> None:
    path.unlink()
    PLANTED[kind](path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda folder: os.truncate(folder / MODULE, 2),
    "zeroed": lambda folder: (folder / MODULE).write_bytes(b"\0" * (folder / MODULE).stat().st_size),
    "changed": lambda folder: change(folder / MODULE),
    "missing": lambda folder: (folder / MODULE).unlink(),
    "extra": lambda folder: (folder / "demo_pkg/extra.py").write_text("x = 1\n"),
    "emptied": lambda folder: [shutil.rmtree(path) for path in folder.iterdir()],
    "gone": shutil.rmtree,
    **{f"{kind} in its place": (lambda folder, kind=kind: instead(folder / MODULE, kind)) for kind in PLANTED},
}


@pytest.mark.parametrize("archive", [False, True], ids=["wheel", "source archive"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed_and_the_release_fetched_anew(damage: str, archive: bool, server: Server) -> None:
    server.ranges = not archive
    folder = sources("demo-pkg", "1.1")
    DAMAGES[damage](folder)
    told: list[str] = []
    server.requests.clear()
    assert kept(sources("demo-pkg", "1.1", progress=lambda what, *_: told.append(str(what)))) == SOURCES
    assert any(path.startswith("/files/") for path in server.requests)
    assert any("damaged" in line for line in told) == (damage != "gone")
    server.requests.clear()
    assert kept(sources("demo-pkg", "1.1")) == SOURCES
    assert server.requests == []


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "gone"])
def test_offline_the_error_names_the_release(damage: str, server: Server) -> None:
    DAMAGES[damage](sources("demo-pkg", "1.1"))
    with pytest.raises(ReleaseError, match=r"demo-pkg 1\.1 in the cache is damaged"):
        sources("demo-pkg", "1.1", offline=True)


def test_a_copied_cache_is_compared_by_hashes_and_then_believed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources("demo-pkg", "1.1")
    shutil.copytree(tmp_path / "cache", tmp_path / "other", copy_function=shutil.copyfile)
    server.requests.clear()
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "other"))
    folder = sources("demo-pkg", "1.1")
    before = note_of(folder).read_bytes()
    assert kept(sources("demo-pkg", "1.1")) == SOURCES
    assert (server.requests, note_of(folder).read_bytes()) == ([], before)


def record_of(members: dict[str, str]) -> str:
    rows = []
    for name, text in members.items():
        digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text.encode())}\n")
    return "".join(rows) + "demo_pkg-1.1.dist-info/RECORD,,\n"


def test_what_an_earlier_version_fetched_is_compared_with_its_record(server: Server) -> None:
    info = "demo_pkg-1.1.dist-info"
    server.files[WHEEL] = wheel_of(
        {**SOURCES, f"{info}/METADATA": "Name: demo-pkg\n", f"{info}/RECORD": record_of(SOURCES)}
    )
    folder = sources("demo-pkg", "1.1")
    for damage in ("zeroed", "missing", "extra", "emptied"):
        note_of(folder).unlink()
        server.requests.clear()
        assert kept(sources("demo-pkg", "1.1", offline=True)) == SOURCES
        assert note_of(folder).exists()
        note_of(folder).unlink()
        DAMAGES[damage](folder)
        assert kept(sources("demo-pkg", "1.1")) == SOURCES
        assert server.requests != []


@pytest.mark.parametrize("ranges", [True, False])
def test_members_that_are_not_what_record_says_are_refused(ranges: bool, server: Server, tmp_path: Path) -> None:
    info = "demo_pkg-1.1.dist-info"
    wrong = record_of({**SOURCES, MODULE: "y = 3\n"})
    server.files.pop(SDIST)
    server.ranges = ranges
    server.files[WHEEL] = wheel_of({**SOURCES, f"{info}/METADATA": "Name: demo-pkg\n", f"{info}/RECORD": wrong})
    with pytest.raises(ReleaseError) as raised:
        sources("demo-pkg", "1.1")
    assert MODULE in str(raised.value)
    assert not (tmp_path / "cache/releases/demo-pkg/1.1/sources").exists()


@pytest.mark.parametrize("ranges", [True, False])
def test_metadata_that_was_changed_after_its_record_is_no_damage(ranges: bool, server: Server) -> None:
    """As in the wheels of torch 1.9.1 to 1.11.0, whose RECORD tells six bytes more of it."""
    info = "demo_pkg-1.1.dist-info"
    recorded = record_of({**SOURCES, f"{info}/METADATA": "Name: demo-pkg\nVersion: 1.1+cu102\n"})
    server.files.pop(SDIST)
    server.ranges = ranges
    metadata = {f"{info}/METADATA": "Name: demo-pkg\nVersion: 1.1\n", f"{info}/RECORD": recorded}
    server.files[WHEEL] = wheel_of({**SOURCES, **metadata})
    assert kept(sources("demo-pkg", "1.1")) == SOURCES


NONSENSE = ["", "[", "{}", "5", '["1.1", 2]', '["1.1", "no version"]', "[" * 100_000, '["9.9\\u0000"]', "\udcff"]


@pytest.mark.parametrize("content", NONSENSE)
def test_a_list_of_versions_with_nonsense_in_it_is_not_believed(content: str, server: Server, tmp_path: Path) -> None:
    assert versions("demo-pkg") == ["2.0", "1.1", "1.0"]
    (tmp_path / "cache/releases/demo-pkg/versions.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert versions("demo-pkg") == ["2.0", "1.1", "1.0"]


def test_a_list_of_versions_dated_in_the_future_is_not_believed(server: Server, tmp_path: Path) -> None:
    versions("demo-pkg")
    listed = tmp_path / "cache/releases/demo-pkg/versions.json"
    listed.write_text(json.dumps(["9.9"]))
    os.utime(listed, (time.time() + 3600,) * 2)
    assert versions("demo-pkg") == ["2.0", "1.1", "1.0"]
    listed.write_text(json.dumps(["9.9"]))
    os.utime(listed, (time.time() + 3600,) * 2)
    with pytest.raises(ReleaseError):
        versions("demo-pkg", offline=True)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_list_of_versions_is_replaced_itself(kind: str, server: Server, tmp_path: Path) -> None:
    listed = tmp_path / "cache/releases/demo-pkg/versions.json"
    listed.parent.mkdir(parents=True)
    PLANTED[kind](listed)
    assert versions("demo-pkg") == ["2.0", "1.1", "1.0"]
    if kind != "folder":
        assert json.loads(listed.read_text()) == ["2.0", "1.1", "1.0"]


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_lock_is_an_error_and_stays(kind: str, server: Server, tmp_path: Path) -> None:
    lock = tmp_path / "cache/releases/demo-pkg/1.1/.sources.lock"
    lock.parent.mkdir(parents=True)
    PLANTED[kind](lock)
    with pytest.raises(ReleaseError, match="cannot write to the cache"):
        sources("demo-pkg", "1.1")
    assert os.path.lexists(lock)


def test_the_wait_for_another_process_ends(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PATIENCE", 0.2)
    lock = tmp_path / "cache/releases/demo-pkg/1.1/.sources.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text('{"pid": 4711, "host": "somewhere"}')
    told: list[str] = []
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ReleaseError, match="4711") as raised:
            sources("demo-pkg", "1.1", progress=lambda what, *_: told.append(str(what)))
    assert "somewhere" in str(raised.value)
    assert any("waiting for another process" in line for line in told)
    assert release_files()[WHEEL]
    assert kept(sources("demo-pkg", "1.1")) == SOURCES
