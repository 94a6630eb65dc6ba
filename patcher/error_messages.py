"""What an exception says, in phrases. `str()` of it is what `str()` of the exception is."""

from __future__ import annotations

from patcher.errors import UkyError
from patcher.i18n import Phrase, Phrases, listed, phrase


def said(error: BaseException) -> Phrase | Phrases | str:
    """The message of `error` with its translatable parts apart; plain text where it has none."""
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
