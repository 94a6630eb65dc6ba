"""What is shown on a GPU, scene by scene. Each works on a tree of its own, copied from a released one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.gpu.ran import Ran, Tool

VERSIONS = ("0.6.1", "0.7.0", "0.8.0")
STACK = ("vllm==0.20.2", "transformers==4.57.6", "flash-attn==none")
"""What `check` looks against: what the machine has."""
TWO_STEPS = "trainer.total_training_steps=2"
STALLED = {"rollout": "VLLM::EngineCore", "actor": "ray::WorkerDict"}
"""What is stopped, by what it does: a process whose title begins so."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the scenes are: released trees by version, models and data by kind, what is kept."""

    trees: Path
    python: Path
    toys: Path
    work: Path
    out: Path

    def tool(self, version: str, name: str) -> Tool:
        """The tool on a fresh copy of a release."""
        root = self.work / f"{version}-{name}"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.trees / version, root)
        return Tool(root, self.python, self.out, version)

    def env(self, kind: str) -> dict[str, str]:
        file = str(self.toys / kind / "train.parquet")
        return {"MODEL_PATH": str(self.toys / kind / "model"), "TRAIN_FILES": file, "VAL_FILES": file}


def untouched(stage: Stage, version: str) -> Iterator[Ran]:
    """The release as it is fails; its log names what is missing, and the record that repairs it."""
    tool = stage.tool(version, "untouched")
    log = f"verl-{version}-untouched.log"
    yield tool.run("untouched", "run", "debug", env=stage.env("text"), keep=log)
    yield tool.run("untouched", "diagnose", str(stage.out / log))


def check(stage: Stage, version: str) -> Iterator[Ran]:
    """What `check` says of the release on the stack, without a GPU: whatever breaks on one must be among it."""
    against = (word for name in STACK for word in ("--against", name))
    yield stage.tool(version, "check").run("check", "check", *against, "--no-since", "--all")


def trained(stage: Stage, version: str, *kinds: str) -> Iterator[Ran]:
    """After one apply it trains: on text, and on images."""
    tool = stage.tool(version, "trained")
    yield tool.run("trained", "apply")
    for kind in kinds or ("text", "vision"):
        log = f"verl-{version}-{kind}.log"
        yield tool.run(f"trained on {kind}", "run", "debug", env=stage.env(kind), keep=log)
        yield tool.run(f"trained on {kind}", "diagnose", str(stage.out / log))


def without(stage: Stage, version: str, record: str) -> Iterator[Ran]:
    """All records but one: the failure that this one repairs, by itself."""
    tool = stage.tool(version, f"without-{record}")
    (tool.root / "uky-patch.toml").write_text(f'disable = ["{record}"]\n', encoding="utf-8")
    log = f"verl-{version}-without-{record}.log"
    yield tool.run(f"without {record}", "apply")
    yield tool.run(f"without {record}", "run", "debug", env=stage.env("text"), keep=log)
    yield tool.run(f"without {record}", "diagnose", str(stage.out / log))


def verified(stage: Stage, version: str, *levels: str) -> Iterator[Ran]:
    """The ladder up to a running engine, and up to the job, on images."""
    tool = stage.tool(version, "verified")
    yield tool.run("verified", "apply")
    places = ("--data", str(stage.toys / "vision" / "train.parquet"), "--model", str(stage.toys / "vision" / "model"))
    for level in levels or ("engine", "job"):
        yield tool.run("verified", "verify", "--level", level, *places, limit=500)


def stalled(stage: Stage, version: str, what: str) -> Iterator[Ran]:
    """A training whose rollout engine or worker is stopped in the middle: `watch` names the phase and the process."""
    tool = stage.tool(version, f"stalled-{what}")
    yield tool.run(f"stalled {what}", "apply")
    longer = ("trainer.total_epochs=400", "trainer.total_training_steps=400")
    started = tool.run(f"stalled {what}", "run", "debug", "--detach", "--", *longer, env=stage.env("text"))
    yield started
    log, kept = Path(started.told["job"]["log"]), stage.out / f"verl-{version}-stalled-{what}.log"
    pids: list[int] = []
    try:
        _wait(lambda: b"step:3 " in log.read_bytes(), 240)
        pids = _titled(STALLED[what])
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield tool.run(f"stalled {what}", "watch", "here", "--limit", "20", limit=120)
        shutil.copyfile(log, kept)
        yield tool.run(f"stalled {what}", "diagnose", str(kept))
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        yield tool.run(f"stalled {what}", "job", "stop", "here", limit=120)


def timed(stage: Stage, version: str, *profiles: str) -> Iterator[Ran]:
    """Two steps of each profile on one model, of the size of the documents'."""
    tool = stage.tool(version, "timed")
    yield tool.run("timed", "apply")
    for profile in profiles or ("debug", "fast-load", "standard"):
        log = f"verl-{version}-timed-{profile}.log"
        more = () if profile == "debug" else ("--", TWO_STEPS)
        ran = tool.run(f"timed {profile}", "run", profile, *more, env=stage.env("large"), keep=log, limit=560)
        yield replace(ran, told={**ran.told, "timings": spent((stage.out / log).read_text(encoding="utf-8"))})
        shutil.rmtree(tool.root / "outputs", ignore_errors=True)


def spent(log: str) -> list[dict[str, float]]:
    """Seconds of each step of a training by what they went to, as verl's console logger tells them."""
    lines = (line for line in log.splitlines() if re.search(r"\bstep:\d+ - ", line))
    return [{name: float(value) for name, value in re.findall(r"timing_s/(\w+):([\d.e+-]+)", line)} for line in lines]


def made(stage: Stage, *, large: bool) -> None:
    """The models and the data, by the interpreter that trains."""
    program = Path(__file__).with_name("tiny.py")
    option = ["--large"] if large else []
    subprocess.run([stage.python, "-W", "ignore", program, stage.toys, *option], check=True, stdout=sys.stderr)


def _titled(title: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes().decode("utf-8", "replace").startswith(title):
                    found.append(int(folder.name))
    if not found:
        raise SystemExit(f"no process is called {title}")
    return found


def _wait(ready: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise SystemExit("the training came to no third step")
        time.sleep(0.5)


def versions(python: Path) -> dict[str, str]:
    """What is installed there, and on what machine."""
    asked = (
        "import json, platform, torch, importlib.metadata as m\n"
        "names = ('vllm', 'torch', 'triton', 'transformers', 'ray', 'tensordict', 'flash-attn')\n"
        "gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None\n"
        "found = {'python': platform.python_version(), 'gpu': gpu}\n"
        "for name in names:\n"
        "    try: found[name] = m.version(name)\n"
        "    except m.PackageNotFoundError: found[name] = None\n"
        "print(json.dumps(found))"
    )
    told = subprocess.run([python, "-W", "ignore", "-c", asked], check=True, capture_output=True, text=True).stdout
    found: dict[str, str] = json.loads(told.splitlines()[-1])
    return found
