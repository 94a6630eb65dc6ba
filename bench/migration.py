"""Moving a whole fork to a host on loopback: against bare rsync, with nothing to do, and how often it asks the host."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.clock import Times
from bench.measures import Amount, Figure, Unmeasured
from tests import forks, machines
from tests.machines import Machine
from tests.migrate.moving import packages

STEPS = ("transfer", "render", "verify", "environment")
"""With preflight, probe and plan, which they need: all but the job."""
_LARGE = 500_000_000
_SETTLED = 2.5
"""Seconds until files are old enough for their stamps to tell an edit: `patcher.worktree.digest_cache.SETTLED`."""
_COUNTED = (
    "import os, sys\n"
    "from patcher.remote import channel\n"
    "ask = channel.Channel.ask\n"
    "def counted(self, verb, **how):\n"
    "    with open(os.environ['TRIPS'], 'a') as file: file.write(verb + '\\n')\n"
    "    return ask(self, verb, **how)\n"
    "channel.Channel.ask = counted\n"
    "from patcher.__main__ import main\n"
    "main()\n"
)
"""The command, noting each request to the agent."""


@dataclass(frozen=True, slots=True)
class _Place:
    folder: Path
    tree: Path
    host: Machine

    @property
    def there(self) -> Path:
        return self.host.home / self.tree.name

    @property
    def env(self) -> dict[str, str]:
        state = {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state"), "LC_ALL": "C.UTF-8"}
        cache = os.environ.get("UKY_PATCH_CACHE") or str(Path.home() / ".cache/uky-patch")
        paths = {"PATH": f"{self.host.shims}:{os.environ['PATH']}", "UKY_PATCH_CACHE": cache}
        return {**os.environ, **state, **paths, "TRIPS": str(self.folder / "trips")}

    def clear(self) -> None:
        self.host.do("rm", "-rf", str(self.there))

    def run(self, *command: str, exits: tuple[int, ...] = (0,)) -> tuple[float, str]:
        """Seconds and output of a command. Raises SystemExit with what it said where it fails."""
        started = time.perf_counter()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env, check=False
        )
        seconds = time.perf_counter() - started
        if done.returncode not in exits:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"[-3000:])
        return seconds, done.stdout

    def migrate(self, *steps: str, program: tuple[str, ...] = ("-m", "patcher")) -> tuple[float, str]:
        only = [word for step in steps for word in ("--only", step)]
        shared = ["--root", str(self.tree), "--format", "json"]
        exits = (0, 1) if "environment" in steps else (0,)
        return self.run(sys.executable, *program, *shared, "migrate", self.host.name, *only, exits=exits)


def migration(folder: Path, rounds: int) -> Iterator[Figure | Amount | Unmeasured]:
    """A host of its own for these figures; where none can be made, that is told."""
    if reason := machines.why_not():
        if os.environ.get(machines.REQUIRED):
            raise SystemExit(f"migration: {reason}")
        yield Unmeasured("migration to a host on loopback", reason)
        return
    with machines.machine(folder / "host", "bench") as host:
        packages(host)
        place = _Place(folder, forks.fork(folder / "fork"), host)
        times = max(rounds // 2, 3)
        yield _first(place, times, "migrate --only transfer, first run / rsync -a")
        yield _again(place, times, "migrate --only transfer, nothing to do / rsync -a")
        yield from _nothing(place, times)
        noise = random.Random(0)
        for number in range(5):
            (place.tree / f"large-{number}.bin").write_bytes(noise.randbytes(_LARGE // 5))
        yield _first(place, 3, "the first with 500 MB more that git does not track")
        yield _again(place, 3, "the second with 500 MB more that git does not track")


def _first(place: _Place, rounds: int, name: str) -> Figure:
    """Each command whole, with a login of its own; in turn, the folder gone each time."""
    bare = _rsync(place)
    ours, theirs = [], []
    for _ in range(rounds + 1):
        place.clear()
        ours.append(place.migrate("transfer")[0])
        place.clear()
        theirs.append(place.run(*bare)[0])
    place.clear()
    return Figure(name, Times(tuple(ours[1:])), Times(tuple(theirs[1:])), 1.5, ceiling=4)


def _again(place: _Place, rounds: int, name: str) -> Figure:
    """The same on what is there already, in two folders: neither finds what the other has put there."""
    bare = _rsync(place, "bare")
    place.migrate("transfer")
    place.run(*bare)
    time.sleep(_SETTLED)
    ours, theirs = [], []
    for _ in range(rounds + 1):
        ours.append(place.migrate("transfer")[0])
        theirs.append(place.run(*bare)[0])
    place.clear()
    place.host.do("rm", "-rf", "bare")
    return Figure(name, Times(tuple(ours[1:])), Times(tuple(theirs[1:])), 1.5, ceiling=4)


def _rsync(place: _Place, folder: str = "") -> list[str]:
    """`rsync -a` of the files that git lists."""
    listed = place.folder / "listed"
    names = [name for name in forks.listed(place.tree) if not (place.tree / name).is_symlink()]
    listed.write_bytes(b"".join(os.fsencode(name) + b"\0" for name in names))
    return [
        "rsync",
        "-a",
        "--from0",
        f"--files-from={listed}",
        f"{place.tree}/",
        f"{place.host.name}:{folder or place.tree.name}/",
    ]


def _nothing(place: _Place, rounds: int) -> Iterator[Amount]:
    place.migrate(*STEPS)
    trips = place.folder / "trips"
    seconds = [place.migrate(*STEPS)[0] for _ in range(rounds)]
    yield Amount("migrate with nothing to do, all steps but the job", median(seconds), "s", 3)
    calls = len(place.host.calls)
    trips.unlink(missing_ok=True)
    place.migrate(*STEPS, program=("-c", _COUNTED))
    asked = trips.read_text().split()
    processes = len(place.host.calls) - calls
    told = f"the same: {len(asked)} requests and {processes} ssh processes"
    yield Amount(told, len(asked) + processes, "", 8)
