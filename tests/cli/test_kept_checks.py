"""A check of what has not changed is answered from what the last one found."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patcher.check import computing
from patcher.cli.app import run
from patcher.errors import ReleaseError
from tests.cli.conftest import Uky
from tests.packages.venvs import Venv

NOW = 1_700_000_000_000_000_000


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/checks"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each check that is computed."""
    found: list[int] = []
    real = computing.compute

    def compute(*given: Any) -> Any:
        found.append(1)
        return real(*given)

    monkeypatch.setattr(computing, "compute", compute)
    return found


Check = Callable[..., Any]


@pytest.fixture
def check(uky: Uky, sources: Path, cache: Path) -> Check:
    def call(*more: str, json: bool = True, since: bool = False) -> Any:
        # Earlier releases are fetched to find out since when.
        asked = () if since else ("--no-since",)
        return uky("check", "--against", f"vllm={sources}", *asked, *more, json=json)

    return call


def test_the_second_check_says_the_same_in_every_form(
    check: Check, computed: list[int], tmp_path: Path, trainer: None
) -> None:
    first, page, sarif = check(), tmp_path / "check.html", tmp_path / "check.sarif"
    assert first.json["findings"]
    assert [one["repaired_by"] for one in first.json["findings"]] == ["utils-moved"]
    second = check()
    assert (second.out, second.code) == (first.out, first.code)
    text = check(json=False).out
    check("--html", str(page), "--sarif", str(sarif), "--by", "cause", "--all")
    assert "vllm.utils.Parser" in text
    assert "utils-moved" in page.read_text()
    assert "vllm.utils.Parser" in sarif.read_text()
    assert computed == [1]


def _edit(path: str, text: str) -> Callable[[Path, Path, Path], object]:
    def edit(tree: Path, sources: Path, records: Path) -> None:
        folder = {"tree": tree, "vllm": sources, "records": records}[path.partition("/")[0]]
        place = folder / path.partition("/")[2]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    return edit


def _keeping_size_and_time(tree: Path, _vllm: Path, _records: Path) -> None:
    place = tree / "verl/server.py"
    text, found = place.read_text(), place.stat()
    place.write_text(text.replace("Parser", "Passer"))
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        _keeping_size_and_time,
        _edit("tree/verl/other.py", "from vllm.utils import Gone\n"),
        _edit("tree/recipe/x/run.sh", "python3 -m recipe.x.main\n"),
        _edit("tree/verl/trainer/config/ppo.yaml", "actor: {}\n"),
        _edit("tree/verl/version/version", "99.2\n"),
        _edit("tree/.hidden/own.py", "import vllm\n"),
        _edit("tree/uky-patch.toml", '[[accept]]\nsymbol = "vllm.utils.Parser"\nreason = "ours"\n'),
        _edit("vllm/vllm/utils/more.py", "class Parser: ...\n"),
        _edit("records/README.toml", ""),
        lambda tree, _vllm, _records: (tree / "verl/server.py").rename(tree / "verl/servers.py"),
        lambda tree, _vllm, _records: (tree / "verl/linked.py").symlink_to("server.py"),
        lambda _tree, _vllm, records: (records / "log-flag.toml").unlink(),
    ],
)
def test_what_a_result_depends_on_makes_it_anew(
    check: Check,
    computed: list[int],
    tree: Path,
    sources: Path,
    records: Path,
    change: Callable[[Path, Path, Path], object],
) -> None:
    check()
    change(tree, sources, records)
    check()
    assert len(computed) == 2


def test_what_is_asked_makes_it_anew(
    check: Check, computed: list[int], uky: Uky, sources: Path, tmp_path: Path
) -> None:
    check()
    check("--scripts", "*.sh")
    uky("check", "--against", f"vllm={sources}", "--no-since", vllm="2.2")
    assert len(computed) == 3
    check("--draft", str(tmp_path / "one"))
    check("--draft", str(tmp_path / "two"))
    assert len(computed) == 5


def test_a_tree_that_changes_meanwhile(check: Check, cache: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = computing.compute

    def compute(*given: Any) -> Any:
        (tree / "verl/late.py").write_text("from vllm.utils import Gone\n")
        return real(*given)

    monkeypatch.setattr(computing, "compute", compute)
    check()
    assert not list(cache.glob("*"))


def test_without_an_index_nothing_is_kept(check: Check, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def versions(*_: object, offline: bool = False) -> list[str]:
        if not offline:
            raise ReleaseError("the index does not answer")
        return []

    monkeypatch.setattr("patcher.packages.releases.versions", versions)
    assert check(since=True).json["findings"]
    assert not list(cache.glob("*"))


class _Evil:
    def __reduce__(self) -> Any:
        return os.system, ("exit 7",)


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps([1]), pickle.dumps({"report": _Evil()})])
def test_a_file_that_is_no_result(check: Check, computed: list[int], cache: Path, content: bytes) -> None:
    first = check()
    (kept,) = cache.glob("*")
    kept.write_bytes(content)
    assert check().out == first.out
    assert len(computed) == 2


def test_a_file_that_others_may_write(check: Check, computed: list[int], cache: Path) -> None:
    check()
    (kept,) = cache.glob("*")
    kept.chmod(0o666)
    check()
    assert len(computed) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else(check: Check, computed: list[int], cache: Path) -> None:
    check()
    (kept,) = cache.glob("*")
    os.chown(kept, 65534, 65534)
    check()
    assert len(computed) == 2


def test_a_cache_that_cannot_be_written_to_is_no_error(check: Check, cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("no folder")
    assert check().code == check().code == 1


def test_old_results_go(check: Check, cache: Path, tree: Path) -> None:
    cache.mkdir(parents=True)
    for number in range(40):
        (cache / f"{number:02}.pickle").touch()
        os.utime(cache / f"{number:02}.pickle", ns=(NOW, NOW + number))
    check()
    left = {path.stem for path in cache.glob("*")}
    assert len(left) == 32
    assert "39" in left
    assert "00" not in left


def test_an_edit_by_hand_of_what_is_installed_makes_it_anew(
    tree: Path, sources: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is installed is the baseline: it tells which parameter each position was meant for."""
    venv = Venv(tmp_path / "env")
    utils = venv.install("vllm", "1.0") / "utils.py"
    (venv.site / "vllm/__init__.py").touch()
    utils.write_text("class Parser: ...\ndef get_uri(host, port): ...\n")
    (sources / "vllm/utils/__init__.py").write_text("class Parser: ...\ndef get_uri(port, host): ...\n")

    def found() -> list[str]:
        against = ("--root", str(tree), "--python", str(venv.python), "--against", f"vllm={sources}")
        run(["check", *against, "--no-since", "--format", "json"])
        return [one["kind"] for one in json.loads(capsys.readouterr().out)["findings"]]

    assert found() == found() == ["argument-shifted"]
    utils.write_text("class Parser: ...\ndef get_uri(port, host): ...\n")
    assert found() == []
