"""`python -m bench.accuracy`: how check and other tools do on the labels. `label` makes the labels anew."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description=__doc__)
    parser.add_argument("--json", action="store_true")
    commands = parser.add_subparsers(dest="command")
    making = commands.add_parser("label", help="execute every use on every release, and write the labels")
    making.add_argument("names", nargs="*", help="environments (default: all), as vllm-0.12.0-sources")
    parser.add_argument("--baselines", action="store_true", help="run the other tools too, not just their kept results")
    parser.add_argument("--wrong", action="store_true", help="list what check gets wrong")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if given.command == "label":
        from bench.accuracy.making import make

        make(given.names)
        return 0
    from bench.accuracy.report import report

    return report(as_json=given.json, baselines=given.baselines, wrong=given.wrong, processes=given.processes)


if __name__ == "__main__":
    sys.exit(main())
