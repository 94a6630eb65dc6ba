"""Exceptions by their names: what carries another, what only comes of another's end, and what is noise."""

from __future__ import annotations

import re

from patcher.diagnose.evidence import Nature

ALONE = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout|Failure|OOM|Unsupported|NotFound|Expired))"
    r"(?P<of>\([\w.]+\))?(?::(?=\s|$)|$)"
)
"""An exception at the beginning of a line, known by its name alone."""
ENDING = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\.(?:\w+|<locals>))*)(?P<of>\([\w.]+\))?(?::(?=\s|$)|$)")
"""The line that ends a traceback, whatever the exception is called."""

_WRAPPERS = (
    *("RayTaskError", "ChildFailedError", "CalledProcessError", "ExceptionGroup", "ProcessRaisedException"),
    *("ProcessExitedException", "InstantiationException", "RemoteTraceback", "SystemExit", "WorkerCrashedError"),
)
_EFFECTS = (
    *("RayActorError", "ActorDiedError", "ActorUnavailableError", "EngineDeadError", "BrokenProcessPool"),
    *("BrokenPipeError", "ConnectionResetError", "EOFError", "CancelledError", "DistNetworkError", "DistBackendError"),
    *("OwnerDiedError", "ReferenceCountingAssertionError", "LocalRayletDiedError", "NodeDiedError"),
)
_CARRIED = re.compile(
    r"Caught \w+ in |Engine core initialization failed|Engine process failed to start|WorkerProc initialization failed"
    r"|EngineCore encountered an issue|Engine loop has died"
)
_IGNORED = re.compile(
    r"Exception ignored (?:in|on|while)|Error in atexit|Error in sys\.excepthook|--- Logging error ---"
    r"|Exception in thread .*(?:MsgRouterThr|NetStatThr|ChkStopThr|wandb)"
)
_SOFT = re.compile(
    r"fail|error|except|could not|couldn't|cannot|can't|unable|skip|ignor|fall(?:ing)?[ -]?back"
    r"|not (?:found|available)",
    re.IGNORECASE,
)


def nature(name: str, of: str | None, text: str) -> Nature:
    """What an exception of this name is to others."""
    last = name.rpartition(".")[2]
    if of or last in _WRAPPERS or last.endswith("CalledProcessError") or _CARRIED.search(text):
        return "wrapper"
    return "effect" if last in _EFFECTS else "exception"


def shrugged(level: str, before: str, before_level: str) -> bool:
    """Whether a traceback was only told of: by its own level, or by what its speaker said right before it."""
    if level in ("DEBUG", "INFO", "WARNING") or _IGNORED.match(before):
        return True
    return before_level in ("DEBUG", "INFO", "WARNING") and _SOFT.search(before) is not None


_MUTE = ("assertionerror", "notimplementederror", "memoryerror")
"""Often raised without a message: where a log begins within the traceback, this line is all that there is."""
NEEDLES = (
    *("error:", "exception:", "interrupt:", "timeout:", "failure:", "notfound:", "expired:", "unsupported:"),
    *_MUTE,
)
"""Words that lines with an exception hold."""
