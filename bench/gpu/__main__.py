"""`python -m bench.gpu --trees DIR --python EXE --out DIR [SCENE...]`: run scenes on a GPU and keep what they came to.

A scene is `untouched:0.7.0`, `trained:0.6.1:vision`, `stalled:0.8.0:rollout`, `without:0.7.0:RECORD` and so on; by
default all of the document's. What was kept before stays, so that scenes may be run in several calls.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from bench.gpu import scenes

DEFAULT = (
    *(f"{scene}:{version}" for version in scenes.VERSIONS for scene in ("untouched", "check", "trained")),
    *("verified:0.8.0", "stalled:0.8.0:rollout", "stalled:0.8.0:actor", "timed:0.8.0"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu")
    parser.add_argument(
        "--trees", type=Path, required=True, help="released trees, each in a folder named by its version"
    )
    parser.add_argument("--python", type=Path, required=True, help="the interpreter that trains, or its environment")
    parser.add_argument("--work", type=Path, default=Path("/tmp/uky-gpu"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("scene", nargs="*", default=DEFAULT)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    python = given.python / "bin" / "python" if given.python.is_dir() else given.python
    stage = scenes.Stage(given.trees, python, given.work / "toys", given.work, given.out)
    results = given.out / "results.json"
    ran: list[dict[str, Any]] = json.loads(results.read_text())["ran"] if results.exists() else []
    told = {"date": time.strftime("%Y-%m-%d"), "versions": scenes.versions(python), "ran": ran}
    for name in given.scene:
        kind, version, *more = name.split(":")
        large = kind == "timed"
        if kind != "check" and not (stage.toys / ("large" if large else "vision") / "train.parquet").exists():
            scenes.made(stage, large=large)
        for one in getattr(scenes, kind)(stage, version, *more):
            ran.append(one.as_json())
            results.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
