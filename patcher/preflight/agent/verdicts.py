"""Verdicts for what a check program could not tell itself: timeout, crash, signal, exit code, an engine that did not
start.

vLLM starts processes of its own, and each repeats the error of the one below: the first error in their output that is
no consequence of another is the cause.
"""

from __future__ import annotations

import re
import signal
from typing import Any, Dict

from patcher.messages import Message, phrase, why

_LINE_PREFIX = r"(?:\([^)]*pid=\d+\)\s*)?(?:ERROR\s[\d: -]*(?:\[[^\]]*\])?\s*)?"
"""What each process of vLLM writes before a line."""
_ENGINE_ERROR = re.compile(rf"^{_LINE_PREFIX}(?P<message>[A-Za-z_][\w.]*(?:Error|Exception): .+)$")
_FOLLOWS = ("Engine core initialization failed", "WorkerProc initialization failed", "Worker failed with error")
"""What the processes above say when one below has failed."""
_LONGEST = 400
"""Characters of an error that a verdict shows: a line or two of a terminal, and what pip or CUDA say in full."""


def first_error(output: str) -> str:
    """The first error that is no consequence of another, on one line; empty where there is none."""
    for line in output.splitlines():
        found = _ENGINE_ERROR.match(line.strip())
        if found and not any(text in line for text in _FOLLOWS):
            return _cut(" ".join(found["message"].split()))
    return ""


def error_in(output: str) -> str:
    """The last words of the last error in a program's output, one line; else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = [match["message"] for line in lines if (match := _ERROR.match(line))]
    return _cut((found or lines or [""])[-1])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


_FIXES = (
    (
        r"(Free|Available) memory on|out of memory|No available memory",
        phrase("somebody else holds memory of the GPU: nvidia-smi shows who; end that, or wait"),
    ),
    (r"trust_remote_code", phrase("allow the model's own code: actor_rollout_ref.model.trust_remote_code=True")),
    (
        r"[Mm]odel architectures|not supported for now|does not recognize this architecture",
        phrase("this vLLM does not know the model: take a newer vLLM, or another model"),
    ),
    (r"-lcuda|libcuda|gcc|CalledProcessError", phrase("see the check triton: what it compiles at the start fails")),
    (r"size of tensor|size mismatch|shape|safetensors", phrase("fetch the model again: its files do not agree")),
)
"""What the engine's first error matches, and what to do then; the first that matches counts."""


def fix_of(words: str) -> Message:
    """What to do about an engine's error."""
    for pattern, fix in _FIXES:
        if re.search(pattern, words):
            return fix
    return phrase("for more of what it says: VLLM_LOGGING_LEVEL=DEBUG in the host's env")


Verdict = Dict[str, Any]
_ERROR = re.compile(r"^(?P<message>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit): .+)$")


def _verdict(status: str, detail: Message, fix: Message | None = None) -> Verdict:
    return {"status": status, "detail": detail, "fix": fix, "values": {}}


def verdict_of_message(message: Verdict, output: str) -> Verdict:
    """A verdict as the program gave it; where it points at its output, with the first error there."""
    values = message.get("values") or {}
    detail, fix = message["detail"], message["fix"]
    if values.pop("look_into_output", False):
        words = first_error(output)
        detail = phrase("{message}", message=words) if words else detail
        fix = fix_of(words)
    found = _verdict(message["status"], detail, fix)
    return dict(found, name=message["check"], seconds=message["seconds"], values=values)


def verdict_of_overtime(budget: float, at_work: bool, stack: str, output: str = "") -> Verdict:
    """The budget is spent. Where the engine waits for its own process that failed, that failure is the cause."""
    if words := first_error(output):
        return _verdict("fail", phrase("{message}", message=words), fix_of(words))
    given = {"seconds": f"{budget:g}", "place": stack}
    if at_work:
        detail = phrase("slow: still at work after {seconds} s", seconds=given["seconds"])
        if stack:
            detail = phrase("slow: still at work after {seconds} s, at {place}", **given)
        fix = phrase("run it again: what was read is cached now; or give it longer with --budget")
        return _verdict("warn", detail, fix)
    detail = phrase("hangs: nothing done any more after {seconds} s", seconds=given["seconds"])
    if stack:
        detail = phrase("hangs: nothing done any more after {seconds} s, at {place}", **given)
    fix = phrase("look at that line: it waits for a lock, a network or a file system that does not answer")
    return _verdict("fail", detail, fix)


def verdict_of_exit(code: int, stack: str, output: str) -> Verdict:
    """A process that ended before it had reported all. `code` is negative for a signal."""
    if code == 0 and not stack:
        return _verdict("fail", phrase("ended without a word, with exit code 0"))
    last = error_in(output)
    if code >= 0:
        detail = phrase("ended with exit code {code}", code=code)
        if last:
            detail = phrase("ended with exit code {code}: {message}", code=code, message=last)
        return _verdict("fail", detail)
    name = _signal(-code)
    detail = phrase("killed by {signal}", signal=name)
    if stack:
        detail = phrase("killed by {signal} at {place}", signal=name, place=stack)
    elif last:
        detail = phrase("killed by {signal}: {message}", signal=name, message=last)
    fix = phrase("a compiled part does not fit this machine or another package: install matching versions")
    if -code == signal.SIGKILL:
        fix = phrase("the machine ran out of memory: see dmesg, and the limit of the container")
    return _verdict("fail", detail, fix)


def not_started(python: str, error: OSError) -> Verdict:
    """The interpreter itself cannot be started."""
    detail = phrase("{python} does not start: {why}", python=python, why=why(error))
    return _verdict("fail", detail, phrase("name the interpreter that trains"))


def not_reached(name: str, before: Verdict | None) -> Verdict:
    """A check whose turn did not come. `before` is what ended the program, None where one of its checks had failed."""
    slow = before is not None and before["status"] == "warn"
    detail = phrase("not reached in time") if slow else phrase("not reached: what it needs has failed")
    return dict(_verdict("skip", detail), name=name, seconds=0.0)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
