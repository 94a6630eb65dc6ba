"""Whatever somebody plants where a command opens something: it ends, says so, and leaves the rest of the disk alone.

The paths are not listed here: each command is run once on a small tree while what it opens is noted, in its own process
and in the agent's. Then each kind of thing is planted at each of these paths, one at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from patcher.remote.host import HERE
from tests.lanes import ALL_CASES, one_in
from tests.planted import site
from tests.planted.acting import act

ASSUMED = ("--assume", "vllm==2.1")
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "list": (("list", *ASSUMED),),
    "status": (("status", *ASSUMED),),
    "status, applied": (("apply", *ASSUMED), ("status", *ASSUMED)),
    "apply": (("apply", *ASSUMED),),
    "apply again": (("apply", *ASSUMED), ("apply", "--assume", "vllm==1.0")),
    "apply --commit": (("apply", "--commit", *ASSUMED),),
    "revert": (("apply", *ASSUMED), ("revert", *ASSUMED)),
    "revert --force": (("apply", *ASSUMED), ("revert", "--force", *ASSUMED)),
    "verify": (("apply", *ASSUMED), ("verify", *ASSUMED)),
    "check": (("check", "--against", "vllm==2.1", "--no-since", "--scripts", "run.sh", *ASSUMED),),
    "pins": (("pins", "requirements.txt", *ASSUMED),),
    "render": (("render", "run_debug.sh", *ASSUMED),),
    "render --write": (("render", "run_debug.sh", "--write", *ASSUMED),),
    "job status": (("job", "status", HERE),),
    "job logs": (("job", "logs", HERE),),
    "clean": (("clean", "--yes", "--caches"),),
    "diagnose": (("diagnose", "train.log", *ASSUMED),),
    "watch": (("watch", "--once", HERE),),
    "symptoms": (("symptoms",),),
    "bundle": (("bundle", "--dry-run", *ASSUMED),),
}
"""Each the last of its calls; those before it prepare the tree."""
KINDS: dict[str, Callable[[Path, Path], object]] = {
    "link to a file outside": lambda place, outside: place.symlink_to(outside / "canary"),
    "link to a folder outside": lambda place, outside: place.symlink_to(outside / "folder"),
    "dangling link": lambda place, outside: place.symlink_to(outside / "new"),
    "link to itself": lambda place, _: place.symlink_to(place.name),
    "pipe": lambda place, _: os.mkfifo(place),
    "link to a device": lambda place, _: place.symlink_to("/dev/zero"),
    "device": lambda place, _: os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
    "socket": lambda place, _: os.mknod(place, stat.S_IFSOCK | 0o666),
    "folder": lambda place, _: place.mkdir(),
}
_PASSING = re.compile(r"[0-9a-f]{8}|\d{4,}|building-|\.part$")
"""In the names that differ from run to run: nobody can plant anything there."""
_ABSENT_SOURCES = re.compile(r"tree/(recipe|verl)/")
_FOR_ALL = ("tree/verl/__pycache__", "tree/verl/trainer", "tree/verl/trainer/main_ppo.py", "tree/verl/utils/model.py")
"""Of the sources that the shipped records name and the small tree lacks, all looked for in the same way."""
FEW, MANY = 4, 12
"""Of each command, planted in the short lane and in the long one."""


@dataclass(frozen=True)
class Case:
    command: str
    path: str
    kind: str

    def __str__(self) -> str:
        return f"{self.command} | {self.path} | {self.kind}".replace("::", ":")


@lru_cache(maxsize=1)
def scene() -> tuple[Path, Path]:
    """The folder in which each site is, always at the same place, and the pristine copy."""
    above = Path(mkdtemp(prefix="uky-planted-"))
    site.make(above / "site")
    (above / "site").rename(above / "pristine")
    return above / "site", above / "pristine"


def prepared(command: str) -> Path:
    """The site as it is before the last call of a command."""
    base, pristine = scene()
    kept = base.with_name(f"before {command}")
    if not kept.exists():
        site.renew(base, pristine)
        for words in COMMANDS[command][:-1]:
            done = act(base, words)
            assert done.code == 0, done
        shutil.copytree(base, kept, symlinks=True)
    return kept


def opened(command: str) -> list[str]:
    """The paths in the tree and the home that the last call of a command opens, relative to the site."""
    base, _ = scene()
    site.renew(base, prepared(command))
    notes = base.with_name("notes")
    notes.write_bytes(b"")
    done = act(base, COMMANDS[command][-1], notes)
    assert done.code in (0, 1), (command, done)
    found = {os.path.normpath(os.fsdecode(path)) for path in notes.read_bytes().split(b"\0") if path}
    within = (str(base / "tree") + "/", str(base / "home") + "/")
    names = {path.removeprefix(f"{base}/") for path in found if path.startswith(within)}
    lasting = (name for name in names if not _PASSING.search(Path(name).name))
    placed = sorted(name for name in lasting if not any((base / above).is_file() for above in Path(name).parents))
    return [name for name in placed if not _ABSENT_SOURCES.match(name) or (base / name).exists() or name in _FOR_ALL]


def cases(command: str) -> list[Case]:
    """Every kind at every path of a command."""
    return [Case(command, path, kind) for path in opened(command) for kind in KINDS]


def plant(case: Case, base: Path) -> None:
    place = base / case.path
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    KINDS[case.kind](place, base / "outside")


def broken(case: Case) -> str:
    """What went wrong, with what a command printed; "" where all is as it must be."""
    base, _ = scene()
    site.renew(base, prepared(case.command))
    try:
        plant(case, base)
    except PermissionError:
        return ""  # Devices cannot be made everywhere.
    before = site.fingerprint(base / "outside")
    done = act(base, COMMANDS[case.command][-1])
    after = site.fingerprint(base / "outside")
    if done.code is None:
        return f"{case}: it did not end"
    if before != after:
        return f"{case}: wrote outside: {before.keys() ^ after.keys() or 'a file was changed'}"
    if "Traceback" in done.err or done.code not in (0, 1, 2, 3, 4, 5):
        return f"{case}: {done.code}\n{done.err}"
    if done.code > 1 and done.err.count("error:") != 1 and "error" not in done.out:
        return f"{case}: {done.code} without one clear error\n{done.err}"
    return ""


@pytest.mark.parametrize("command", one_in(3, COMMANDS))
def test_some_of_all(command: str) -> None:
    chosen = sorted(cases(command), key=lambda case: zlib.crc32(str(case).encode()))
    assert [said for case in chosen[:FEW] if (said := broken(case))] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_many(command: str) -> None:
    """All of them, which takes half an hour, with UKY_PATCH_ALL_CASES=1."""
    chosen = sorted(cases(command), key=lambda case: zlib.crc32(str(case).encode()))
    most = None if ALL_CASES else MANY
    assert [said for case in chosen[FEW:most] if (said := broken(case))] == []
