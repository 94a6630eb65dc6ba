"""Fixes of upstream verl on older releases: `python -m bench.backports CLONE` prints a table. No lane has the clone.

Each release is checked out into a scratch folder, each fix is carried there for one vLLM, and the record that comes of
it is applied. The table counts what `uky-patch backport` says, and has whether `apply` makes all of the record's edits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RELEASES = ("0.6.1", "0.7.0")
VLLM = "0.20.2"
FIXES: tuple[tuple[str, ...], ...] = (
    ("1c1d53d89",),
    ("e7be886eb",),
    ("bb757884e",),
    ("5b0cd2839",),
    ("380d3734c",),
    ("07d403321",),
    ("016572ff8",),
    ("064463365",),
    ("5cef3ca8d",),
    ("bb757884e", "380d3734c", "5cef3ca8d"),
    ("d4880cf62",),
    ("1581220f1",),
    ("db33bc8d9",),
    ("8c2fa6383",),
    ("e5687fce0",),
    ("983cb0f24",),
)
"""Commits that made verl fit for a newer vLLM or transformers, by date; the tenth is three that build on each other."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one fix came to on one release. `applied`: None where no record could be made."""

    release: str
    commits: tuple[str, ...]
    carried: int
    there: int
    left: int
    repaired: int
    applied: bool | None
    seconds: float

    def line(self) -> str:
        state = {None: "–", True: "yes", False: "NO"}[self.applied]
        cells = [self.release, " ".join(self.commits), str(self.carried)]
        cells += [str(self.there), str(self.left), str(self.repaired), state, f"{self.seconds:.0f}"]
        return f"| {' | '.join(cells)} |"


def rows(clone: Path) -> Iterator[Row]:
    """A row for each release and fix."""
    with tempfile.TemporaryDirectory() as scratch:
        for release in RELEASES:
            for number, commits in enumerate(FIXES):
                tree = Path(scratch) / f"{release}-{number}"
                _git(clone, "worktree", "add", "--quiet", "--detach", str(tree), f"v{release}")
                try:
                    yield _row(clone, tree, release, commits)
                finally:
                    _git(clone, "worktree", "remove", "--force", str(tree))


def _row(clone: Path, tree: Path, release: str, commits: Sequence[str]) -> Row:
    start = time.monotonic()
    found = _uky(tree, "backport", *commits, "--upstream", str(clone), "--yes")
    seconds = time.monotonic() - start
    fates = [one["fate"] for one in found["ported"]]
    applied = None
    if found["records"]:
        ids = [one["id"] for one in found["records"]]
        done = _uky(tree, "apply", *ids, "--allow-dirty")
        outcomes = {one["id"]: one["outcome"] for one in done["records"]}
        applied = all(outcomes.get(name) == "applied" for name in ids)
    counts = (fates.count("carried"), fates.count("there"), fates.count("left"))
    return Row(release, tuple(commits), *counts, len(found["repaired"]), applied, seconds)


def _uky(tree: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "patcher", "--root", str(tree), "--assume", f"vllm=={VLLM}", "--format", "json"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    if "error" in found:
        raise SystemExit(f"{' '.join(arguments)}: {found['error']}")
    return found


def _git(clone: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(clone), *arguments], check=True, capture_output=True)


def main(arguments: Sequence[str]) -> int:
    """Print the table. Returns 1 where a record that was proven is not applied."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}")
        return 2
    sys.stdout.write("| verl | commits | carried | there | left | repaired | applied | s |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
    wrong = 0
    for row in rows(Path(arguments[0])):
        wrong += row.applied is False
        sys.stdout.write(f"{row.line()}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
