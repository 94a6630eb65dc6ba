"""Diagnose a log: what it is read from, the symptoms, and the versions that decide which fix counts."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from patcher.diagnosis.fixing import Fitting
from patcher.diagnosis.judging import judge
from patcher.diagnosis.model import Diagnosis
from patcher.diagnosis.scanning import Scanner
from patcher.errors import UsageError
from patcher.language import phrase
from patcher.records.symptom_parse import load_symptoms

if TYPE_CHECKING:
    from patcher.session import Session


def diagnose(session: Session, log: str) -> Diagnosis:
    """What a file, a folder of Ray's worker logs or standard input (`-`) says. Raises UsageError, RecordError."""
    scanner = Scanner(load_symptoms())
    with ExitStack() as stack:
        evidence = scanner.scan([(name, stack.enter_context(_opened(name))) for name in _files(log)])
    return judge(evidence, Fitting({**evidence.versions, **session.assume}))


def _files(log: str) -> list[str]:
    if log == "-":
        return [log]
    path = Path(log)
    if path.is_dir():
        return [str(one) for one in sorted(path.rglob("*")) if one.suffix in (".log", ".out", ".err") and one.is_file()]
    if not path.exists():
        raise UsageError(phrase("there is no log at {path}", path=path))
    return [log]


def _opened(name: str) -> BinaryIO:
    return sys.stdin.buffer if name == "-" else Path(name).open("rb")
