"""What the log says, by the engine of `diagnose`, and what the stacks add to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from patcher.diagnose.diagnosis import Diagnosis, Finding, Offer
from patcher.diagnose.evidence import LogLine
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import FixContext, fixes_for, judge
from patcher.records.symptoms import Symptom
from patcher.watch.stacks.model import Process
from patcher.watch.stacks.symptoms import Seen, seen

NOWHERE = -1
"""The offset of what no log says, but a stack."""


def of_log(
    symptoms: Sequence[Symptom],
    files: Sequence[tuple[str, BinaryIO]],
    versions: Mapping[str, str],
    *,
    ended: bool | None,
    silent: bool | None,
) -> Diagnosis:
    """The diagnosis of a log. `silent`: whether it has said nothing for longer than it may."""
    scanner = Scanner(symptoms)
    evidence = scanner.scan(files)
    for _, stream in files:
        stream.close()
    log = files[-1][0] if files and Path(files[-1][0]).is_file() else ""
    found = judge(evidence, FixContext({**evidence.versions, **versions}, log=log), ended=ended, silent=silent)
    return replace(found, notes=scanner.notes)


def with_stacks(
    found: Diagnosis, symptoms: Sequence[Symptom], processes: Sequence[Process], odd: Sequence[int]
) -> Diagnosis:
    """The diagnosis of a stalled run with what its stacks show: they say better than its last words why it stands."""
    signs = seen(symptoms, processes, odd, found.versions)
    known = {sign.symptom.id for sign in signs}
    rest = [finding for finding in found.findings if finding.id not in known]
    fitting = FixContext(found.versions)
    shown = [_finding(sign, "root" if number == 0 else "cascade", fitting) for number, sign in enumerate(signs)]
    if shown:
        rest = [replace(finding, role="cascade") for finding in rest]
    return replace(found, findings=(*shown, *rest))


def _finding(sign: Seen, role: str, fitting: FixContext) -> Finding:
    rank = f" rank {sign.process.rank.number}" if sign.process.rank.number is not None else ""
    line = sign.frame.line if sign.frame is not None else 0
    place = LogLine(f"pid {sign.process.pid}{rank}", line, NOWHERE, sign.text)
    fixes = tuple(_of_process(offer, sign.process) for offer in fixes_for(sign.symptom, fitting))
    return Finding(sign.symptom, role, place, 1, fixes)  # type: ignore[arg-type]


def _of_process(offer: Offer, process: Process) -> Offer:
    """A fix whose commands name the process that showed the symptom where they say PID."""
    return replace(offer, commands=tuple(re.sub(r"\bPID\b", str(process.pid), one) for one in offer.commands))
