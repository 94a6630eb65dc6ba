"""Name the modules above 500 lines that state no reason: `python -m bench.module_length`, a part of `make lint`.

A module that is longer and has to be says so in a comment of its own line, anywhere in it: `# long: one grammar`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("patcher", "bench")
LIMIT = 500
"""One idea fits into 100 to 400 lines; the modules of comparable tools that hold more hold several."""
_REASON = re.compile(r"^# long: \S.*$", re.MULTILINE)


def too_long(root: Path) -> Iterator[str]:
    """A line for each module above the limit without a reason: its path below `root`, and its lines."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            lines = text.count("\n")
            if lines > LIMIT and not _REASON.search(text):
                yield f"{path.relative_to(root)}: {lines} lines, above {LIMIT}; split it, or state why: # long: ..."


def main() -> int:
    """Exit code 1 where a module is too long."""
    found = list(too_long(ROOT))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
