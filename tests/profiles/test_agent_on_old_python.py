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
from patcher.profiles.rendered_file import Rendered, with_hash_line
from patcher.remote import agent_program
from patcher.remote.channel import Channel, RefusedError


def ended(code: int | None, said: str, greeted: bool) -> HostError:
    return HostError(f"{code}: {said}")


@pytest.fixture
def channel(old_python: str) -> Iterator[Channel]:
    with closing(Channel([old_python, "-I", "-u", "-c", agent_program.BOOTSTRAP], b"", ended)) as found:
        yield found


def test_put(channel: Channel, tmp_path: Path) -> None:
    channel.ask(
        "begin", path=str(tmp_path / "fork"), purpose="a test", run="r", who="w", machine="m", client={}, over=[]
    )
    content = Rendered("run.sh", with_hash_line("# rendered by uky-patch @\nx\n")).text.encode()
    told = [{"path": "run.sh", "size": len(content), "mode": 0o755}]
    assert channel.ask("write_files", body=content, files=told)["files"][0]["outcome"] == "written"
    assert channel.ask("write_files", body=content, files=told)["files"][0]["outcome"] == "unchanged"


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


def test_bundling_and_cleaning(channel: Channel, tmp_path: Path) -> None:
    root = tmp_path / "fork"
    (root / "verl").mkdir(parents=True)
    (root / "verl/__init__.py").touch()
    (root / "mine.sh").write_text("echo begun; (setsid sleep 61 &); exit 1\n")
    lock = {"run": "r", "who": "w", "machine": "m", "client": {}, "over": []}
    channel.ask("begin", path=str(root), purpose="a test", **lock)
    job = channel.ask("job_start", script="mine.sh", here=True, share=True)["id"]
    channel.ask("begin", path=str(root), purpose=None)
    channel.ask("job_follow", id=job, wait=True)
    assert (Path(channel.ask("job_look", id=job)["folder"]) / "traces.py").exists()
    state = channel.ask("bundle_state", job=job, python=None)
    assert (state["job"]["id"], state["script"]["name"]) == (job, "mine.sh")
    assert state["environments"][0]["variables"]["PATH"]
    pieces: list[bytes] = []
    channel.ask("job_log", on_event=lambda _, body: pieces.append(body), job=job, first=None, last=None)
    assert b"".join(pieces) == b"begun\n"
    left = channel.ask("clean_look", id=job, caches=True)
    keys = [item["key"] for item in left["items"]]
    done = channel.ask("clean_do", id=job, caches=True, keys=keys, grace=1.0)
    assert [item["kind"] for item in left["items"]] == ["process"]
    assert ([one["key"] for one in done["done"]], done["left"]) == (keys, [])


def test_stacks(channel: Channel, tmp_path: Path, old_python: str) -> None:
    from importlib import import_module

    (tmp_path / "hook").mkdir()
    (tmp_path / "stacks").mkdir()
    source = import_module("patcher.jobs.agent.sitecustomize_hook").__file__
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
