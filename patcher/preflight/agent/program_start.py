"""What a check program's interpreter runs first; sent as source with `JOB` set before it. Ends with its own verdicts.

Standard output becomes the stream of verdicts, and what anything else prints goes to standard error. A crash leaves its
stack among the verdicts, and so does a process that is asked for it by SIGUSR1.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib.abc
import importlib.util
import linecache
import os
import signal
import sys
from typing import Any

JOB: dict[str, Any] = globals().get("JOB", {})
OVERTIME = 15
"""Seconds after the end of the budget at which the kernel ends the process, should nobody else have done so."""
_PARENT_DEATH = 1
"""PR_SET_PDEATHSIG: the kernel ends this process when the one that started it ends."""


class Sent(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports what came along."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        if name in JOB["sources"]:
            return importlib.util.spec_from_loader(name, self, is_package=not JOB["sources"][name])
        return None

    def get_source(self, name: str) -> str:
        return str(JOB["sources"][name])

    def exec_module(self, module: Any) -> None:
        run(self.get_source(module.__name__), f"<{module.__name__}>", module.__dict__)


def run(source: str, where: str, names: dict[str, Any]) -> None:
    """Run source text so that tracebacks show its lines."""
    linecache.cache[where] = (len(source), None, source.splitlines(True), where)
    exec(compile(source, where, "exec"), names)  # noqa: S102


def main() -> None:
    """Read the job, run its parts one after another, and tell that all is done."""
    verdicts = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
    except (OSError, AttributeError):
        pass
    signal.alarm(int(JOB["budget"]) + OVERTIME)
    faulthandler.enable(file=verdicts)
    faulthandler.register(signal.SIGUSR1, file=verdicts, all_threads=False)
    gc.disable()  # thousands of modules are imported, and none is let go: a fifth of the time is spent on looking
    sys.meta_path.insert(0, Sent())
    report = importlib.import_module("patcher.preflight.agent.check_report")
    report.ARGS.update(JOB["args"])
    report.STREAM["verdicts"] = verdicts
    names = sys.modules["__main__"].__dict__
    try:
        for part in JOB["parts"]:
            run(JOB["sources"][JOB["modules"][part]], f"<check {part}>", names)
            names["check_" + part]()
    except report.StopHere:
        pass
    report.say({"done": True})


if JOB:
    main()
