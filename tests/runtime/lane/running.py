"""Runs the part that lives in the interpreter that trains, on trees of verl untouched and patched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from patcher.packages.releases import wheel
from tests.runtime import environment
from tests.runtime.lane.asking import Said, ask, claim_of
from tests.runtime.lane.model import ENTRIES, STATES, Claim, Failure, Pair, Result, State

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FIRST = (
    "torch", "numpy", "pandas", "transformers", "tensordict", "torchdata.stateful_dataloader", "datasets", "peft",
    "accelerate", "hydra", "ray", "ray.util.scheduling_strategies", "aiohttp", "fastapi", "uvicorn", "vllm",
    "vllm.v1.engine.async_llm", "vllm.v1.engine.utils", "vllm.entrypoints.openai.api_server",
    "vllm.v1.worker.gpu_worker", "vllm.v1.executor.multiproc_executor", "vllm.lora.worker_manager",
    "torch.distributed.fsdp", "torch.distributed.checkpoint",
)  # fmt: skip
"""What takes long and is the same for every tree: imported once, before anything is asked."""
QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOKENIZERS_PARALLELISM": "false",
}


def results(build: str, releases: Iterable[str], scratch: Path) -> list[Result]:
    """All pairs of one build. `scratch` takes the trees and the log."""
    python = environment.interpreter(build)
    assert python is not None, "make runtime"
    name = named(build, scratch)
    tasks: list[dict[str, Any]] = []
    said: dict[str, Said] = {}
    records: dict[str, tuple[str, ...]] = {}
    for verl in releases:
        untouched = copied(verl, scratch / f"verl-{verl}")
        patched, records[verl] = apply(verl, build, python, scratch)
        said[verl] = ask(untouched, python)
        there = [module for module in ENTRIES if _is_there(untouched, module)]
        for state in STATES:
            paths = [str(patched if state == "applied" else untouched), *([str(name)] if state == "named" else [])]
            tasks += [{"key": [verl, state, entry], "paths": paths, "import": [entry]} for entry in there]
            if state != "as it comes":
                modules = [module for module in said[verl].modules if _is_there(Path(paths[0]), module)]
                tasks.append({"key": [verl, state, ""], "paths": paths, "import": modules})
        claims = {json.dumps(claim_of(one, untouched)): one for one in said[verl].findings}
        tasks.append({"key": [verl, "witness", ""], "witness": [[key, json.loads(key)] for key in claims]})
    answers = run(python, tasks, scratch)
    return [_result(Pair(verl, build), said[verl], records[verl], answers) for verl in said]


def named(build: str, scratch: Path) -> Path:
    """A folder with metadata that answers to `vllm`, as that of a CPU wheel of vLLM's own would."""
    folder = scratch / f"named-{build}"
    info = folder / f"vllm-{build}+cpu.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {build}+cpu\n")
    return folder


def copied(verl: str, place: Path) -> Path:
    """The release in a folder of its own, where Python may leave its bytecode."""
    if not place.exists():
        shutil.copytree(wheel("verl", verl), place)
    return place


def apply(verl: str, build: str, python: Path, scratch: Path) -> tuple[Path, tuple[str, ...]]:
    """A copy of the release with the records that count there, and which these are."""
    tree = copied(verl, scratch / f"verl-{verl}-{build}")
    command = [sys.executable, "-m", "patcher", "--root", tree, "--python", python, "--format", "json"]
    done = subprocess.run([*command, "apply", "--allow-dirty"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)["records"]
    return tree, tuple(sorted(one["id"] for one in told if one["outcome"] == "applied"))


def run(
    python: Path, tasks: Sequence[Mapping[str, Any]], scratch: Path
) -> dict[tuple[str, ...], tuple[dict[str, Any], float]]:
    """The answers by task, and the seconds that each took."""
    file, log = scratch / f"job-{os.getpid()}.json", scratch / f"job-{os.getpid()}.log"
    file.write_text(json.dumps({"first": FIRST, "log": str(log), "tasks": tasks}))
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    paths = {"PYTHONPATH": f"{HERE}:{ROOT / 'bench' / 'accuracy'}"}
    done = subprocess.run(
        [python, "-m", "inside", file],
        env={**kept, **QUIET, **paths},
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stderr}\n{log.read_text()[-4000:]}")
    answers = (json.loads(line) for line in done.stdout.splitlines())
    return {tuple(key): (found, seconds) for key, found, seconds in answers}


def _result(
    pair: Pair, said: Said, records: tuple[str, ...], answers: Mapping[tuple[str, ...], tuple[dict[str, Any], float]]
) -> Result:
    mine = {(state, which): found for (verl, state, which), (found, _) in answers.items() if verl == pair.verl}
    entries: dict[State, dict[str, Failure | None]] = {state: {} for state in STATES}
    modules: dict[State, dict[str, Failure | None]] = {state: {} for state in STATES}
    for (state, which), found in mine.items():
        if state == "witness":
            continue
        held = (entries if which else modules)[state]  # type: ignore[index]
        held |= {module: None if answer[0] == "imported" else Failure(*answer[1:]) for module, answer in found.items()}
    root = wheel("verl", pair.verl)
    claims = []
    for one in said.findings:
        state, why = mine["witness", ""][json.dumps(claim_of(one, root))][:2]
        claims.append(Claim(one.file, one.line, one.kind, one.symbol, one.severity, not one.function, state, why))
    left = sum(one.severity == "break" for one in said.left)
    seconds = sum(time for (verl, *_), (_, time) in answers.items() if verl == pair.verl)
    return Result(pair, entries, modules, tuple(claims), left, records, seconds)


def _is_there(root: Path, module: str) -> bool:
    path = root / module.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
