"""The matrix with its sources at hand: seconds until so many releases are done, and the memory of its processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

RELEASES = (10, 20, 40)
VERL = ">=0.5,<=0.9.1"
"""Eight releases."""
_EVERY = 0.2
"""Seconds between two looks at the processes."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """`seconds` by the number of releases done; `megabytes` is the sum of what each process took at most."""

    verl: int
    seconds: dict[int, float]
    megabytes: float


def timeline(count: int) -> Timeline:
    """Run the matrix of the newest `count` vLLM releases in a process of its own. Fetches them first."""
    command = [sys.executable, "-m", "bench.matrix", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peaks: dict[int, int] = {}
        watching = threading.Thread(target=_watch, args=(process, peaks), daemon=True)
        watching.start()
        output, _ = process.communicate()
        watching.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    found = json.loads(output)
    return Timeline(found["verl"], {int(done): at for done, at in found["seconds"].items()}, sum(peaks.values()) / 1024)


def _watch(process: subprocess.Popen[str], peaks: dict[int, int]) -> None:
    """Note the peak memory (KiB) of the process and those below it until it ends."""
    while process.poll() is None:
        waiting = [process.pid]
        while waiting:
            one = waiting.pop()
            try:
                status = Path(f"/proc/{one}/status").read_text()
                below = Path(f"/proc/{one}/task/{one}/children").read_text().split()
            except OSError:
                continue
            waiting += map(int, below)
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    peaks[one] = max(peaks.get(one, 0), int(line.split()[1]))
        time.sleep(_EVERY)


def main() -> int:
    from packaging.version import Version

    from patcher.check.matrix_run import MatrixRequest, inputs_of, judge_pairs
    from patcher.packages.releases import versions
    from patcher.records.load import load

    final = [version for version in map(Version, versions("vllm")) if not version.is_prerelease]
    chosen = sorted(final)[-int(sys.argv[1]) :]
    records = [record for record in load() if record.enabled]
    request = MatrixRequest(VERL, (f"vllm>={chosen[0]},<={chosen[-1]}",))
    inputs = inputs_of(request, records, lambda _message, _done, _total: None)
    started = time.perf_counter()
    seconds: dict[int, float] = {}

    def note(message: object, _done: int, _total: int | None) -> None:
        if message:
            seconds[len(seconds) + 1] = time.perf_counter() - started

    judge_pairs(inputs, note)
    print(json.dumps({"verl": len(inputs.verl), "seconds": {n: seconds[n] for n in RELEASES if n in seconds}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
