"""Which error and exit code a command ends with, whatever was raised: mistakes of usage, Ctrl-C, the machine's errors,
bugs.

It also serves the entry point while the command line itself is imported, so it needs nothing but the standard library
and `patcher.errors` until there is something to tell.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from patcher.errors import BugError, ExitCode, InterruptedByUserError, MachineError, UkyError, UsageError
from patcher.i18n import language, listed, phrase, show
from patcher.interrupt import asks_for_json

if TYPE_CHECKING:
    from patcher.terminal.answers import Report

TRACEBACK = "UKY_PATCH_TRACEBACK"
"""Where this variable is set, a bug's traceback is shown at once and no file is written: for work on uky-patch."""

met: list[BaseException] = []
"""Bugs that were met where nothing could be raised: in threads, and while the process ended."""


def watch() -> None:
    """Have bugs in threads and in what runs at the end noted too, instead of printed."""
    import threading

    threading.excepthook = lambda args: _meet(args.exc_value)
    sys.unraisablehook = lambda args: _meet(args.exc_value)


def _meet(error: BaseException | None) -> None:
    """A bug where nothing can be raised. A pipe or file that fails as it is thrown away is none."""
    if error is None or isinstance(error, KeyboardInterrupt | SystemExit | OSError):
        return
    met.append(error)
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error)
    elif len(met) == 1:
        tell(bug(error))


def as_error(error: BaseException) -> UkyError:
    """The error of the contract for whatever was raised. A bug's traceback has been written when this returns.

    Raises the bug itself where `UKY_PATCH_TRACEBACK` is set.
    """
    click = sys.modules.get("click")
    if isinstance(error, UkyError):
        return error
    if click is not None and isinstance(error, click.ClickException):
        return _usage(error)
    if _was_interrupted(error) or (click is not None and isinstance(error, click.Abort)):
        return InterruptedByUserError("interrupted")
    # An OSError of a library, without a number, was not raised by the operating system: it is a bug.
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return _machine(error)
    if os.environ.get(TRACEBACK):
        raise error
    return bug(error)


def bug(error: BaseException) -> BugError:
    """Write the traceback where only this user can read it, and say where."""
    import shlex

    from patcher.cli.bug import place_of, write

    place, file = place_of(error), write(error)
    if file is None:
        cause = phrase("{kind} at {place}; its traceback could not be written anywhere", kind=place[0], place=place[1])
        advice = phrase("Please report it with: {command}", command="uky-patch bundle")
    else:
        cause = phrase("{kind} at {place}; its traceback is in {file}", kind=place[0], place=place[1], file=file)
        advice = phrase("Please report it with: {command}", command=f"uky-patch bundle {shlex.quote(file)}")
    return BugError(phrase("this is a bug of uky-patch"), cause=cause, advice=advice)


def unexpected(error: BaseException) -> int:
    """Tell what was raised outside of a command, and give its exit code. It never raises."""
    try:
        try:
            found = as_error(error)
        except BaseException as raised:
            import traceback

            traceback.print_exception(raised)
            return ExitCode.BUG
        tell(found)
        if asks_for_json(sys.argv[1:]) and sys.stdout is not None:
            from patcher.secrets.redacting import here
            from patcher.terminal.answers import encoded

            # This is outside of a command, where nothing has put itself before standard output yet.
            sys.stdout.write(here().text(encoded(error_report(found))))
            sys.stdout.flush()
        return found.exit_code
    except BaseException:
        return error.exit_code if isinstance(error, UkyError) else ExitCode.BUG


def tell(error: UkyError) -> None:
    """Title, cause and advice on standard error, in the reader's language; a bug on one line."""
    from patcher.terminal.printing import say
    from patcher.terminal.sequences import style

    tongue = language()
    label = style(show("error", tongue), "red", bold=True)
    head = f"{label}: {show(error.title, tongue)}"
    parts = [show(part, tongue) for part in (error.cause, error.advice) if part]
    if isinstance(error, InterruptedByUserError):
        above = [""] if sys.stderr.isatty() else []  # The terminal has shown ^C on a line that has not ended.
        say(*above, show(error.title, tongue), err=True)
    elif isinstance(error, BugError):
        say("; ".join([head, *parts]), err=True)
    else:
        lines = [line for part in parts for line in part.split("\n") if line]
        say(head, *(line if line.startswith("  ") else f"  {line}" for line in lines), err=True)


def error_report(error: UkyError) -> Report:
    """The same for programs, in English."""
    texts = {"title": error.title, "cause": error.cause, "advice": error.advice}
    return {"error": {**{name: str(part) for name, part in texts.items()}, "code": int(error.exit_code)}}


def _usage(error: BaseException) -> UsageError:
    """An error of click's own, which it words itself."""
    from patcher.cli.mistakes import worded

    message = worded(error.format_message() if hasattr(error, "format_message") else str(error))
    context = getattr(error, "ctx", None)
    if context is None:
        return UsageError(message)
    return UsageError(message, advice=phrase("See: {command}", command=f"{context.command_path} --help"))


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether it is a Ctrl-C, or was raised because of one: Python wraps what is raised while a class is made."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _machine(error: OSError) -> MachineError:
    """A refusal of the operating system that no part of the command expected.

    For example a folder that may not be searched, no descriptors left, or a file system that became read-only.
    """
    from patcher.errors import message_of

    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return MachineError(
            phrase("the folder that this was started in is gone or cannot be read"),
            cause=message_of(error),
            advice=phrase("Change to a folder that is there."),
        )
    if error.filename is None:
        return MachineError(phrase("the machine refuses what is needed"), cause=message_of(error))
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes | str | os.PathLike) else str(error.filename)
    reason = listed(error.strerror or str(error))
    return MachineError(phrase("{path}: cannot be used", path=name), cause=reason)
