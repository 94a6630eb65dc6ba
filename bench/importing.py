"""What the record `versions-at-import` adds to an import of verl."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.clock import Trial, in_turn, once
from bench.measures import Amount
from bench.trees import UKY_PATCH


def importing(folder: Path, rounds: int) -> Iterator[Amount]:
    """A package that imports what torch imports in any case, with the record and without it."""
    site = folder / "site"
    for name in ("vllm", "torch", "transformers"):
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    trials = []
    for words in ([], ["apply", "versions-at-import"]):
        tree = folder / f"importing-{len(words)}"
        (tree / "verl/version").mkdir(parents=True)
        (tree / "verl/version/version").write_text("0.7.0\n")
        (tree / "verl/__init__.py").write_text("import importlib.metadata\nimport json\n")
        if words:
            once(Trial([UKY_PATCH, "--root", str(tree), "--assume", "vllm==1.0", *words], exits=frozenset({0, 1})))
        env = {**os.environ, "PYTHONPATH": f"{tree}:{site}"}
        trials.append(Trial([sys.executable, "-c", "import verl"], env=env))
    without, with_it = in_turn(trials, 4 * rounds)
    yield Amount(
        "import of verl with versions-at-import, beyond one without", 1000 * (with_it.median - without.median), "ms", 10
    )
