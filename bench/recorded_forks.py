"""What `record` makes of public forks, each against the commit at which it left upstream: a table of docs/recording.md.

`again`: of the files that records are for, the fork's own new ones among them, those that `apply` of all records makes
the fork's again in a clone of the base. Where a change of the file was refused, it cannot. `rebase`: what becomes of
the records on the first release of the next verl minor: apply, moved, resolved or not needed, drifted.

    python -m bench.recorded_forks UPSTREAM FORK…

UPSTREAM and each FORK are clones; the forks get a folder `uky-records`, so they should be copies.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from packaging.version import Version

from bench.trees import UKY_PATCH
from patcher.packages.releases import versions
from patcher.rewrite.marker import without_markers
from patcher.rewrite.texts import same, without_ids

_HEAD = (
    *("fork", "base", "date", "files", "records", "specific", "lines", "of comments", "refused", "new files"),
    *("again", "rebase", "s"),
)
_INTO = "uky-records"
_SETTINGS = f'patches = ["{_INTO}"]\nstyle = "clean"\n'
_ASSUMED = ("--assume", "vllm==0.12.0")


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
    new = sum(len(one["created"]) for one in answer["records"])
    cells = (name, base[:9], date, answer["files"], len(answer["records"]), edits - lines - new, lines, comments)
    return "| " + " | ".join(str(cell) for cell in (*cells, len(answer["left"]), new)) + " |"


def again(clone: Path, base: str, answer: dict[str, Any]) -> str:
    """How many of the recorded files a clone of the base has as the fork has them once its records are applied."""
    files = sorted({file for one in answer["records"] for file in one["files"]})
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        _git(clone, "clone", "--quiet", str(clone), str(tree))
        _git(tree, "checkout", "--quiet", base)
        shutil.copytree(clone / _INTO, tree / _INTO)
        (tree / "uky-patch.toml").write_text(_SETTINGS)
        names = [one["id"] for one in answer["records"]]
        command = [UKY_PATCH, "--root", str(tree), *_ASSUMED, "apply", "--allow-dirty", *names]
        subprocess.run(command, check=False, capture_output=True)
        texts = {file: (without_ids(_text(tree / file), "Uky"), _text(clone / file)) for file in files}
    equal = sum(same(made, without_markers(text, "Uky"), file) for file, (made, text) in texts.items())
    return f"{equal} of {len(files)}"


def next_minor(upstream: Path, date: str, stated: str) -> str:
    """The first release of the minor after the newest that was out at a commit's date, or that the commit's tree says
    it is of; "" where there is none. Upstream's `main` says for long that it is of the minor before."""
    known = [version for version in map(Version, versions("verl")) if not version.is_prerelease]
    tags = {
        Version(tag): _git(upstream, "log", "-1", "--format=%as", tag)[0] for tag in _git(upstream, "tag", "-l", "v*")
    }
    out = [version for version in known if tags.get(version, "9999") <= date or version <= Version(stated)]
    newest = max((version.release[:2] for version in out), default=())
    return str(min((version for version in known if version.release[:2] > newest), default=""))


def rebased(clone: Path, base: str, target: str) -> str:
    """The next release, and how many records apply there, moved, are resolved or not needed, and drifted."""
    if not target:
        return "–"
    (clone / "uky-patch.toml").write_text(_SETTINGS)
    command = [UKY_PATCH, "--root", str(clone), *_ASSUMED, "--format", "json"]
    command += ["rebase", target, "--from", base, "--dry-run"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    fates = Counter(one["fate"] for one in json.loads(done.stdout)["records"])
    counts = (fates["applies"], fates["moved"], fates["resolved"] + fates["not-needed"], fates["drifted"])
    return f"{target}: {', '.join(map(str, counts))}"


def _text(place: Path) -> str:
    """A file's text; "" where a record has not made it."""
    return place.read_text(encoding="utf-8") if place.exists() else ""


def main() -> None:
    upstream = frozenset(_git(Path(sys.argv[1]), "rev-list", "--all"))
    print(f"| {' | '.join(_HEAD)} |")
    print("| --- " * len(_HEAD) + "|")
    for clone in map(Path, sys.argv[2:]):
        base = base_of(clone, upstream)
        if base is None or not _git(clone, "diff", "--name-only", base, "HEAD"):
            continue
        arguments = ["--root", str(clone), *_ASSUMED, "--format", "json"]
        command = [UKY_PATCH, *arguments, "record", "--new", "--from", base, "--yes", "--into", _INTO]
        start = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        took = time.perf_counter() - start
        date = _git(clone, "log", "-1", "--format=%as", base)[0]
        answer = json.loads(done.stdout)
        line = row(clone.name.replace("+", "/"), base, date, answer)
        stated = _git(clone, "show", f"{base}:verl/version/version")[0].strip()
        moved = rebased(clone, base, next_minor(Path(sys.argv[1]), date, stated))
        print(f"{line} {again(clone, base, answer)} | {moved} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
