"""What an exception says, in phrases, and what the operating system refused, as an error of ours."""

from __future__ import annotations

from typing import Any

from patcher.errors import TreeError, UkyError
from patcher.i18n import Phrase, Phrases, listed, phrase
from patcher.i18n.codec import decode, encode
from patcher.worktree.os_errors import cause_and_advice


def said(error: BaseException) -> Phrase | Phrases | str:
    """The message of `error` with its translatable parts apart; plain text where it has none.

    `str()` of it is what `str()` of the exception is.
    """
    from json import JSONDecodeError

    match error:
        case UkyError():
            return Phrases((error.title, error.cause, error.advice), "\n  ")
        case OSError(errno=int(number), strerror=str(problem), filename=None):
            return phrase("[Errno {number}] {problem}", number=number, problem=listed(problem))
        case OSError(errno=int(number), strerror=str(problem), filename2=None):
            fields = {"number": number, "problem": listed(problem), "path": repr(error.filename)}
            return phrase("[Errno {number}] {problem}: {path}", **fields)
        case JSONDecodeError():
            fields = {"problem": listed(error.msg), "line": error.lineno, "column": error.colno, "at": error.pos}
            return phrase("{problem}: line {line} column {column} (char {at})", **fields)
        case UnicodeDecodeError() if error.end - error.start == 1:
            fields = {"codec": error.encoding, "byte": f"{error.object[error.start]:02x}", "at": error.start}
            template = "'{codec}' codec can't decode byte 0x{byte} in position {at}: {problem}"
            return phrase(template, **fields, problem=listed(error.reason))
    match error.args:
        case (Phrase() as told,):
            return told
    return str(error)


def tree_error(error: OSError, title: Phrase) -> TreeError:
    """The error for what could not be done (`title`): where and why, and what to do next."""
    cause, advice = cause_and_advice(error)
    return TreeError(title, cause=decode(cause), advice=decode(advice))


def encode_error(error: UkyError) -> dict[str, Any]:
    """The messages of an error: its title, cause and advice."""
    return {"title": encode(error.title), "cause": encode(error.cause), "advice": encode(error.advice)}
