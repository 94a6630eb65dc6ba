"""What the end of a run adds to the diagnosis of its log: a signal, a log that ends without a word."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace

from patcher.diagnose.diagnosis import Diagnosis, Finding
from patcher.diagnose.evidence import LogLine
from patcher.diagnose.fixes import FixContext, fixes_for, versions_allow
from patcher.i18n import Phrase, phrase
from patcher.logs.milestones import phase_name
from patcher.records.symptoms import Symptom

NOWHERE = -1
"""The offset of a finding that is on no line of the log."""
_RECORDS = {
    signal.SIGKILL: "process-killed",
    signal.SIGTERM: "terminated-by-signal",
    signal.SIGHUP: "terminated-by-signal",
    signal.SIGSEGV: "segmentation-fault",
    signal.SIGBUS: "shm-bus-error",
}
"""The records of signals before which a program says nothing of them."""
_UNTOLD = (*_RECORDS, signal.SIGINT)


def signal_of(code: int) -> signal.Signals | None:
    """The signal that an exit code tells of: -9 as a parent process sees it, and 137 as a shell tells it."""
    try:
        return signal.Signals(-code if code < 0 else code - 128)
    except ValueError:
        return None


def how_ended(code: int) -> Phrase:
    """What an exit code means, in the words that all commands use."""
    ended_by = signal_of(code)
    if ended_by is signal.SIGKILL:
        return phrase("killed (SIGKILL: often the kernel, out of memory)")
    if ended_by is not None:
        return phrase("ended by {signal}", signal=ended_by.name)
    return phrase("exit code {code}", code=code)


def last_words_tell(code: int | None, *, stopped: bool) -> bool:
    """Whether what a run said last may be why it ended: not where somebody stopped it, where a signal ended it in the
    midst of its work, or where nobody noted how it ended."""
    return not stopped and code is not None and signal_of(code) not in _UNTOLD


def add_signal(found: Diagnosis, symptoms: Sequence[Symptom], code: int | None, where: str) -> Diagnosis:
    """The diagnosis of a run that a signal ended, with the record of that signal as its root, if its log names none.

    `where`: what the finding names instead of a line of the log.
    """
    number = signal_of(code) if code is not None else None
    if found.root is not None or code is None or number is None:
        return found
    record = next((one for one in symptoms if one.id == _RECORDS.get(number)), None)
    if record is None or not versions_allow(record.when, found.versions):
        return found
    place = LogLine(where, 0, NOWHERE, str(how_ended(code)), "")
    fixes = fixes_for(record, FixContext(found.versions), place.text)
    return replace(found, findings=(Finding(record, "root", place, fixes=fixes), *found.findings))


def silent_end(found: Diagnosis) -> Phrase:
    """Where the log of a run ends that says nothing of why."""
    if found.step is not None:
        return phrase("its log ends after step {step}, without a word on why", step=found.step)
    if found.phase is not None:
        return phrase("its log ends in phase {phase}, without a word on why", phase=phase_name(found.phase))
    return phrase("its log ends without a word on why") if found.lines else phrase("its log is empty, or not known")
