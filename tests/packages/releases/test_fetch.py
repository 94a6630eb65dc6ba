"""Sources of releases from an index of this machine: the cheap ways, the faults, the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from serving import SOURCES, Server, wheel_of

from patcher.errors import ReleaseError
from patcher.packages.releases import may_be_had, sources, versions, wheel

WHEEL = "demo_pkg-1.1-cp38-abi3-manylinux1_x86_64.whl"
SDIST = "demo_pkg-1.1.tar.gz"


def below(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def kept(folder: Path) -> dict[str, str]:
    return {name: text for name, text in below(folder).items() if ".dist-info" not in name}


def test_parts_of_a_wheel_are_enough(server: Server) -> None:
    folder = sources("demo-pkg", "1.1")
    assert kept(folder) == SOURCES
    assert (folder / "demo_pkg-1.1.dist-info" / "METADATA").read_text() == "Name: demo-pkg\nVersion: 1.1\n"
    assert server.sent < len(server.files[WHEEL]) / 2
    assert f"/files/{SDIST}" not in server.requests


def test_credentials_are_not_read_from_a_device(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").symlink_to("/dev/zero")  # The HTTP client would read it for ever.
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(ReleaseError) as caught:
        sources("demo-pkg", "1.1")
    assert str(tmp_path / "netrc") in str(caught.value.advice)
    assert server.requests == []


def test_without_ranges_the_source_archive_is_taken(server: Server) -> None:
    server.ranges = False
    folder = sources("Demo_Pkg", "1.1")
    assert kept(folder) == SOURCES
    assert (folder / "demo_pkg-1.1.dist-info" / "METADATA").is_file()


def test_without_ranges_or_a_source_archive_the_whole_wheel_is_taken(server: Server) -> None:
    server.ranges = False
    del server.files[SDIST]
    folder = sources("demo-pkg", "1.1")
    assert kept(folder) == SOURCES


def test_a_large_wheel_is_not_fetched_whole_unasked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.packages.releases.fetch.MOST_WHOLE", 2_000_000)
    server.ranges = False
    del server.files[SDIST]
    with pytest.raises(ReleaseError) as caught:
        sources("demo-pkg", "1.1")
    assert f"{WHEEL} has 6 MB" in str(caught.value.cause)
    assert "up to 2 MB" in str(caught.value.cause)
    assert "PIP_FIND_LINKS" in str(caught.value.advice)
    assert server.sent < 1_000_000 + len(server.page()) * 4
    server.ranges = True
    assert kept(sources("demo-pkg", "1.1")) == SOURCES


def test_a_large_wheel_of_untold_length_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.packages.releases.fetch.MOST_WHOLE", 2_000_000)
    server.ranges = server.lengths = False
    del server.files[SDIST]
    with pytest.raises(ReleaseError, match="has > 2 MB"):
        sources("demo-pkg", "1.1")


def test_of_a_large_pure_wheel_the_parts_are_taken(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.packages.releases.fetch.MOST_WHOLE", 2_000_000)
    server.files["demo_pkg-1.1-py3-none-any.whl"] = wheel_of({**SOURCES, "demo_pkg/data.bin": bytes(3_000_000)})
    assert kept(sources("demo-pkg", "1.1")) == SOURCES


def test_a_server_that_refuses_ranges_with_an_error(server: Server) -> None:
    server.ranges, server.range_status = False, 416
    assert kept(sources("demo-pkg", "1.1")) == SOURCES
    assert f"/files/{SDIST}" in server.requests


def test_of_a_pure_wheel_everything_is_kept(server: Server) -> None:
    name = "demo_pkg-1.1-py3-none-any.whl"
    server.files[name] = wheel_of({**SOURCES, "demo_pkg/data.txt": "kept", "demo_pkg-1.1.data/purelib/extra.py": ""})
    assert kept(sources("demo-pkg", "1.1")) == {**SOURCES, "demo_pkg/data.txt": "kept", "extra.py": ""}


def test_a_wheel_whole(server: Server) -> None:
    folder = wheel("demo-pkg", "2.0")
    assert (folder / "demo_pkg" / "_C.so").stat().st_size == 3 << 20
    assert set(SOURCES) < {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_the_second_time_nothing_is_asked_for(server: Server) -> None:
    first = sources("demo-pkg", "1.1")
    server.requests.clear()
    assert sources("demo-pkg", "1.1") == first
    assert sources("demo-pkg", "1.1", offline=True) == first
    assert server.requests == []


def test_progress_is_told(server: Server) -> None:
    told: list[tuple[str, int, int | None]] = []
    server.ranges = False
    sources("demo-pkg", "1.1", progress=lambda what, *bytes_: told.append((str(what), *bytes_)))
    assert told[-1] == (f"fetching {SDIST}", len(server.files[SDIST]), len(server.files[SDIST]))


def test_an_unknown_version_offers_the_nearest(server: Server) -> None:
    with pytest.raises(ReleaseError) as caught:
        sources("demo-pkg", "1.2")
    assert "no demo-pkg 1.2" in str(caught.value)
    assert "1.0, 1.1, 2.0" in str(caught.value)


@pytest.mark.parametrize("version", ["newest", "99", "1.1.dev0"])
def test_other_versions_that_are_not_there(server: Server, version: str) -> None:
    with pytest.raises(ReleaseError, match=r"The nearest releases are .*2\.0"):
        sources("demo-pkg", version)


@pytest.mark.parametrize(("name", "version"), [("demo-pkg", "../x"), ("../x", "1.0"), ("demo-pkg", ""), ("a/b", "1")])
def test_what_cannot_be_a_release(server: Server, name: str, version: str) -> None:
    with pytest.raises(ReleaseError, match="cannot be a release"):
        sources(name, version)
    assert server.requests == []


def test_an_unknown_package(server: Server) -> None:
    with pytest.raises(ReleaseError, match="no release of other-pkg was found"):
        sources("other-pkg", "1.0")


def test_a_local_part_that_the_index_does_not_have(server: Server) -> None:
    assert kept(sources("demo-pkg", "1.1+cu129")) == SOURCES


def test_a_withdrawn_release_is_taken_and_said_to_be_one(server: Server) -> None:
    server.yanked = {WHEEL: "wrong tag", SDIST: "wrong tag"}
    told: list[str] = []
    assert kept(sources("demo-pkg", "1.1", progress=lambda what, *_: told.append(str(what)))) == SOURCES
    assert told[0] == "demo-pkg 1.1 was withdrawn from the index: wrong tag"


def test_an_answer_that_breaks_off_is_asked_for_again(server: Server) -> None:
    server.truncate = 2
    assert kept(sources("demo-pkg", "1.1")) == SOURCES


@pytest.mark.parametrize("ranges", [True, False])
def test_what_breaks_off_every_time_is_an_error_and_leaves_nothing(
    server: Server, tmp_path: Path, ranges: bool
) -> None:
    server.ranges, server.truncate = ranges, 99
    with pytest.raises(ReleaseError, match="tried 4 times"):
        sources("demo-pkg", "1.1")
    assert [path for path in (tmp_path / "cache").rglob("*") if not path.is_dir() and path.suffix != ".lock"] == []
    server.truncate = 0
    assert kept(sources("demo-pkg", "1.1")) == SOURCES


def test_a_wrong_hash_is_an_error(server: Server) -> None:
    server.ranges, server.wrong_hash = False, {SDIST}
    with pytest.raises(ReleaseError, match="sha256"):
        sources("demo-pkg", "1.1")
    with pytest.raises(ReleaseError, match="not in the cache"):
        sources("demo-pkg", "1.1", offline=True)


def test_a_damaged_wheel_is_found_by_its_checksums(server: Server) -> None:
    content = bytearray(server.files[WHEEL])
    content[content.index(b"demo_pkg/deep/a.py") + len("demo_pkg/deep/a.py") + 1] ^= 0xFF
    server.files[WHEEL] = bytes(content)
    with pytest.raises(ReleaseError, match="damaged"):
        sources("demo-pkg", "1.1")


def test_a_file_that_is_listed_but_gone(server: Server) -> None:
    server.gone = {WHEEL}
    with pytest.raises(ReleaseError, match="404"):
        sources("demo-pkg", "1.1")


@pytest.mark.parametrize("status", [403, 500, 503])
def test_an_index_that_does_not_answer_as_it_should(server: Server, status: int) -> None:
    server.status = status
    with pytest.raises(ReleaseError, match=str(status)) as caught:
        sources("demo-pkg", "1.1")
    assert "PIP_FIND_LINKS" in str(caught.value.advice)


def test_no_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(ReleaseError, match="cannot ask for the releases of demo-pkg") as caught:
        sources("demo-pkg", "1.1")
    assert "UKY_PATCH_CACHE" in str(caught.value.advice)


def test_offline_says_from_where_it_can_be_given(server: Server) -> None:
    with pytest.raises(ReleaseError) as caught:
        sources("demo-pkg", "1.1", offline=True)
    assert "not in the cache" in str(caught.value.title)
    assert "PIP_FIND_LINKS" in str(caught.value.advice)
    assert "UKY_PATCH_CACHE" in str(caught.value.advice)
    assert server.requests == []


def test_offline_a_folder_of_wheels_will_do(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / WHEEL).write_bytes(server.files[WHEEL])
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    assert kept(sources("demo-pkg", "1.1", offline=True)) == SOURCES
    assert (folder / WHEEL).is_file()
    assert server.requests == []


@pytest.mark.parametrize("member", ["../escape.py", "/abs.py", "demo_pkg/../../escape.py", "demo_pkg\\..\\x.py"])
def test_members_that_lead_out_are_refused(server: Server, tmp_path: Path, member: str) -> None:
    server.files[WHEEL] = wheel_of({**SOURCES, member: "x = 1\n"})
    with pytest.raises(ReleaseError, match="unsafe path"):
        sources("demo-pkg", "1.1")
    assert not list(tmp_path.rglob("escape.py"))


def test_a_wheel_without_sources(server: Server) -> None:
    server.files[WHEEL] = wheel_of({"readme.txt": "nothing"})
    with pytest.raises(ReleaseError, match="holds no sources"):
        sources("demo-pkg", "1.1")


def test_versions_newest_first_and_kept_for_a_while(server: Server) -> None:
    assert versions("demo-pkg") == ["2.0", "1.1", "1.0"]
    asked = len(server.requests)
    assert versions("demo-pkg") == ["2.0", "1.1", "1.0"]
    assert len(server.requests) == asked


def test_a_version_that_no_index_has_is_asked_for_once(server: Server) -> None:
    assert may_be_had("demo-pkg", "2.0")
    asked = len(server.requests)
    for version, there in (("2.0.0", True), ("2.0+cu129", True), ("2.1.dev7+mine", False), ("?", False)):
        assert may_be_had("demo-pkg", version) is there
    assert len(server.requests) == asked > 0
    assert may_be_had("not-a-package", "1.0") is False


def test_versions_offline_are_those_of_the_cache(server: Server) -> None:
    with pytest.raises(ReleaseError, match="no release of demo-pkg"):
        versions("demo-pkg", offline=True)
    sources("demo-pkg", "1.1")
    assert versions("demo-pkg", offline=True) == ["1.1"]


def test_many_at_once_fetch_once(server: Server) -> None:
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(sources("demo-pkg", "1.1"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 6
    assert kept(found[0]) == SOURCES
    opened = server.requests.count(f"/files/{WHEEL}")
    server.requests.clear()
    sources("demo-pkg", "1.0")
    assert opened == len([path for path in server.requests if path.startswith("/files/")])


FETCH = "from patcher.packages.releases import sources; print(sources('demo-pkg', '1.1'))"


def fetching(before: str = "") -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", f"{before}{FETCH}"]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_several_processes_at_once_fetch_once(server: Server) -> None:
    server.delay = 0.05
    done = [process.communicate() for process in [fetching() for _ in range(3)]]
    assert len({out for out, _ in done}) == 1, done
    assert kept(Path(done[0][0].strip())) == SOURCES
    opened = server.requests.count(f"/files/{WHEEL}")
    server.requests.clear()
    sources("demo-pkg", "1.0")
    assert opened == len([path for path in server.requests if path.startswith("/files/")])


def test_a_process_killed_while_it_fetches_hinders_no_other(server: Server, tmp_path: Path) -> None:
    server.delay = 0.2
    process = fetching()
    building = tmp_path / "cache/releases/demo-pkg/1.1"
    while not list(building.glob(".sources.building-*")):
        assert process.poll() is None, process.communicate()
        threading.Event().wait(0.01)
    process.kill()
    process.communicate()
    assert not (building / "sources").exists()
    server.delay = 0
    assert kept(sources("demo-pkg", "1.1")) == SOURCES
    assert not list(building.glob(".sources.building-*"))


def test_a_full_disk_is_told_and_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    del server.files[SDIST]
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
    error = fetching(full).communicate()[1]
    assert "cannot write to the cache" in error
    assert "File too large" in error
    assert [path for path in (tmp_path / "cache").rglob("*") if not path.is_dir() and path.suffix != ".lock"] == []
    assert kept(sources("demo-pkg", "1.1")) == SOURCES


def test_a_cache_that_cannot_be_written(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(ReleaseError, match="cannot write to the cache"):
        sources("demo-pkg", "1.1")


def test_what_a_killed_process_left_is_removed(server: Server, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "releases" / "demo-pkg" / "1.1" / ".sources.building-x"
    left.mkdir(parents=True)
    (left / "half.py").write_text("")
    assert kept(sources("demo-pkg", "1.1")) == SOURCES
    assert not left.exists()


def test_a_cached_release_costs_no_heavy_import(server: Server) -> None:
    sources("demo-pkg", "1.1")
    script = (
        "import sys; from patcher.packages.releases import sources; sources('demo-pkg', '1.1'); print(*sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert not {"unearth", "packaging", "platformdirs", "ssl"} & set(done.stdout.split())
