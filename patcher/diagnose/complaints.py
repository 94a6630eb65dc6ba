"""Lines that report an error which is no exception, as launchers, compilers and native libraries print them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.evidence import LogLine
from patcher.diagnose.line_meaning import is_passed_on, is_tried
from patcher.logs.labels import strip_labels

_TOLD_BY_NCCL = re.compile(r"\bNCCL (?:INFO|TRACE) ")
"""What NCCL only tells: `NCCL INFO NET/Plugin: Plugin load returned 2 : … No such file or directory`."""


# An error without an exception: `srun: error: node7: task 3: Killed`, `train.sh: line 4: nosuch: command not found`.
_COMPLAINT = re.compile(
    r"(?:\S+(?: [a-z][\w-]*){0,2}: )?(?:fatal )?error: |srun: error"
    r"|ERROR: |E: |.*\b(?:command not found|No such file or directory)$"
    # `CUDA Error: invalid argument`, `[saver.cpp] CUresult error: 2 (out of memory)`, `nvcc fatal : …`, `make: *** …`
    r"|(?:\[[\w.]+\] )?(?:API|CUDA|CUresult|cuDNN|HCCL|HIP|NCCL|NVML|Parser|UCX|nvlink|linker|syntax) error ?:? \S"
    r"|nvcc fatal *: |[a-z]+: \*\*\* "
    # A server's answer: `{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"KettleError(3): no water`.
    r'|\{.{0,200}"type": ?"abort", ?"message": ?"[^"]*(?:\w(?:Error|Exception)\b|\bfail)',
    re.IGNORECASE,
)
# Errors that native programs print in forms of their own: of Ascend `[Error]: …`, `EE1002: …`, `ERR02200 …` and
# `runtime result = 507046`, of nccl-tests `node7: Test CUDA failure common.cu:941 'invalid device ordinal'`, of Open
# MPI's daemons, of Microsoft's compiler `launcher.c(12): error C2059: syntax error: '}'`, and of gcc, clang and hipcc
# `bed.hip:27:33: error: no member named 'dig' in namespace 'farm'`.
_NATIVE = re.compile(
    r"\[Error\]: \S|E[A-Z]\d{4}: \S|(?:.* )?ERR\d{5} \S|.*\bruntime result = [1-9]\d*"
    r"|(?:\S+: )?Test (?:CUDA|NCCL) failure \S"
    r"|(?:ORTE|PRTE|PRRTE) has lost communication with a remote daemon"
    r"|\S[^()]{0,200}\(\d+\) ?: (?:fatal )?error [A-Z]{1,3}\d{4}: \S"
    r"|\S{1,300}:\d+:\d+: (?:fatal )?error: \S"
)
_LEVELS = ("ERROR", "CRITICAL", "FATAL")
_VALUE = re.compile(r"[\"'(]*[\w.]+ ?= ?\S+$")
"""A value that a program prints at a level of errors: `"device='cuda:2'"`."""
_ANSWERED = re.compile(
    r"\bobject='error' message=.{0,400}\bcode=4\d\d\b"
    r"|\b(?:Failed to (?:decode|parse)|Error in extracting) tool calls?\b"
)
"""What a server notes of a client's mistake, `Error with model object='error' message='…' code=404`, and an agent loop
of a model's: `Failed to decode tool call: Invalid \\escape`."""
_WARNED_BY_TENSORFLOW = re.compile(r"[\d:. -]{8,30}: W (?:tensorflow|external)/")
"""`2026-05-16 19:28:58.1: W tensorflow/…/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; …`."""
_WITHIN = re.compile(r".{1,70}?(?:[\s\[(|])(?:(?:ERROR|CRITICAL|FATAL)(?:[\]|:]| [A-Z])|E\] )")
"""A level behind text that is no label: `(worker_7) : wandb: ERROR …`, `[TensorRT-LLM][ERROR] …`, `[E] …`."""


def is_native_error(text: str) -> bool:
    """Whether a line is an error as Ascend's libraries and nccl-tests print it. Such errors end a run, also where
    explanations follow them."""
    return _NATIVE.match(text) is not None or _NATIVE.match(strip_labels(text).text) is not None


_CODED = re.compile(r"E[A-Z]\d{4}: (?!.*Inner Error)\S")
_CODED_WORDS = re.compile(r"\bE[A-Z]\d{4}(?:\): |: (?:[\d:. -]{10,} )?(?=.*\bReason: ))(?P<words>\S.*)")
"""`AclNN_Parameter_Error(EZ1001): The self tensor cannot be larger than 8 dimensions.`"""
_REASON = re.compile(r"(?P<what>\S[^\[]*?),? *\breason=\[(?P<why>[^\]]+)\]")


def native_cause(places: Sequence[LogLine]) -> LogLine | None:
    """Of errors as `is_native_error` knows them the one that says most: the first with a code of its own, else the
    first; None where there is none."""
    found = [place for place in places if is_native_error(place.text)]
    return next((place for place in found if _CODED.match(strip_labels(place.text).text)), found[0] if found else None)


def native_reason(text: str) -> str:
    """What Ascend's libraries say that a call failed for: `rtGetDevice execute failed: device id error`; "" for other
    lines."""
    found = _REASON.search(strip_labels(text).text)
    if found is not None:
        return f"{found['what'].strip()}: {found['why']}"
    coded = _CODED_WORDS.search(text)
    return coded["words"] if coded is not None else ""


def complaints(last: Sequence[LogLine]) -> tuple[LogLine, ...]:
    """Those of the last lines that report an error, except those of Ray's daemons and NCCL's notices.

    NCCL's warnings count where NCCL then gave up.
    """
    found = []
    gave_up = any(is_passed_on(place.text) for place in last)
    for place in last:
        stripped = strip_labels(place.text)
        if "raylet" in place.speaker or "(raylet)" in stripped.label or _TOLD_BY_NCCL.search(place.text):
            continue
        if _ANSWERED.search(place.text) or _WARNED_BY_TENSORFLOW.match(place.text) or is_tried(place.text):
            continue
        loud = (stripped.level in _LEVELS and not _VALUE.match(stripped.text)) or (
            not stripped.level and _WITHIN.match(place.text)
        )
        native = is_native_error(place.text) and stripped.level not in ("DEBUG", "INFO", "WARNING")
        if loud or native or _COMPLAINT.match(stripped.text) or (gave_up and " NCCL WARN " in place.text):
            found.append(place)
    return tuple(found)
