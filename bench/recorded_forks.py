"""What `record` makes of public forks, each against the commit at which it left upstream: a table of docs/forks.md.

    python -m bench.recorded_forks UPSTREAM FORK…

UPSTREAM and each FORK are clones; the forks get a folder `uky-records`, so they should be copies.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.trees import UKY_PATCH

_INTO = "uky-records"


def _git(clone: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(clone), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def base_of(fork: Path, upstream: frozenset[str]) -> str | None:
    """The newest commit of the fork's branch that upstream has too."""
    return next((commit for commit in _git(fork, "rev-list", "HEAD") if commit in upstream), None)


def row(name: str, base: str, date: str, answer: dict[str, Any]) -> str:
    """One line of the table, from the answer of `record --format json`."""
    edits = sum(one["edits"] for one in answer["records"])
    lines = sum(one["lines"] for one in answer["records"])
    comments = sum(one["lines"] for one in answer["records"] if "comments alone" in one["why"])
    new = sum("own" in one["why"] for one in answer["left"])
    cells = (name, base[:9], date, answer["files"], len(answer["records"]), edits - lines, lines, comments)
    return "| " + " | ".join(str(cell) for cell in (*cells, len(answer["left"]) - new, new)) + " |"


def main() -> None:
    upstream = frozenset(_git(Path(sys.argv[1]), "rev-list", "--all"))
    print("| fork | base | date | files | records | specific | lines | of comments | refused | new files | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for clone in map(Path, sys.argv[2:]):
        base = base_of(clone, upstream)
        if base is None or not _git(clone, "diff", "--name-only", base, "HEAD"):
            continue
        arguments = ["--root", str(clone), "--assume", "vllm==0.12.0", "--format", "json"]
        command = [UKY_PATCH, *arguments, "record", "--from", base, "--yes", "--into", _INTO]
        start = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        took = time.perf_counter() - start
        date = _git(clone, "log", "-1", "--format=%as", base)[0]
        print(f"{row(clone.name.replace('+', '/'), base, date, json.loads(done.stdout))} {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
