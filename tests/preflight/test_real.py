"""The ladder on real torch, vLLM, Ray and verl, on a CPU; here, and on a host as another user."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run
from tests.cluster.processes import marked, wait_for
from tests.machines import Machine

pytestmark = [pytest.mark.hosts, pytest.mark.network]
Release = Callable[..., Path]
Checks = dict[str, dict[str, Any]]


@pytest.fixture
def verify(runtime: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Checks]:
    """Run `verify` on a tree with the runtime environment; the checks by name."""

    def call(root: Path, level: str, *options: str, budget: int | None = 120) -> Checks:
        more = [] if budget is None else ["--budget", str(budget)]
        run(
            [
                "--root",
                str(root),
                "--python",
                str(runtime),
                "--format",
                "json",
                "verify",
                "--level",
                level,
                *more,
                *options,
            ]
        )
        return {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}

    return call


def pids() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def command_of(pid: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return [""]


def raylets(folder: Path) -> set[str]:
    """The raylets whose sockets lie in that folder."""
    commands = {pid: command_of(pid) for pid in pids()}
    return {pid for pid, words in commands.items() if words[0].endswith("raylet") and str(folder) in " ".join(words)}


def scratches() -> set[Path]:
    """The folders of all checks that run on this machine."""
    return set(Path("/tmp").glob("uky-check-*"))


def test_env_within_its_budget_and_nothing_left_behind(
    release: Release, toy: Path, verify: Callable[..., Checks], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = release("0.9.1")
    token = secrets.token_hex(8)
    monkeypatch.setenv("UKY_LADDER", token)
    verify(root, "env", "--data", str(toy))
    folders, home = scratches(), Path.home() / ".ray"
    there = home.exists()
    started = time.monotonic()
    checks = verify(root, "env", "--data", str(toy), budget=None)
    assert time.monotonic() - started < 20  # the levels above take 10; the rest is start-up, on a machine in use
    wanted = ("python", "data", "torch", "vllm", "verl", "ray", "ray workers")
    assert {checks[name]["status"] for name in wanted} <= {"ok", "warn", "skip"}
    assert not {name for name in wanted if checks[name]["detail"].startswith("hangs")}
    wait_for(lambda: not marked(UKY_LADDER=token), "the end of what it has begun", seconds=5.0)
    left = scratches() - folders
    wait_for(lambda: not left & scratches(), "the end of what another test has begun meanwhile")
    assert home.exists() == there


def test_a_release_fails_at_what_its_records_repair(
    release: Release, toy: Path, verify: Callable[..., Checks], runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = release("0.6.1")
    before = verify(root, "model", "--data", str(toy))
    for name in ("verl trainer", "verl rollout"):
        assert before[name]["status"] == "fail"
        assert "AutoModelForVision2Seq" in before[name]["detail"]
    assert run(["--root", str(root), "--python", str(runtime), "apply"]) == 0
    capsys.readouterr()
    after = verify(root, "model", "--data", str(toy))
    assert [after[name]["status"] for name in ("verl trainer", "verl rollout")] == ["ok", "ok"]


def test_a_running_cluster_is_joined_and_left_alone(
    release: Release,
    toy: Path,
    verify: Callable[..., Checks],
    runtime: Path,
    open_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = "26379"
    quiet = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    command = [runtime.parent / "ray", "start", "--head", f"--port={port}", "--num-cpus=1", "--include-dashboard=false"]
    command.append("--node-ip-address=127.0.0.1")
    folder = open_folder / "r"
    subprocess.run(
        [*command, f"--temp-dir={folder}", "--disable-usage-stats"], check=True, env=quiet, capture_output=True
    )
    try:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
        before = raylets(folder)
        checks = verify(release("0.9.1"), "env", "--data", str(toy))
        assert f"a task ran in the cluster at 127.0.0.1:{port}" in checks["ray"]["detail"]
        assert checks["ray workers"]["status"] == "fail"
        assert "TRITON_CACHE_DIR" in checks["ray workers"]["detail"]
        assert before == raylets(folder) != set()
    finally:
        for pid in pids():
            if str(folder) in " ".join(command_of(pid)):
                os.kill(int(pid), 9)


def test_the_engine_generates(
    release: Release, toy: Path, verify: Callable[..., Checks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    checks = verify(release("0.9.1"), "engine", "--data", str(toy), "--model", str(toy / "model"), budget=240)
    assert [checks[name]["status"] for name in ("rows", "columns", "config", "weights", "tokenizer")] == ["ok"] * 5
    assert checks["engine"]["detail"].endswith("8 tokens generated")


def test_an_engine_that_cannot_start_is_told_in_its_own_words(
    release: Release, toy: Path, verify: Callable[..., Checks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "5000")
    checks = verify(release("0.9.1"), "engine", "--data", str(toy), "--model", str(toy / "model"), budget=240)
    assert checks["engine"]["status"] == "fail"
    assert "less than requested memory" in checks["engine"]["detail"]


def test_weights_that_are_cut_off_keep_the_engine_from_starting(
    release: Release, toy: Path, verify: Callable[..., Checks], tmp_path: Path
) -> None:
    model = shutil.copytree(toy / "model", tmp_path / "model")
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    checks = verify(release("0.9.1"), "engine", "--data", str(toy), "--model", str(model))
    assert "not whole: model.safetensors" in checks["weights"]["detail"]
    assert (checks["engine"]["status"], checks["engine"]["detail"]) == ("skip", "not started: weights failed")


def test_on_a_host_as_another_user(
    reachable: Machine, release: Release, toy: Path, runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if reachable.do(str(runtime), "-c", "import torch; print('ok')", check=False).strip() != "ok":
        pytest.skip("another user cannot run the runtime environment's Python")
    root = release("0.9.1")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    shutil.copytree(root, reachable.home / "fork")
    subprocess.run(["chown", "-R", reachable.user, reachable.home / "fork"], check=True)
    config = f'[hosts.loop]\npath = "fork"\npython = "{runtime}"\n'
    (root / "uky-patch.toml").write_text(config)
    options = ["--root", str(root), "--format", "json", "verify", "--level", "data", "--host", "loop"]
    before = len(reachable.calls)
    run([*options, "--data", str(toy), "--budget", "120"])
    answer = capsys.readouterr()
    assert not answer.err
    checks = {check["name"]: check for check in json.loads(answer.out)["checks"]}
    assert checks["verl"]["detail"] == "0.9.1, from this tree"
    assert [checks[name]["status"] for name in ("torch", "vllm", "verl", "ray", "rows")] == ["ok"] * 5
    assert len(reachable.calls) == before + 1
