"""`python -m inside JOB`: answers the tasks of a job, a line of JSON each, the task's key first.

The job is {"first", "log", "tasks"}; a task is {"key", "paths", "import": [module, …]} or
{"key", "witness": [[key, claim], …]}. What is in "first" is imported once; each task runs in a process forked from
there. A module that cannot be imported ends its process, and those after it begin anew from what "first" left, so no
failure spoils another's import: what a module registers before it fails is registered twice when it is tried again. A
package that is not installed is taken to spoil nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inside.failures import failure
from inside.witnessing import Witness

LIMIT = 180
"""Seconds that one import or claim may take."""
Item = Any
Answer = list[Any]


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    out = os.fdopen(os.dup(1), "w", buffering=1)
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    warnings.simplefilter("ignore")
    for module in job["first"]:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    for task in job["tasks"]:
        started = time.monotonic()
        if "import" in task:
            found = in_turn(task["import"], lambda module, paths=task["paths"]: imported(module, paths), task["paths"])
        else:
            keys = [key for key, _ in task["witness"]]
            claims = dict(task["witness"])
            witness = Witness()
            found = in_turn(keys, lambda key, claims=claims, witness=witness: witness.answer(claims[key]), [])
        print(json.dumps([task["key"], found, time.monotonic() - started]), file=out)


def imported(module: str, paths: Sequence[str]) -> Answer:
    try:
        importlib.import_module(module)
    except BaseException as error:
        drop_orphans()
        return ["failed" if spoils(error) else "lacking", *failure(error, paths)]
    return ["imported"]


def drop_orphans() -> None:
    """Forget modules whose package could not be imported, though they could: alone, they cannot be had either."""
    for name in sorted(sys.modules):
        package = name.rpartition(".")[0]
        if package and name.startswith("verl.") and package not in sys.modules:
            del sys.modules[name]


def spoils(error: BaseException) -> bool:
    """Whether later imports could fare otherwise for it: not where a package is just not installed."""
    return not isinstance(error, ModuleNotFoundError) or str(error.name).partition(".")[0] in (
        "verl",
        "vllm",
        "transformers",
    )


def in_turn(items: Sequence[Item], action: Callable[[Any], Answer], paths: Sequence[str]) -> dict[str, Answer]:
    """Each item's answer."""
    found: dict[str, Answer] = {}
    while left := [item for item in items if item not in found]:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            sys.path[:0] = paths
            _answer(left, action, os.fdopen(writer, "w", buffering=1))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as lines:
            answers = [json.loads(line) for line in lines]
        found |= dict(answers)
        _, status = os.waitpid(child, 0)
        if status:
            found[left[len(answers)]] = ["failed", "", f"the interpreter ended: {_ended(status)}", ""]
    return found


def _answer(items: Sequence[Item], action: Callable[[Any], Answer], out: Any) -> None:
    for item in items:
        signal.alarm(LIMIT)
        answer = action(item)
        signal.alarm(0)
        print(json.dumps([item, answer]), file=out)
        if answer[0] == "failed":
            return


def _ended(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


if __name__ == "__main__":
    main()
