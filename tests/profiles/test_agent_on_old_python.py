"""The verbs of this room under the oldest Python that is to be had."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from patcher.errors import HostError
from patcher.hosts import payload
from patcher.hosts.channel import Channel, RefusedError
from patcher.migration.model import Rendered
from patcher.profiles.marked import marked


def ended(code: int | None, said: str, greeted: bool) -> HostError:
    return HostError(f"{code}: {said}")


@pytest.fixture
def channel(old_python: str) -> Iterator[Channel]:
    with closing(Channel([old_python, "-I", "-u", "-c", payload.BOOTSTRAP], b"", ended)) as found:
        yield found


def test_put(channel: Channel, tmp_path: Path) -> None:
    channel.ask(
        "begin", path=str(tmp_path / "fork"), purpose="a test", run="r", who="w", machine="m", client={}, over=[]
    )
    content = Rendered("run.sh", marked("# rendered by uky-patch @\nx\n")).text.encode()
    told = [{"path": "run.sh", "size": len(content), "mode": 0o755}]
    assert channel.ask("put", body=content, files=told)["files"][0]["how"] == "written"
    assert channel.ask("put", body=content, files=told)["files"][0]["how"] == "unchanged"


def test_models(channel: Channel, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "a.safetensors").write_bytes(os.urandom(100_000))
    assert channel.ask("model-newest", bases=[str(tmp_path)])["model"] == str(tmp_path)
    found = channel.ask("model-warm", bases=[str(tmp_path)])
    assert (found["size"], found["failed"], found["skipped"]) == (100_000, [], [])


def test_data(channel: Channel, tmp_path: Path, old_python: str) -> None:
    (tmp_path / "x.parquet").write_bytes(b"")
    with pytest.raises(RefusedError) as caught:
        channel.ask("data-report", file="x.parquet", folder=str(tmp_path), python=old_python)
    assert caught.value.kind in ("reader", "unreadable")


def test_what_is_sent_parses_as_json(channel: Channel, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no such folder"):
        channel.ask("model-newest", bases=[str(tmp_path / json.dumps("x\n"))])


def test_stacks(channel: Channel, tmp_path: Path, old_python: str) -> None:
    from importlib import import_module

    (tmp_path / "hook").mkdir()
    (tmp_path / "stacks").mkdir()
    source = import_module("patcher.agent.stacks.hooked").__file__
    (tmp_path / "hook" / "sitecustomize.py").write_text(Path(str(source)).read_text())
    given = {"PYTHONPATH": str(tmp_path / "hook"), "UKY_PATCH_STACKS": str(tmp_path / "stacks"), "RANK": "3"}
    code = "print('up', flush=True); import time; time.sleep(60)"
    with subprocess.Popen([old_python, "-c", code], env={**os.environ, **given}, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        job.stdout.readline()
        start = int(Path(f"/proc/{job.pid}/stat").read_text().rpartition(")")[2].split()[19])
        order = {"pids": [[job.pid, start]]}
        pulse = channel.ask("pulse", order=order)
        assert [one["pid"] for one in pulse["processes"]] == [job.pid]
        found = channel.ask("stacks", order=order, bare=["py-spy"])
        (process,) = found["processes"]
        assert (process["how"], process["env"]["RANK"]) == ("faulthandler", "3")
        assert "in <module>" in process["stack"]
        job.kill()
