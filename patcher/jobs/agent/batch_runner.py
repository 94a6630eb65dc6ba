"""Runs one job on the compute node that Slurm gave it, in the foreground, and writes down how it ended.

A program of its own: it is copied into the job's folder, beside `runner` and `accelerators`, which it uses. The job
gets this program's variables: sbatch passes them on, secrets included, so that no secret is written into a file.

When Slurm starts a job again, because it was preempted or a node failed, this program begins anew in the same folder.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

ORDER = "order.json"
"""In the job's folder: `argv`, `cwd`, `script`, and `force`: started though there is no GPU."""
NUMBER = "slurm.json"
"""In the job's folder: `id`, the job's number in Slurm; written by this program or by `queued.launch`, whoever is
first."""
REFUSED = 3
"""The exit code of a job that was not started, because no GPU is visible to it."""


def beside(folder: str, name: str) -> Any:
    """Load the module of this name from the job's folder, which is in no search path."""
    loader = SourceFileLoader(name, os.path.join(folder, f"{name}.py"))
    module = module_from_spec(spec_from_loader(name, loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


def main(folder: str) -> int:
    """Run the job whose folder this is. Returns the exit code for Slurm, as a shell would give it: 137 for SIGKILL.

    `started` and `clock` stay those of the first start, so that the job's age goes on when it is started again.
    """
    runner = beside(folder, "runner")
    with open(os.path.join(folder, ORDER), encoding="utf-8") as stream:
        order = json.load(stream)
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
        facts = json.load(stream)
    runner.write_whole(os.path.join(folder, NUMBER), {"id": os.environ["SLURM_JOB_ID"]})
    begun = time.time()
    first = float(facts.get("started") or begun)
    clock = time.monotonic() - (begun - first)
    again = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
    log = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)

    def note(text: str) -> None:
        os.write(log, f"uky-patch: {text}\n".encode())

    if again:
        note(f"Slurm has started this job again (restart {again}) on {platform.node()}")
    end = os.path.join(folder, "end.json")
    if os.path.lexists(end):
        os.unlink(end)
    runner.set_aside(end, runner.RESERVE)
    runner.set_aside(os.path.join(folder, "job.json"), len(json.dumps(facts)) + runner.RESERVE)
    facts.update(started=first, clock=clock, machine={"host": platform.node()})
    facts["runner"] = {"pid": os.getpid(), "start": runner.start_of(os.getpid())}
    why = None if order["force"] else why_no_gpu(folder, order["script"])
    if why is not None:
        note(f"not started: no GPU is visible where the job would start ({', '.join(why)})")
        runner.write_reserved(os.path.join(folder, "job.json"), facts)
        runner.write_end(folder, {"code": REFUSED, "ended": begun, "seconds": begun - first, "no_gpu": why})
        return REFUSED
    with open(os.devnull, "rb") as nothing:
        job = subprocess.Popen(
            order["argv"], cwd=order["cwd"], stdin=nothing, stdout=log, stderr=log, start_new_session=True
        )
    signals = []  # SIGTERM of Slurm: a time limit, a cancellation or a preemption.

    def tell(number: int, _: object) -> None:
        signals.append(number)
        try:
            os.killpg(job.pid, signal.SIGTERM)
        except OSError:
            pass

    signal.signal(signal.SIGTERM, tell)
    facts["process"] = {"pid": job.pid, "start": runner.start_of(job.pid)}
    runner.write_reserved(os.path.join(folder, "job.json"), facts)
    code: int = runner.watch(folder, job.pid, clock, lambda _: None)
    seconds = time.monotonic() - clock
    runner.write_end(folder, {"code": code, "ended": first + seconds, "seconds": seconds, "told": bool(signals)})
    return code if code >= 0 else 128 - code


def why_no_gpu(folder: str, script: str) -> Any:
    """Why the job would find no GPU on this node, as `accelerators.Reason`; None where it may find one."""
    try:
        with open(script, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return None
    return beside(folder, "accelerators").reason_without_gpu(text, os.environ, listed_gpus())


def listed_gpus() -> int | None:
    """How many GPUs nvidia-smi lists: those that Slurm lets this job use; None where it is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "-L"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else sum(line.startswith(b"GPU ") for line in done.stdout.splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
