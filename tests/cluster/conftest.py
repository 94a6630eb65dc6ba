"""One real cluster for the session, and the command line as it is called on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run
from tests.cli.conftest import RECORD, write_records, write_tree
from tests.cluster import raylets
from tests.cluster.processes import wait_for
from tests.cluster.raylets import RealCluster
from tests.conftest import require
from tests.remote import namespaces
from tests.runtime.environment import interpreter


def plain_tree(root: Path) -> Path:
    """A small verl 99.1 for which three records are needed, in two files."""
    write_tree(root, "server", "worker")
    (root / "verl/protocol.py").write_text("PROTOCOL = 1\n")
    return root


def records_for_it(folder: Path) -> Path:
    write_records(folder)
    text = RECORD.replace('"log-flag"', '"log-flag-worker"').replace("verl/server.py", "verl/worker.py")
    (folder / "log-flag-worker.toml").write_text(text)
    return folder


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def nodes(self) -> dict[str, Any]:
        return {node["name"]: node for node in self.json["nodes"]}

    def check(self, name: str) -> Any:
        (found,) = [check for check in self.json["checks"] if check["name"] == name]
        return found

    def bad(self) -> dict[str, list[str]]:
        """The names of the checks that do not hold, with the nodes that they name."""
        return {check["name"]: check["nodes"] for check in self.json["checks"] if check["status"] in ("warn", "fail")}


Uky = Callable[..., Answer]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the real cluster runs in one process: each process would make a cluster of its own."""
    for item in items:
        if "real" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    require(namespaces.why_not())
    python = interpreter()
    require("" if python else "the runtime environment is missing: make runtime")
    assert python is not None
    with raylets.cluster(python) as found:
        records_for_it(found.folder / "records")
        yield found


@pytest.fixture
def cluster(real: RealCluster) -> RealCluster:
    """The cluster with a head alone, its tree and the one that nodes get as they were at first."""
    for name in ("fork", "source", "fresh", "signs"):
        for path in (real.folder / name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    plain_tree(real.tree)
    plain_tree(real.folder / "source")
    plain_tree(real.folder / "fresh")
    wait_for(lambda: real.alive() == ["head"], "the end of what a test has left")
    return real


@pytest.fixture
def uky(cluster: RealCluster, capsys: pytest.CaptureFixture[str]) -> Uky:
    """Call the command line on the cluster's tree, with vLLM 2.1 assumed."""

    def call(command: str, *more: str, json: bool = True, address: str = "", root: Path | None = None) -> Answer:
        code = run([*words(cluster, json=json, root=root), command, "--ray", address or cluster.address, *more])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def words(cluster: RealCluster, *, json: bool = True, root: Path | None = None) -> list[str]:
    shared = ["--root", str(root or cluster.tree), "--python", str(cluster.python), "--assume", "vllm==2.1"]
    return [*shared, "--patches", str(cluster.folder / "records"), *(["--format", "json"] if json else [])]


def bytes_of(root: Path) -> dict[str, bytes]:
    """The tree's own files, without what the tool keeps there."""
    own = [path for path in root.rglob("*") if path.is_file() and ".uky-patch" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in own if "__pycache__" not in path.parts}
