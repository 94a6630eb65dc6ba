"""What an expression in a test can evaluate to, and the operators on such values."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Known:
    """A Python value; `package`: the distribution whose version it is or was taken from."""

    value: object
    package: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands behind a dotted name: a module, class or function, not called."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that is known."""

    of: Known
    name: str


@dataclass(frozen=True, slots=True)
class SignatureOf:
    """`inspect.signature` of a thing, or its argument specification."""

    of: Reference


@dataclass(frozen=True, slots=True)
class Names:
    """Names of parameters or fields; `complete`: there are no others.

    `count`: how many `inspect.signature` tells, `*args` and `**kwargs` included; None where that is not known.
    """

    names: frozenset[str]
    complete: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A node of the job's configuration: the path below something that goes by one of the `hints`."""

    path: tuple[str, ...]
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Off:
    """Something of a feature that the plain job does not use: falsy, None, equal to nothing."""


@dataclass(frozen=True, slots=True)
class Truthy:
    """One of several values that all count as true: `mode = "spmd" if spmd else "customized"`."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not known."""


Term: TypeAlias = Known | Reference | Method | SignatureOf | Names | Setting | Off | Truthy | Unknown
_LONGEST = 2000
"""Characters of a text, or elements of a container. Versions and names of parameters, which tests ask about, are far
shorter; a function of 2,000 parameters is generated."""
_MOST_VALUES = 3000
"""Values in all, those inside containers included."""
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


def is_caught(raised: Iterable[str], catches: Iterable[str]) -> bool:
    """Whether a handler for these exceptions, as written, takes one of those raised."""
    # `except metadata.PackageNotFoundError`: the last word tells.
    return not {name.rpartition(".")[2] for name in catches}.isdisjoint(raised)


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


def values_of(terms: Iterable[Term]) -> list[object] | None:
    """The Python values; None unless all are known."""
    values: list[object] = []
    for term in terms:
        if not isinstance(term, Known):
            return None
        values.append(term.value)
    return values


def package_of(terms: Iterable[Term]) -> str:
    """The distribution whose version the first of the terms with one is or was taken from; "" for none."""
    return next((term.package for term in terms if isinstance(term, Known) and term.package), "")


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
        case Reference() | Method() | SignatureOf() | Truthy():
            return True
        case _:
            return None


def _ordered(compare: Callable[[object, object], bool]) -> Callable[[Term, Term], bool | None]:
    def compared(one: Term, other: Term) -> bool | None:
        # A setting of an unused feature counts as 0: `lora_rank > 0` is false.
        if isinstance(one, Off) and isinstance(other, Known):
            one = Known(0)
        elif isinstance(other, Off) and isinstance(one, Known):
            other = Known(0)
        if not isinstance(one, Known) or not isinstance(other, Known):
            return None
        try:
            return bool(compare(one.value, other.value))
        except Exception:
            return None

    return compared


def _equal(one: Term, other: Term) -> bool | None:
    match one, other:
        case Known(value=first), Known(value=second):
            try:
                return bool(first == second)
            except Exception:
                return None
        case (Off(), Known(value=value)) | (Known(value=value), Off()):
            return value is None or value == 0
        case Reference(dotted=first), Reference(dotted=second):
            if first == second:
                return True
            # `mode == RolloutMode.HYBRID` where mode is RolloutMode.STANDALONE. Two other references may be equal.
            return False if _is_member(first, second) else None
        case _:
            return None


def _is_member(first: str, second: str) -> bool:
    """Whether both are members of one enumeration, as far as their names say."""
    (one, _, name), (other, _, second_name) = first.rpartition("."), second.rpartition(".")
    same = one.rpartition(".")[2] == other.rpartition(".")[2]
    return same and name.isupper() and second_name.isupper() and name != second_name


def _negated(compare: Callable[[Term, Term], bool | None]) -> Callable[[Term, Term], bool | None]:
    def compared(one: Term, other: Term) -> bool | None:
        answer = compare(one, other)
        return None if answer is None else not answer

    return compared


def _is(one: Term, other: Term) -> bool | None:
    match one, other:
        case Known(value=first), Known(value=second):
            # `is` compares identity, which is known for None and booleans only; for other values equality is close
            # enough.
            return first is second if first is None or second is None or isinstance(first, bool) else first == second
        case (Off(), Known(value=value)) | (Known(value=value), Off()):
            return value is None or value is False
        case (Reference() | Truthy(), Known(value=None)) | (Known(value=None), Reference() | Truthy()):
            return False
        case _:
            return _equal(one, other)


def _in(one: Term, other: Term) -> bool | None:
    match one, other:
        case Known(value=str() as name), Names(names=names, complete=complete):
            return True if name in names else False if complete else None
        case Known(value=first), Known(value=second):
            try:
                return first in second  # type: ignore[operator]
            except TypeError as error:
                # `"x" in None` raises, and a `try` around the test may catch it.
                raise Raised("TypeError", "Exception", "BaseException") from error
        case (Off(), Known()) | (_, Off()):
            return False
        case _:
            return None


COMPARISONS: Mapping[str, Callable[[Term, Term], bool | None]] = {
    "==": _equal,
    "!=": _negated(_equal),
    "<": _ordered(operator.lt),  # type: ignore[arg-type]
    "<=": _ordered(operator.le),  # type: ignore[arg-type]
    ">": _ordered(operator.gt),  # type: ignore[arg-type]
    ">=": _ordered(operator.ge),  # type: ignore[arg-type]
    "is": _is,
    "is not": _negated(_is),
    "in": _in,
    "not in": _negated(_in),
}


_VERSION = re.compile(r"\d+(\.\d+)+\w*")


def is_version_text(term: Term) -> bool:
    """Whether it is the text of a version, or its parts as texts."""
    match term:
        case Known(value=str() as text):
            return bool(_VERSION.fullmatch(text))
        case Known(value=tuple() as parts):
            return len(parts) > 1 and all(isinstance(part, str) and part[:1].isdigit() for part in parts)
        case _:
            return False


def is_misordered(one: Term, operator: str, other: Term) -> bool:
    """Whether two texts of versions come in another order than the versions do: `"0.20.2" <= "0.6.3"` is true."""
    if not is_version_text(one) or not is_version_text(other):
        return False
    compare = COMPARISONS[operator]
    as_text, as_versions = compare(one, other), compare(_version(one), _version(other))
    return as_text is not None and as_versions is not None and as_text is not as_versions


def _version(term: Term) -> Term:
    from packaging.version import InvalidVersion, Version

    if isinstance(term, Known):
        text = ".".join(term.value) if isinstance(term.value, tuple) else str(term.value)
        try:
            return Known(Version(text))
        except InvalidVersion:
            pass
    return UNKNOWN


def _arithmetic(compute: Callable[[object, object], object]) -> Callable[[Known, Known], Term]:
    def computed(one: Known, other: Known) -> Term:
        simple = (int, float, str, tuple)
        if not isinstance(one.value, simple) or not isinstance(other.value, simple):
            return UNKNOWN
        try:
            return Known(compute(one.value, other.value), one.package or other.package)
        except Exception:
            return UNKNOWN

    return computed


BINARY: Mapping[str, Callable[[Known, Known], Term]] = {
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
}
