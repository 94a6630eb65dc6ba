"""`python -m bench.injected`: inject breaks into a vLLM release one at a time; does `check` find each?"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.injected.breaks import Break, breaks
from bench.injected.sites import sites
from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair
from patcher.packages.releases import sources, wheel

PACKAGE = "vllm"
GOAL = 0.97


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.injected", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many breaks (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verl", default="0.7.0,0.8.0", help="releases of verl, by comma")
    parser.add_argument("--vllm", default="0.20.2")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    trees = [wheel("verl", version) for version in given.verl.split(",")]
    with TemporaryDirectory(prefix="uky-patch-injected-") as folder:
        package, untouched = Path(folder) / PACKAGE, sources(PACKAGE, given.vllm) / PACKAGE
        shutil.copytree(untouched, package)
        trial = Trial(package, untouched, given.vllm)
        outcomes = [(one, trial.felt(tree, one)) for tree, one in pick(trees, package, given.count, given.seed)]
    return tell(outcomes, as_json=given.json)


def pick(trees: list[Path], package: Path, count: int, seed: int) -> list[tuple[Path, Break]]:
    """`count` different breaks, each with the tree that feels it, the kinds in turn while there are any left."""
    symbols = Symbols(package)
    kinds: dict[str, dict[str, tuple[Path, Break]]] = defaultdict(dict)
    for tree in trees:
        for site in sites(tree / "verl", PACKAGE):
            for one in breaks(site, symbols):
                kinds[one.kind].setdefault(one.name, (tree, one))
    dice = random.Random(seed)
    heaps = [dice.sample(list(found.values()), len(found)) for _, found in sorted(kinds.items())]
    chosen: list[tuple[Path, Break]] = []
    while len(chosen) < count and any(heaps):
        for heap in heaps:
            if heap and len(chosen) < count:
                chosen.append(heap.pop())
    return chosen


class Trial:
    """A copy of a release that breaks are injected into, next to the release as it is."""

    def __init__(self, package: Path, untouched: Path, version: str) -> None:
        self.package, self.version = package, version
        self._baseline = self._target(untouched)
        self._projects: dict[Path, Project] = {}
        self._before: dict[tuple[Path, str], set[tuple[int, str, str]]] = {}

    def felt(self, tree: Path, one: Break) -> Finding | None:
        """The finding that the break adds at its site."""
        project = self._projects.setdefault(tree, Project(tree))
        place = (tree, one.site.file)
        if place not in self._before:
            self._before[place] = {_what(finding) for finding in self._findings(project, one, self._baseline)}
        with _injected(one):
            after = self._findings(project, one, self._target(self.package))
        new = [finding for finding in after if _what(finding) not in self._before[place]]
        here = [finding for finding in new if one.lines[0] <= finding.line <= one.lines[1]]
        return next((finding for finding in here if finding.kind in one.expected), here[0] if here else None)

    def _findings(self, project: Project, one: Break, target: Target) -> tuple[Finding, ...]:
        return check_pair(project, target, verl="", baseline=self._baseline, files=[one.site.file]).findings

    def _target(self, package: Path) -> Target:
        return Target({PACKAGE: self.version}, {PACKAGE: Symbols(package)}, {PACKAGE: self.version})


def _what(finding: Finding) -> tuple[int, str, str]:
    return (finding.line, finding.kind, finding.symbol)


@contextmanager
def _injected(one: Break) -> Iterator[None]:
    kept = {path: path.read_bytes() if path.exists() else None for path in one.changes}
    try:
        for path, text in one.changes.items():
            if text is None:
                path.unlink()
            else:
                path.write_text(text, encoding="utf-8")
        yield
    finally:
        for path, content in kept.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)


def tell(outcomes: list[tuple[Break, Finding | None]], *, as_json: bool) -> int:
    """Print recall by kind. 1 if it is below the goal."""
    kinds = sorted({one.kind for one, _ in outcomes})
    found = {kind: [finding for one, finding in outcomes if one.kind == kind] for kind in kinds}
    right = sum(1 for one, finding in outcomes if finding is not None and finding.kind in one.expected)
    recall = sum(finding is not None for _, finding in outcomes) / len(outcomes)
    missed = [one.name for one, finding in outcomes if finding is None]
    if as_json:
        counts = {kind: [sum(f is not None for f in every), len(every)] for kind, every in found.items()}
        print(json.dumps({"recall": recall, "kinds": counts, "right_kind": right, "missed": missed}))
    else:
        for kind, every in found.items():
            print(f"{kind:<20}{sum(f is not None for f in every):>5} of {len(every)}")
        print(f"{'all':<20}{len(outcomes) - len(missed):>5} of {len(outcomes)}   recall {recall:.3f} (goal {GOAL})")
        print(f"named by the right kind: {right}")
        for name in missed:
            print(f"  missed: {name}")
        for one, finding in outcomes:
            if finding is not None and finding.kind not in one.expected:
                print(f"  {one.name}: told as {finding.kind}")
    return 0 if recall >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
