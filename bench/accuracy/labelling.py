"""Ask every probe of every use on a release, and keep the answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.accuracy.environments import Environment, base, cache, paths

_HERE = Path(__file__).parent
_SILENT = 240
"""Seconds without an answer after which a probe counts as hanging."""
_QUIET = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_PLUGINS": "",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "",
    "CUDA_VISIBLE_DEVICES": "",
}

Answer = list[Any]


def answers(environment: Environment, probes: Iterable[str]) -> dict[str, Answer]:
    """By probe. An interpreter that dies or hangs on one is started again behind it."""
    before, folder = paths(environment)
    left = sorted(probes)
    found: dict[str, Answer] = {}
    started = time.monotonic()
    while left:
        job = {
            "package": environment.package,
            "version": environment.version,
            "folder": folder,
            "paths": before,
            "probes": [[key, json.loads(key)] for key in left],
        }
        got, stuck = _run(job)
        found |= got
        if stuck is not None:
            found[stuck] = ["unknown", "the interpreter ended or hung"]
        left = [key for key in left if key not in found]
        if not got and stuck is None:
            raise SystemExit(f"{environment.name}: no answer at all")
    print(f"{environment.name}: {len(found)} probes, {time.monotonic() - started:.0f} s", file=sys.stderr)
    return found


def _run(job: dict[str, Any]) -> tuple[dict[str, Answer], str | None]:
    env = {**os.environ, **_QUIET, "PYTHONPATH": str(_HERE), "PYTHONPYCACHEPREFIX": str(cache() / "bytecode")}
    found: dict[str, Answer] = {}
    current: str | None = None
    with TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job))
        log = cache() / f"{job['package']}-{job['version']}.log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [str(base()), "-m", "witness", str(file)],
                env=env,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            for line in _lines(process):
                match json.loads(line):
                    case ["begin", key]:
                        current = key
                    case ["end", key, answer]:
                        found[key] = answer
                        current = None
                    case ["done", missing, tolerant]:
                        current = None
                        errors.write(json.dumps({"missing": missing, "statement by statement": tolerant}, indent=1))
            process.kill()
            process.wait()
    return found, current


def _lines(process: subprocess.Popen[str]) -> Iterable[str]:
    """Lines of its output until it ends or says nothing for too long."""
    import selectors

    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(_SILENT):
            line = process.stdout.readline()
            if not line:
                return
            yield line
