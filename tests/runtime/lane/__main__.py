"""`python -m tests.runtime.lane`: the tables of docs/runtime.md anew, for every build of the runtime."""

from __future__ import annotations

import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from patcher.packages.releases import wheel
from tests.runtime import environment
from tests.runtime.lane.document import DOCUMENTS, blocks, with_block
from tests.runtime.lane.model import RELEASES, Result
from tests.runtime.lane.reasons import disagreements
from tests.runtime.lane.running import ROOT, results


def _results(build: str) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="uky-lane-", dir="/tmp") as scratch:
        return results(build, RELEASES, Path(scratch))


def main() -> int:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
    disagreed = []
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(_results, environment.BUILDS):
            disagreed += [one for result in found for one in disagreements(result, wheel("verl", result.pair.verl))]
            for name, language in DOCUMENTS.items():
                for block, inner in blocks(found, language).items():
                    texts[name] = with_block(texts[name], block, inner)
    today = datetime.now(timezone.utc).date().isoformat()
    for name, text in texts.items():
        (ROOT / name).write_text(re.sub(r"\d{4}-\d\d-\d\d(?=[^\n]*`make docs-runtime`)", today, text), encoding="utf-8")
        print(f"wrote {name}")
    print("\n".join(disagreed), file=sys.stderr)
    return 1 if disagreed else 0


if __name__ == "__main__":
    sys.exit(main())
