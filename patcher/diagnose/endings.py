"""How a run says that it has ended: done, or by a signal or an exit code without a traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

How = Literal["done", "closed", "killed"]
"""`done`: whatever comes behind is no failure; `closed`: a part has come to its end; `killed`: a process has failed."""


@dataclass(frozen=True, slots=True)
class _Ending:
    needle: str
    pattern: str
    how: How


_ENDINGS = (
    _Ending("final validation metrics", r"^[('\"]*Final validation metrics", "done"),
    _Ending("train_runtime", r"^\{'train_runtime': ", "done"),
    *(
        _Ending(f"training {words}", rf"^\W*(?:the )?training {words}\b(?! to)", "done")
        for words in (
            "complete",
            "completed",
            "finished",
            "done",
            "is complete",
            "is done",
            "has finished",
            "has completed",
        )
    ),
    _Ending("finished training", r"^\W*finished training\b", "done"),
    _Ending("successfully installed", r"^Successfully installed \S", "closed"),
    _Ending("application shutdown complete", r"Application shutdown complete", "closed"),
    _Ending("exit", r"\bexit(?:ed)?(?: with)?(?: status| code|code)?\s*[:=]?\s*0\b(?!\.)", "closed"),
    _Ending(
        "killed",
        r"^(?:\S+: line \d+: +\d+ |\[\d+\][+-]? +(?:\d+ )?)?Killed(?:$| +\S)(?!.* by user)"
        r"|\bwas killed by (?:signal|the OOM|SIGKILL)"
        r"|^(?:Memory cgroup )?out of memory: Killed process|\(OOM\) killed|^oom-kill",
        "killed",
    ),
    _Ending(
        "core dumped",
        r"\(core dumped\)",
        "killed",
    ),
    _Ending(
        "segmentation fault", r"^(?:\S+: line \d+: +\d+ )?Segmentation fault|Fatal Python error: Segmentation", "killed"
    ),
    _Ending("segfault encountered", r"^!+ *Segfault encountered", "killed"),
    _Ending("bus error", r"^(?:\S+: line \d+: +\d+ )?Bus error|Fatal Python error: Bus", "killed"),
    _Ending("aborted", r"^(?:\S+: line \d+: +\d+ )?Aborted(?: |$)|Fatal Python error: Aborted", "killed"),
    _Ending("illegal instruction", r"^(?:\S+: line \d+: +\d+ )?Illegal instruction", "killed"),
    _Ending("floating point exception", r"^(?:\S+: line \d+: +\d+ )?Floating point exception", "killed"),
    _Ending("fatal python error", r"^Fatal Python error: ", "killed"),
    _Ending("terminate called", r"^terminate called (?:after throwing|without an active)", "killed"),
    _Ending("received at time", r"^\*\*\* SIG[A-Z]+ received at time=", "killed"),
    _Ending("panicked at", r"^thread '.*' (?:\(\d+\) )?panicked at ", "killed"),
    _Ending(") received by pid", r"\bSignal \d+ \(SIG\w+\) received by PID", "killed"),
    _Ending("died with <signals.sig", r"\bdied with <Signals\.SIG", "killed"),
    _Ending("signal", r"\b(?:terminated|killed|exited|died|crashed) (?:by|with|due to|from) signal:? ?\S", "killed"),
    _Ending(
        "exit",
        r"\bexit(?:ed)?(?:[ _]?(?:with|code|status|exit|non-zero|a))*\s*[:=]?\s*-?[1-9]\d{0,2}\b(?![.\w])"
        r"|^srun: error: .*: Exited with exit code|^srun: error: .*: (?:Out Of Memory|Killed|Terminated)",
        "killed",
    ),
)
NEEDLES = tuple(dict.fromkeys(ending.needle for ending in _ENDINGS))
_PATTERNS = [(ending.needle, re.compile(ending.pattern, re.IGNORECASE), ending.how) for ending in _ENDINGS]
_HARMLESS = re.compile(
    r"(?:if|when|should|would|will|to|on|may) (?:\w+ )?exit|exit code (?:of|is)|--|sys\.exit|os\._exit", re.IGNORECASE
)


def ending(text: str, level: str, needle: str) -> How | None:
    """What a line, without its labels, says of an end; None for nothing."""
    for own, pattern, how in _PATTERNS:
        if own == needle and pattern.search(text):
            if how == "killed" and needle in ("exit", "signal") and (level == "DEBUG" or _HARMLESS.search(text)):
                return None
            return how
    return None
