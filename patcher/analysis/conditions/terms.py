"""What an expression of a test may come to, as far as it can be told without running anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Known:
    """A Python value; `package`: the distribution whose version it is or was taken from."""

    value: object
    package: str = ""


@dataclass(frozen=True, slots=True)
class Thing:
    """What stands behind a dotted name: a module, class or function, not called."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that is known."""

    of: Known
    name: str


@dataclass(frozen=True, slots=True)
class Signed:
    """`inspect.signature` of a thing, or its argument specification."""

    of: Thing


@dataclass(frozen=True, slots=True)
class Names:
    """Names of parameters or fields; `complete`: there are no others."""

    names: frozenset[str]
    complete: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """A node of the job's configuration: the path below something that goes by one of the `hints`."""

    path: tuple[str, ...]
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Off:
    """Something of a feature that the plain job does not use: falsy, None, equal to nothing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not to be told."""


Term: TypeAlias = Known | Thing | Method | Signed | Names | Setting | Off | Unknown
_LONGEST = 2000
_MOST_VALUES = 3000
UNKNOWN = Unknown()
OFF = Off()


class Raised(Exception):  # noqa: N818
    """The evaluated code raises one of these exceptions, the most special first."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = names


ABSENT_DISTRIBUTION = ("PackageNotFoundError", "ModuleNotFoundError", "ImportError", "Exception", "BaseException")
FAILED_IMPORT = ("ModuleNotFoundError", "ImportError", "Exception", "BaseException")
"""What one may write to catch a failed import."""
EXCEPTIONS = {
    "TypeError": ("TypeError", "Exception", "BaseException"),
    "AttributeError": ("AttributeError", "Exception", "BaseException"),
    "InvalidVersion": ("InvalidVersion", "ValueError", "Exception", "BaseException"),
}


def is_small(value: object) -> bool:
    """Whether a value is small enough to go on computing with: `a = b + b; b = c + c; ...` doubles with each name."""
    left, waiting = _MOST_VALUES, [value]
    while waiting:
        one = waiting.pop()
        left -= 1
        if left < 0 or (isinstance(one, str | bytes | tuple | frozenset | set | list | dict) and len(one) > _LONGEST):
            return False
        if isinstance(one, tuple | frozenset | set | list):
            waiting.extend(one)
        elif isinstance(one, dict):
            waiting.extend((*one, *one.values()))
    return True


def truth(term: Term) -> bool | None:
    """Whether it counts as true."""
    match term:
        case Known(value=value):
            try:
                return bool(value)
            except Exception:
                return None
        case Off():
            return False
        case Names(names=names, complete=complete):
            return True if names else False if complete else None
        case Thing() | Method() | Signed():
            return True
        case _:
            return None
