"""`python -m bench.diagnosis`: how diagnose does on the labelled logs. Exit code 1 where it misses a goal.

What it gets wrong in the frozen part is counted and not told, so that no record is written after it.
"""

from __future__ import annotations

import argparse
import sys

from bench.diagnosis.labels import load
from bench.diagnosis.report import report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show-frozen", action="store_true", help="tell the misses of the frozen part too")
    parser.add_argument("--only", metavar="TEXT", default="", help="logs whose name holds this; no goal is asked then")
    given = parser.parse_args()
    labels = [label for label in load() if given.only in label.name]
    return report(labels, as_json=given.json, show_frozen=given.show_frozen, goals=not given.only)


if __name__ == "__main__":
    sys.exit(main())
