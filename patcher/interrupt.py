"""Ctrl-C and SIGTERM before and after the command itself: one line and exit code 130, whatever is being imported then.

Importing the command line takes a tenth of a second. A KeyboardInterrupt in that time would end in a traceback, or be
lost where Python runs code that may not fail (a callback of the collector). So until a command runs, and again once
it has run, the signal ends the process at once. SIGTERM, with which Slurm, Docker and a CI's time limit end a program,
counts like Ctrl-C, so that it too leaves one answer and nothing half done. What this module imports is loaded when
Python starts: each further import here would be a moment in which Ctrl-C gives a traceback.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports enum first: 2 ms without a handler.
import os
import sys

CODE = 130
_answered = False
_OPTION = "--format"


_SIGNALS = (_signal.SIGINT, _signal.SIGTERM)


def end_at_once() -> None:
    """From now on the signals end the process. Where one is ignored, as behind `nohup … &`, it stays ignored.

    A process that works for a command imports this module too, and has no answer of its own to give.
    """
    if "--multiprocessing-fork" in sys.orig_argv:
        return
    for signal in _SIGNALS:
        if _signal.getsignal(signal) in (_signal.default_int_handler, _signal.SIG_DFL):
            _signal.signal(signal, _end)


def raise_instead() -> None:
    """From now on each is a KeyboardInterrupt, so that a command can clean up behind itself."""
    for signal in _SIGNALS:
        if _signal.getsignal(signal) is _end:
            _signal.signal(signal, _signal.default_int_handler)


def answered() -> None:
    """The command's answer is being written: from now on an interrupt adds nothing to it."""
    global _answered
    _answered = True


def asks_for_json(arguments: list[str]) -> bool:
    """Whether `--format json` is among the arguments, before the command or after it.

    The rest of the command line may be one that cannot be parsed: that error too is reported in JSON.
    """
    asked, rest = False, iter(arguments)
    for argument in rest:
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        if name == _OPTION:
            asked = (value if equals else next(rest, "")).lower() == "json" or asked
    return asked


def _end(*_: object) -> None:
    for signal in _SIGNALS:
        _signal.signal(signal, _signal.SIG_IGN)
    if not _answered:
        if asks_for_json(sys.argv[1:]):
            error = '{"title": "interrupted", "cause": "", "advice": "", "code": 130}'
            _write(1, f'{{"error": {error}}}\n')
        _write(2, f"{_word()}\n")
    os._exit(CODE)


def _word() -> str:
    try:
        from patcher.i18n import language, show

        return show("interrupted", language())
    except Exception:  # What it imports may be the module whose import was interrupted.
        return "interrupted"


def _write(fd: int, text: str) -> None:
    try:  # noqa: SIM105
        os.write(fd, text.encode("utf-8"))
    except OSError:
        pass
