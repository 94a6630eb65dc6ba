"""What a command can end with other than its result, and what an exception says in the reader's language.

Mistakes of the user or the machine are raised as one of these. Anything else that is raised is a bug of ours; it
becomes a BugError in `patcher.cli.ending`, so that it is never taken for findings.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from patcher import messages
from patcher.i18n import Phrase, Phrases


class ExitCode(IntEnum):
    """The exit codes of the command line. Scripts rely on them."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    NOT_APPLIED = 3
    BAD_RECORD = 4
    WORLD = 5
    BUG = 70
    INTERRUPTED = 130


class UkyError(Exception):
    """What went wrong, where and why, and what to do next."""

    exit_code: ClassVar[ExitCode] = ExitCode.WORLD

    def __init__(
        self, title: str | Phrase, *, cause: str | Phrase | Phrases = "", advice: str | Phrase | Phrases = ""
    ) -> None:
        super().__init__(str(title))
        self.title = title
        self.cause = cause
        self.advice = advice

    def __str__(self) -> str:
        return "\n  ".join(str(part) for part in (self.title, self.cause, self.advice) if part)


class UsageError(UkyError):
    """The command line asks for something invalid."""

    exit_code = ExitCode.USAGE


class RecordError(UkyError):
    """A record, template, profile or `uky-patch.toml` is wrong."""

    exit_code = ExitCode.BAD_RECORD


class TreeError(UkyError):
    """The tree cannot be read, locked or written."""


class EnvironmentProbeError(UkyError):
    """An interpreter or what is installed under it cannot be read."""


class ReleaseError(UkyError):
    """The sources of a release cannot be had."""


class HostError(UkyError):
    """A host cannot be reached, or refuses what is asked of it."""


class UnreachableError(HostError):
    """A host does not answer. It may do so later."""


class UnknownHostError(UnreachableError):
    """Nobody knows a host of this name, or the network that would know it is down."""


class LoginError(HostError):
    """A host lets nobody in until a person has done something: its key, the login, ssh's configuration."""


class CutError(HostError):
    """The connection ended before the answer came. What was asked may have been done, and can be asked again."""


class MachineError(UkyError):
    """The machine refuses something that any command needs: a folder, a file, a process."""


class OutputError(UkyError):
    """Standard output cannot be written."""


class InterruptedByUserError(UkyError):
    """Ctrl-C, or no answer to a question."""

    exit_code = ExitCode.INTERRUPTED


class BugError(UkyError):
    """A bug of uky-patch. It is reported in one line."""

    exit_code = ExitCode.BUG


def message_of(error: BaseException) -> Phrase | Phrases | str:
    """What an exception says, with its translatable parts apart; plain text where it has none.

    `str()` of it is what `str()` of the exception is.
    """
    if isinstance(error, UkyError):
        return Phrases((error.title, error.cause, error.advice), "\n  ")
    if len(error.args) == 1 and isinstance(error.args[0], Phrase | Phrases):
        return error.args[0]
    from patcher.i18n.codec import decode  # Not at the top: commands that go well have no error to tell.

    message = messages.translatable(error)
    return str(error) if message is None else decode(message)
