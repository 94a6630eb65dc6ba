"""`python -m bench`: each figure with its limit. Exit code 1 where one is missed by more than the tolerance.

A limit that is not met yet has a ceiling above it: the figure is shown as missed, and fails the run only beyond that.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import figures
from bench.measures import Amount, Figure, Unmeasured


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="runs of each command (default 9)")
    parser.add_argument(
        "--quick", action="store_true", help="leave out what takes minutes: libcst's runner, most of the matrix"
    )
    parser.add_argument("--tolerance", type=float, default=1.0, help="factor on the limits for the exit code")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    with TemporaryDirectory(prefix="uky-patch-bench-") as folder:
        for figure in figures(Path(folder), given.rounds, runner=not given.quick):
            found.append(figure)
            if not given.json:
                print(row(figure), flush=True)
    measured = [figure for figure in found if not isinstance(figure, Unmeasured)]
    missed = [figure for figure in measured if figure.value > (figure.ceiling or figure.limit) * given.tolerance]
    if given.json:
        print(json.dumps({"python": platform.python_version(), "figures": [as_json(figure) for figure in found]}))
    elif missed:
        print(f"missed: {len(missed)} of {len(measured)}", file=sys.stderr)
    if len(measured) < len(found) and not given.json:
        print(f"not measured: {len(found) - len(measured)} of {len(found)}", file=sys.stderr)
    return 1 if missed else 0


def row(figure: Figure | Amount | Unmeasured) -> str:
    """One line: name, both medians and their ratio, or the amount; the limit and whether it is kept."""
    if isinstance(figure, Unmeasured):
        return f"{figure.name:<52}  NOT MEASURED: {figure.reason}"
    within = "within" if figure.value <= figure.limit else "MISSED"
    within += f" (ceiling {figure.ceiling:g})" if figure.ceiling else ""
    if isinstance(figure, Amount):
        return f"{figure.name:<52}{figure.value:22.1f} {figure.unit:<2}{'':>19}limit {figure.limit:<5g}{within}"
    times = f"{figure.ours.median * 1000:9.1f} ms {figure.theirs.median * 1000:9.1f} ms"
    return f"{figure.name:<52}{times}   ratio {figure.ratio:6.3f}   limit {figure.limit:<5g}{within}"


def as_json(figure: Figure | Amount | Unmeasured) -> dict[str, object]:
    if isinstance(figure, Unmeasured):
        return {"name": figure.name, "unmeasured": figure.reason}
    if isinstance(figure, Amount):
        held = {"amount": figure.value, "unit": figure.unit, "limit": figure.limit}
        return {"name": figure.name, **held, "within": figure.value <= figure.limit}
    return {
        "name": figure.name,
        "ours": list(figure.ours.runs),
        "theirs": list(figure.theirs.runs),
        "ratio": figure.ratio,
        "limit": figure.limit,
        "within": figure.ratio <= figure.limit,
    }


if __name__ == "__main__":
    sys.exit(main())
