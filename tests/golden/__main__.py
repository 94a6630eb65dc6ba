"""`python -m tests.golden --write | --check [--only PART,...] [--keep FOLDER] [--jobs N]`. See README.md."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.golden import doors, machine
from tests.golden.entries import Entry, file_name, samples, write_in_full

PARTS = ("commands", "diagnoses", "findings", "plans", "renderings")
_KEPT = Path(__file__).parent / "outputs"
_TOLD = 40
"""Differences of a part that are listed; all of them are in the folder."""
_CALLS = 8
"""Tasks after which a process is replaced: what it has read of releases is not kept for ever."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where --check finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write what is committed anew")
    what.add_argument("--check", action="store_true", help="compare with what is committed; the default")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, with commas between: {', '.join(PARTS)}")
    parser.add_argument("--keep", type=Path, help="write every output in full below this folder")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",")
    if unknown := sorted(set(wanted) - set(PARTS)):
        parser.error(f"there is no part {', '.join(unknown)}")
    keep = options.keep.absolute() if options.keep else None
    found, trouble, seconds = outputs(wanted, options.jobs)
    for part in wanted:
        if keep:
            write_in_full(keep / part, found[part])
        sys.stdout.write(f"{part}: {len(found[part])} outputs, {seconds[part]:.0f} s of its processes\n")
    for line in trouble:
        sys.stdout.write(f"failed: {line}\n")
    if options.write:
        if trouble:
            return 1  # What is committed stays as it is: parts of it would be missing.
        for part in wanted:
            write(part, found[part])
        return 0
    different = [part for part in wanted if tell(part, found[part])]
    return int(bool(trouble or different))


def outputs(wanted: Sequence[str], jobs: int) -> tuple[dict[str, list[Entry]], list[str], dict[str, float]]:
    """The entries of each part in order, the tasks that failed, and how long each part took in all its processes."""
    found: dict[str, list[Entry]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    trouble = []
    with machine.place() as place:
        doors.training_environment(place / "envs/train", "0.20.2")
        todo: list[tuple[str, Any, Path]] = []
        for part in wanted:
            module = import_module(f"tests.golden.{part}")
            module.prepare(place)
            todo += [(part, task, place) for task in module.tasks()]
        with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=_CALLS) as pool:
            for part, entries, problem, took in pool.imap_unordered(_done, todo):
                found[part] += entries
                seconds[part] += took
                trouble += [problem] if problem else []
            # To terminate them, as the end of `with` does, hangs where one is just being replaced.
            pool.close()
            pool.join()
    for part in wanted:
        found[part].sort(key=lambda entry: entry.key)
        names = [file_name(entry.key, "") for entry in found[part]]
        assert len(names) == len(set(names)), f"{part}: two outputs have one name"
    return found, sorted(trouble), seconds


def _done(todo: tuple[str, Any, Path]) -> tuple[str, list[Entry], str, float]:
    part, task, place = todo
    start = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of the releases' own sources.
            entries = list(import_module(f"tests.golden.{part}").entries(task, place))
    except Exception as error:  # Told with the others; a part that fails does not hide the rest.
        return part, [], f"{part} {task}: {type(error).__name__}: {error}", time.monotonic() - start
    return part, entries, "", time.monotonic() - start


def write(part: str, entries: Sequence[Entry]) -> None:
    """Replace what is committed of a part."""
    folder = _KEPT / part
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for name, text in samples(entries).items():
        (folder / name).write_text(text, encoding="utf-8")
    (_KEPT / f"{part}.txt").write_text("".join(f"{entry.line}\n" for entry in entries), encoding="utf-8")


def tell(part: str, entries: Sequence[Entry]) -> bool:
    """Say what differs from what is committed, and write the new values to a folder. Whether anything does."""
    kept = _KEPT / f"{part}.txt"
    before = {line.split("  |  ")[0]: line for line in kept.read_text("utf-8").splitlines()} if kept.exists() else {}
    now = {entry.key: entry for entry in entries}
    lines = [f"{key}: no longer there" for key in before if key not in now]
    changed = [entry for entry in entries if before.get(entry.key) != entry.line]
    lines += [f"{entry.key}: {_difference(before.get(entry.key), entry.line)}" for entry in changed]
    stale = [
        name
        for name, text in samples(entries).items()
        if not (kept.with_suffix("") / name).exists() or (kept.with_suffix("") / name).read_text("utf-8") != text
    ]
    lines += [f"sample {kept.with_suffix('').name}/{name} differs" for name in stale]
    if not lines:
        return False
    folder = Path(mkdtemp(prefix=f"uky-golden-differs-{part}-", dir="/tmp"))
    write_in_full(folder, changed)
    sys.stdout.write(f"{part}: {len(lines)} differences; what it is now lies in {folder}\n")
    sys.stdout.write("".join(f"  {line}\n" for line in lines[:_TOLD]))
    if len(lines) > _TOLD:
        sys.stdout.write(f"  and {len(lines) - _TOLD} more\n")
    return True


def _difference(before: str | None, now: str) -> str:
    """Which of an entry's hashes differ, and what is shown beside them where that does."""
    if before is None:
        return "new"
    _, old_hashes, *old_shown = (part.strip() for part in f"{before}  |  ".split("  |"))
    _, new_hashes, *new_shown = (part.strip() for part in f"{now}  |  ".split("  |"))
    old = dict(one.split("=") for one in old_hashes.split())
    new = dict(one.split("=") for one in new_hashes.split())
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = [f"{', '.join(names)} changed"] if names else []
    if old_shown[:1] != new_shown[:1]:
        told.append(f"{old_shown[0]} -> {new_shown[0]}")
    return "; ".join(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
