"""`python -m bench.forks DIR`: `check` on the clones in DIR, at vLLM releases. Exit code 1 where one crashes.

`make forks FORKS=DIR` runs it by hand; no lane does, as the clones are no part of this repository.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from bench.forks.clones import clones
from bench.forks.labels import LABELS, PLACES, draw, load, score
from bench.forks.report import DOCUMENTS, TARGETS, document, tell
from bench.forks.running import Run, run
from patcher.terminal.report_file import write_whole

_ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.forks", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--only", default="", metavar="TEXT", help="forks whose name holds this")
    parser.add_argument("--targets", default=",".join(TARGETS), help="releases of vLLM, by comma")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one fork on one release (default 300)")
    parser.add_argument("--write", action="store_true", help="write docs/forks.md and its Chinese twin")
    parser.add_argument(
        "--draw", type=int, default=0, metavar="COUNT", help="print COUNT breaks to judge, as JSON lines"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    given = parser.parse_args(arguments)
    found = [clone for clone in clones(given.folder) if given.only in clone.name]
    runs: list[Run] = []
    for clone in found:
        for target in dict.fromkeys(one for one in (clone.pin, *given.targets.split(",")) if one):
            sys.stderr.write(f"{clone.name} on {target}\n")
            runs.append(run(clone, target, given.limit))
    if given.draw:
        for one, finding in draw(runs, given.draw, given.seed):
            fact = {"fork": one.clone.name, "commit": one.clone.commit, "target": one.target, "file": finding.file}
            sys.stdout.write(json.dumps({**fact, "line": finding.line, "symbol": finding.symbol}) + "\n")
        return 0
    labels, places = load(LABELS), load(PLACES)
    result = score(runs, labels, places)
    tell(runs, result, [*labels, *places])
    if given.write:
        for name, words in DOCUMENTS.items():
            write_whole(_ROOT / name, document(words, runs, result, [*labels, *places], date.today().isoformat()))
    return 1 if any(one.crash for one in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
