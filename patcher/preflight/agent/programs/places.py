"""Where the tree's own git_ignore.py says that data and models are, and whether its paths hold."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check

TRAIN = ("train.parquet", "train_tiny.parquet", "train_TINY.parquet")
FILES = (".parquet", ".json", ".jsonl")
MODELS = ("QWEN_VL_3B_BASE", "MODEL_BASE")
"""The usual names of a data file, and of the constants that say where models are, first choice first."""


def constants() -> dict[str, str]:
    """The module's paths by the name of their constant; a `NAME_STR` counts as `NAME`."""
    module = importlib.import_module("git_ignore")
    found: dict[str, str] = {}
    for name, value in vars(module).items():
        if name.isupper() and isinstance(value, (str, os.PathLike)):
            found[name[:-4] if name.endswith("_STR") else name] = str(value)
    return found


def data_file(given: str | None, found: dict[str, str]) -> str | None:
    """The file to train on: the one given, or the usual name in the folder given or in DATA_OUTPUT_DIR."""
    place = given or found.get("DATA_OUTPUT_DIR")
    if place is None or place.endswith(FILES) or os.path.isfile(place):
        return place
    return next(
        (path for name in TRAIN if os.path.isfile(path := os.path.join(place, name))), os.path.join(place, TRAIN[0])
    )


def validate(check: Check, found: dict[str, str]) -> None:
    count = len(found)
    function: Any = getattr(sys.modules["git_ignore"], "validate_paths", None)
    if function is None:
        check.ok(phrase("{count} {count:path|paths}; it has no validate_paths()", count=count))
        return
    result = function()
    if result is None or result is True or (result is not False and not result):
        check.ok(phrase("{count} {count:path|paths}, validate_paths() holds", count=count))
        return
    said = "" if result is False else str(result)
    check.fail(
        phrase("validate_paths() fails: {said}", said=said) if said else phrase("validate_paths() fails"),
        phrase("mend the paths in git_ignore.py, or in the host's table in uky-patch.toml"),
    )


sys.path.insert(0, ARGS["root"])
paths: dict[str, str] = {}
fix = phrase("mend git_ignore.py, or render it anew: uky-patch render git_ignore.py --write")
with Check("git_ignore.py", needed=False, fix=fix) as here:
    if os.path.exists(os.path.join(ARGS["root"], "git_ignore.py")):
        paths = constants()
        validate(here, paths)
    else:
        here.skip(phrase("this tree has none"))
paths = dict(ARGS["usual"], **paths)

with Check("data") as here:
    train = data_file(ARGS.get("data"), paths)
    model = ARGS.get("model") or next((paths[name] for name in MODELS if os.path.isdir(paths.get(name, ""))), None)
    values: dict[str, Any] = {"data": train, "model": model, "paths": paths}
    if train is None:
        here.warn(
            phrase("no data named: neither on the command line, nor for the host, nor in git_ignore.py"),
            phrase("name it with --data FILE"),
            **values,
        )
    elif not os.path.isfile(train):
        here.fail(
            phrase("{path}: no such file", path=train),
            phrase("copy the data there, or name it with --data FILE"),
            **values,
        )
    elif not os.access(train, os.R_OK):
        here.fail(phrase("{path} cannot be read", path=train), phrase("give this user the right to read it"), **values)
    else:
        size = os.path.getsize(train)
        here.ok(phrase("{path}, {size:,} {size:byte|bytes}", path=train, size=size), **values)
