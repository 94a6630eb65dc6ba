"""Clusters that cannot be joined, and ones that are lost: what is said, at once, and with which exit code."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.errors import ExitCode
from tests.cluster.conftest import Answer

MISMATCH = """
class RuntimeEnvSetupError(Exception): ...
def init(**_):
    raise RuntimeError("Version mismatch: The cluster was started with:\\n    Ray: 2.60.0\\n    Python: 3.11.7\\n"
        "This process was started with:\\n    Ray: 2.60.0\\n    Python: 3.12.4\\n")
"""
CONTEXT = """
from types import SimpleNamespace
cloudpickle = SimpleNamespace(register_pickle_by_value=lambda _: None)
def get_runtime_context(): return SimpleNamespace(gcs_address="10.0.0.1:6379")
"""
DYING = f"""{CONTEXT}
import sys
__version__ = "2.60.0"
def init(**_): print("noise of Ray", file=sys.stderr)
def nodes(): raise RuntimeError("the GCS is gone")
"""
EMPTY = f"""{CONTEXT}
__version__ = "2.60.0"
def init(**_): print("noise of Ray")
def nodes(): return [{{"NodeID": "ab", "Alive": False, "NodeName": "scaled-down"}}]
def shutdown(): ...
"""
FAILING = f"""{EMPTY}
left = {{failures}}
def init(**_):
    global left
    left -= 1
    if left >= 0:
        raise ConnectionAbortedError("Initialization failure from server: Starting Ray client server failed. See x.err")
"""


SILENT = """
import time
__version__ = "2.60.0"
def init(**_): time.sleep(600)
"""


@pytest.fixture
def listening() -> Iterator[str]:
    """An address at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Call the command line, with `ray` standing for the package in the interpreter; none where it is empty."""
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl/__init__.py").touch()

    def call(*arguments: str, ray: str = "") -> Answer:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray/__init__.py").write_text(ray or "raise ImportError(\"No module named 'ray'\")")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        code = run(["--root", str(tmp_path), "--python", sys.executable, *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def test_a_ray_that_neither_answers_nor_says_anything(
    ask: Ask, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patcher.cluster.joining.JOINING", 3.0)
    done = ask("verify", "--ray", listening, ray=SILENT)
    assert done.code == 5
    assert "Ray gives no answer any more" in done.err


def test_an_interpreter_without_ray(ask: Ask, listening: str) -> None:
    done = ask("verify", "--ray", listening)
    assert done.code == 2
    assert done.err.startswith(f"error: there is no Ray under {sys.executable}\n  No module named 'ray'\n")
    assert "--python" in done.err


def test_another_python_than_the_clusters(ask: Ask, listening: str) -> None:
    done = ask("apply", "--ray", listening, ray=MISMATCH)
    assert done.code == 5
    assert done.err.startswith(f"error: the cluster at {listening} cannot be joined\n")
    _, cause, advice = done.err.splitlines()
    assert "3.11.7" in cause
    assert "3.12.4" in cause
    assert "with its Ray and Python" in advice


def test_nobody_at_the_address(ask: Ask, listening: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        dead = f"127.0.0.1:{server.getsockname()[1]}"
    done = ask("verify", "--ray", dead)
    assert done.code == 5
    assert done.err.startswith(f"error: nobody answers at {dead}\n")


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:port", "head:99999", "ray://head", "http://head"])
def test_what_is_no_address(ask: Ask, address: str) -> None:
    done = ask("verify", "--ray", address)
    assert done.code == 2
    assert "is no address of a cluster" in done.err


def test_a_cluster_that_is_lost_meanwhile(ask: Ask, listening: str) -> None:
    done = ask("verify", "--ray", listening, ray=DYING)
    assert done.code == 5
    assert done.err.startswith("error: the cluster was lost\n")
    assert "the GCS is gone" in done.err
    assert "noise" not in done.err + done.out


def test_a_client_server_that_dies_before_it_has_begun_is_asked_for_again(ask: Ask, listening: str) -> None:
    done = ask("--format", "json", "verify", "--ray", f"ray://{listening}", ray=FAILING.replace("{failures}", "2"))
    assert done.json == {"checks": [], "nodes": []}


def test_a_client_server_that_never_begins_is_an_error_with_rays_words(ask: Ask, listening: str) -> None:
    done = ask("verify", "--ray", f"ray://{listening}", ray=FAILING.replace("{failures}", "9"))
    assert done.code == ExitCode.WORLD
    assert f"the cluster at ray://{listening} cannot be joined" in done.err
    assert "Starting Ray client server failed" in done.err


def test_nodes_that_are_dead_already_are_old_news(ask: Ask, listening: str) -> None:
    done = ask("--format", "json", "verify", "--ray", listening, ray=EMPTY)
    assert done.json == {"checks": [], "nodes": []}
    assert done.err == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("verify", "--ray", "h:1", "--host", "loop"), "--host and --ray do not go together"),
        (("verify", "--ray", "h:1", "--level", "job"), "a job is not started on every node"),
        (("verify", "--wait", "5"), "--wait goes with --ray"),
        (("apply", "--wait", "5"), "--wait goes with --ray"),
        (("apply", "--ray", "h:1", "--diff"), "--diff and --commit are for one tree"),
        (("apply", "--ray", "h:1", "--commit"), "--diff and --commit are for one tree"),
    ],
)
def test_what_does_not_go_together(ask: Ask, arguments: tuple[str, ...], told: str) -> None:
    done = ask(*arguments)
    assert done.code == 2
    assert told in done.err
