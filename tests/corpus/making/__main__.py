"""`python -m tests.corpus.making [NAME…]`: run scenes, as root, and keep their logs; without names, list them.

`--again` labels and trims anew what a scene printed when it was last run.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

from tests.corpus.making import topics
from tests.corpus.making.grounds import lay
from tests.corpus.making.running import run
from tests.corpus.making.scenes import SCENES
from tests.corpus.making.writing import write


def kept(name: str, scratch: Path) -> str:
    return (scratch / "raw" / f"{name}.log").read_bytes().decode("utf-8", "replace")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.making", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenes, or the beginning of their names")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "corpus")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    lay(given.scratch)
    for module in pkgutil.iter_modules(topics.__path__):
        importlib.import_module(f"{topics.__name__}.{module.name}")
    chosen = [scene for name, scene in SCENES.items() if any(name.startswith(each) for each in given.names)]
    if not given.names:
        print("\n".join(SCENES))
    failed = 0
    for scene in chosen:
        text = kept(scene.name, given.scratch) if given.again else run(scene, given.scratch)
        try:
            print(scene.name, text.count("\n"), "lines, shown in", write(scene, text, given.scratch), flush=True)
        except ValueError as error:
            failed += 1
            print(error, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
