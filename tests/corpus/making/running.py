"""Runs a scene by itself: a folder, a process group, a control group, a network namespace; and keeps what it printed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.corpus.making.scenes import Scene
from tests.runtime.environment import interpreter

GROUPS = Path("/sys/fs/cgroup/memory")
ALONE = "; ".join(
    [
        "hostname node-1",
        "ip link set lo up",
        "ip addr add 10.0.0.5/32 dev lo",
        "ip route add 8.8.8.8/32 dev lo src 10.0.0.5",
        "mkdir -p /tmp/ray",
        "mount -t tmpfs none /tmp/ray",
        "(cat /etc/hosts; echo 10.0.0.5 node-1) > .hosts",
        "mount --bind .hosts /etc/hosts",
    ]
)
"""A machine of its own, as far as names, addresses and Ray's folder go. Ray asks for the way to 8.8.8.8 to find its own
address; nothing is sent there."""


def run(scene: Scene, scratch: Path) -> str:
    """What it printed. Ends all of its processes."""
    folder = scratch / "runs" / scene.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in scene.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if scene.prepare is not None:
        scene.prepare(folder)
    group = GROUPS / f"corpus-{os.getpid()}"
    group.mkdir(exist_ok=True)
    (group / "memory.limit_in_bytes").write_text(str(scene.memory << 20) if scene.memory else "-1")
    begin = f"echo $$ > {group}/cgroup.procs"
    command = ["unshare", "--mount", "--net", "--uts", "bash", "-c", f"{begin}; {ALONE}; {scene.command}"]
    if scene.network:
        command = ["bash", "-c", f"{begin}; {scene.command}"]
    raw = scratch / "raw" / f"{scene.name}.log"
    raw.parent.mkdir(exist_ok=True)
    with raw.open("wb") as log:
        child = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**_environment(scene, scratch), "LOG": str(raw), "GROUP": str(group)}, start_new_session=True,
        )  # fmt: skip
        _wait(child, scene, raw)
        kept = raw.read_bytes()
        _end(group)
        child.wait()
    group.rmdir()
    if scene.verdict in ("stalled", "running"):
        raw.write_bytes(kept)
    return raw.read_bytes().decode("utf-8", "replace")


def _wait(child: subprocess.Popen[bytes], scene: Scene, raw: Path) -> None:
    """Until it has ended by itself, has said what it is to be cut at, or has had its time."""
    deadline = time.monotonic() + scene.seconds
    while child.poll() is None and time.monotonic() < deadline:
        if scene.until and raw.read_text("utf-8", "replace").count(scene.until) >= scene.times:
            time.sleep(scene.linger)
            return
        time.sleep(0.5)


def _environment(scene: Scene, scratch: Path) -> dict[str, str]:
    python = interpreter()
    assert python is not None
    plain = {name: os.environ[name] for name in ("LANG", "UKY_PATCH_CACHE") if name in os.environ}
    return {
        **plain,
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(scratch / "home"),
        "USER": "user",
        "PYTHON": str(python),
        "TINY": str(scratch / "tiny"),
        "MODEL": str(scratch / "tiny" / "model"),
        "DATA": str(scratch / "tiny" / "train.parquet"),
        "END": f"{python} {Path(__file__).with_name('ending.py')}",
        "TREES": str(scratch / "trees"),
        "OVERLAYS": str(scratch / "overlays"),
        "PYTHONUNBUFFERED": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "2",
        **scene.environment,
    }


def _end(group: Path) -> None:
    """Kill what is in the control group, until nothing is."""
    deadline = time.monotonic() + 20
    while (pids := (group / "cgroup.procs").read_text().split()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGCONT)
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.2)
