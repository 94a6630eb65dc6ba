"""Lines that report the end of a process or of a run: which end it is, and whether a fault of its own was the cause."""

from __future__ import annotations

import re
from typing import Literal

from patcher.logs.labels import strip_labels

How = Literal["done", "closed", "killed", "failed"]
"""`done`: the run has ended; `closed`: a part of it has ended well; `killed`: a signal ended a process; `failed`: the
exit status of a process was not 0."""


# A word that the line holds in lower case, the pattern, and what the end is.
_ENDINGS: tuple[tuple[str, str, How], ...] = (
    ("final validation metrics", r"^[('\"]*Final validation metrics", "done"),
    ("train_runtime", r"^\{'train_runtime': ", "done"),
    *(
        (f"training {words}", rf"(?:^\W*|\] )(?:the )?training {words}\b(?! to| for| of| or)", "done")
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
    # Scripts after those of DETR and MAE: `Training time 1:02:03`.
    ("training time", r"^Training time:? (?:\d+ days?, )?\d+:\d\d:\d\d\W*$", "done"),
    ("succeeded", r"^Job '\S+' succeeded\W*$", "done"),
    ("finished training", r"^\W*finished training\b", "done"),
    ("successfully installed", r"^Successfully installed \S", "closed"),
    # The table of lm-eval's results, and the last lines of nccl-tests.
    ("|version|", r"^\|\s*(?:Tasks?|Groups?)\s*\|\s*Version\s*\|", "closed"),
    ("avg bus bandwidth", r"^#\s*Avg bus bandwidth\s*:", "closed"),
    ("out of bounds values", r"^#\s*Out of bounds values\s*:\s*[1-9]\d*\s+FAILED", "failed"),
    # The table of vLLM's and SGLang's serving benchmark.
    ("serving benchmark result", r"^=+ Serving Benchmark Result =+", "closed"),
    # LSF's of a job, and HTCondor's.
    ("successfully completed", r"^Successfully completed\.$", "done"),
    ("exited with exit code", r"^Exited with exit code [1-9]\d{0,2}\.$", "failed"),
    ("normal termination", r"\bNormal termination \(return value 0\)", "done"),
    # Lightning: "`Trainer.fit` stopped: `max_steps=5000` reached." A test may follow.
    ("trainer.fit` stopped", r"`Trainer\.fit` stopped: `max_\w+=\S+` reached", "closed"),
    ("end of training", r"^End of training\W*$", "done"),
    # wandb's last lines, and pytest's.
    ("synced ", r"^wandb: Synced \d+ W&B file", "closed"),
    (" passed", r"^=+ (?:\d+ (?:passed|skipped|deselected|xfailed|warnings?)(?:, )?)+ in [\d.]+s", "closed"),
    ("pipeline complete", r"^\W*pipeline complete!?\W*$", "done"),
    ("application shutdown complete", r"Application shutdown complete", "closed"),
    ("exit", r"\bexit(?:ed)?(?: with)?(?: status| code|code)?\s*[:=]?\s*0\b(?!\.)", "closed"),
    (
        "killed",
        r"^(?:\S+: line \d+: +\d+ |\[\d+\][+-]? +(?:\d+ )?)?Killed(?:$| +\S)(?!.* by user)"
        r"|\bwas killed by (?:signal|the OOM|SIGKILL)"
        r"|^(?:Memory cgroup )?out of memory: Killed process|\(OOM\) killed|^oom-kill",
        "killed",
    ),
    ("core dumped", r"\(core dumped\)", "killed"),
    ("segmentation fault", r"^(?:\S+: line \d+: +\d+ )?Segmentation fault|Fatal Python error: Segmentation", "killed"),
    ("segfault encountered", r"^!+ *Segfault encountered", "killed"),
    ("bus error", r"^(?:\S+: line \d+: +\d+ )?Bus error|Fatal Python error: Bus", "killed"),
    ("aborted", r"^(?:\S+: line \d+: +\d+ )?Aborted(?: |$)|Fatal Python error: Aborted", "killed"),
    ("illegal instruction", r"^(?:\S+: line \d+: +\d+ )?Illegal instruction", "killed"),
    ("floating point exception", r"^(?:\S+: line \d+: +\d+ )?Floating point exception", "killed"),
    ("fatal python error", r"^Fatal Python error: ", "killed"),
    ("terminate called", r"^terminate called (?:after throwing|without an active)", "killed"),
    ("terminating with uncaught", r"^(?:[\w+.]+: )?terminating with uncaught (?:foreign )?exception\b", "killed"),
    ("terminating due to uncaught", r"^(?:[\w+.]+: )?terminating due to uncaught exception\b", "killed"),
    ("received at time", r"^\*\*\* SIG[A-Z]+ received at time=", "killed"),
    ("stacktrace information", r"^\W*StackTrace Information \*\*\*", "killed"),
    ("check failure stack trace", r"^\*\*\* Check failure stack trace: \*\*\*", "killed"),
    ("panicked at", r"^thread '.*' (?:\(\d+\) )?panicked at ", "killed"),
    (
        ") received by pid",
        r"\bSignal \d+ \(SIG\w+\) received by PID|^\*\*\* SIG[A-Z]+ \(@0x\w+\) received by PID",
        "killed",
    ),
    ("killing subprocess", r"^Killing subprocess \d+$", "failed"),
    ("died with <signals.sig", r"\bdied with <Signals\.SIG", "killed"),
    # Open MPI: `[node7:00081] Signal: Aborted (6)`
    ("signal: ", r"^Signal: [A-Z][\w ]{2,40} \(\d+\)$", "killed"),
    ("signal", r"\b(?:terminated|killed|exited|died|crashed) (?:by|with|due to|from) signal:? ?\S", "killed"),
    (
        "exit",
        r"\bexit(?:ed|s)?(?:[ _]?(?:with|return|code|status|exit|non-zero|a))*\s*[:=]?\s*-?[1-9]\d{0,2}\b(?![.\w])"
        r"|^srun: error: .*: Exited with exit code",
        "failed",
    ),
    ("srun: error", r"^srun: error: .*: (?:Out Of Memory|Killed|Terminated)", "killed"),
)
ENDING_WORDS = tuple(dict.fromkeys(word for word, _, _ in _ENDINGS))
_ENDING_PATTERNS = [(word, re.compile(pattern, re.IGNORECASE), how) for word, pattern, how in _ENDINGS]
# Lines that only mention an exit: `will exit with code 1 if …`, `os._exit(1)` in a line of code, `--exit-code 2`.
_HARMLESS = re.compile(
    r"(?:if|when|should|would|will|to|on|may) (?:\w+ )?exit|exit code (?:of|is)|--[\w-]*exit|sys\.exit|os\._exit",
    re.IGNORECASE,
)


UNCAUGHT = ("terminating with uncaught", "terminating due to uncaught")
"""Words of the line with which libc++ tells the exception that nothing caught, and its message."""
STACK_WORDS = ("stacktrace information", "check failure stack trace")
"""Words of the line above a stack of C++. What the process aborted for is said on the line before it."""


def ending_of(text: str, level: str, word: str) -> How | None:
    """Which end a line reports, given the word that it holds; None for no end. The line comes without labels."""
    for own, pattern, how in _ENDING_PATTERNS:
        if own == word and pattern.search(text):
            spoken_of = word in ("exit", "signal") and how != "closed" and (level == "DEBUG" or _HARMLESS.search(text))
            return None if spoken_of else how
    return None


_CRASH = re.compile(
    r"segmentation fault|\bsegfault\b|\bSIG(?:SEGV|ABRT|BUS|ILL|FPE)\b|^(?:\S+: line \d+: +\d+ )?(?:Bus error|Aborted\b"
    r"|Illegal instruction|Floating point exception)|\(core dumped\)|Fatal Python error"
    r"|\b(?:exitcode|exit code)\s*:\s*-(?:4|6|7|8|11)\b|\bsignal (?:4|6|7|8|11)\b",
    re.IGNORECASE,
)


def is_crash(text: str) -> bool:
    """Whether a line says that a signal of its own fault ended a process, which tells nothing of what it did."""
    return _CRASH.search(strip_labels(text).text) is not None
