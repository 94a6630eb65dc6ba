"""What a call in a test comes to: well-known functions, and small functions of the tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from patcher.analysis.conditions.interpreting import interpret
from patcher.analysis.conditions.terms import OFF, UNKNOWN, Known, Method, Names, Off, Setting, Term, Thing, truth

if TYPE_CHECKING:
    from patcher.analysis.conditions.evaluator import Evaluator
    from patcher.analysis.conditions.scoping import Place

_STRING_METHODS = frozenset(
    {"split", "rsplit", "partition", "rpartition", "startswith", "endswith", "strip", "lstrip", "rstrip", "lower",
     "upper", "replace", "removeprefix", "removesuffix", "isdigit", "count", "find", "get", "keys"}
)  # fmt: skip
_PLAIN: Mapping[str, Callable[..., object]] = {
    "tuple": tuple,
    "list": tuple,
    "set": frozenset,
    "frozenset": frozenset,
    "sorted": sorted,
    "int": int,
    "str": str,
    "bool": bool,
    "float": float,
    "abs": abs,
    "len": len,
    "max": max,
    "min": min,
    "any": any,
    "all": all,
}
_DECORATORS = frozenset({"lru_cache", "cache", "staticmethod", "classmethod", "wraps", "deprecated"})


def called(evaluator: Evaluator, node: ast.Call, place: Place) -> Term:
    """The result of a call."""
    func = evaluator.term(node.func, place)
    arguments = [evaluator.term(argument, place) for argument in node.args if not isinstance(argument, ast.Starred)]
    words = {word.arg: evaluator.term(word.value, place) for word in node.keywords if word.arg is not None}
    opened = len(arguments) != len(node.args) or len(words) != len(node.keywords)
    match func:
        case Off():
            return OFF
        case Setting(path=(*path, "get"), hints=hints) if arguments and isinstance(arguments[0], Known):
            return _got(evaluator, Setting((*path, str(arguments[0].value)), hints), arguments)
        case Method(of=Known(value=Names() as names), name="keys" | "values" | "copy"):
            return names
        case Method(of=Known() as known, name=name):
            return _method(known, name, arguments, words)
        case Thing(dotted=dotted):
            pass
        case _:
            return _configured(node, arguments)
    if dotted.startswith("builtins."):
        return _builtin(evaluator, dotted.removeprefix("builtins."), arguments, words)
    if not opened:
        found = evaluator.outside.call(dotted, arguments, words, evaluator)
        if found is not None:
            return found
        split = evaluator.tree.split(dotted)
        if split is not None and (body := split[0].bodies.get(split[1])) is not None:
            if any(mark.rpartition(".")[2] not in _DECORATORS for mark in body.decorators):
                return UNKNOWN
            term = interpret(evaluator, split[0], body, arguments, words)
            if term != UNKNOWN:
                return term
    return _configured(node, arguments)


def _configured(node: ast.Call, arguments: list[Term]) -> Term:
    """Functions that turn a configuration into another form of it."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if arguments and isinstance(arguments[0], Setting) and any(w in name.lower() for w in ("conf", "dataclass")):
        return arguments[0]
    return UNKNOWN


def _got(evaluator: Evaluator, setting: Setting, arguments: list[Term]) -> Term:
    """`settings.get(name, default)`."""
    job = evaluator.job
    if job is None:
        return UNKNOWN
    value = job.value(setting)
    if isinstance(value, Known) or job.has_below(setting):
        return setting
    if isinstance(value, Off):
        return OFF
    default = arguments[1] if len(arguments) > 1 else Known(None)
    return setting if isinstance(default, Known) and default.value in ({}, ()) else default


def _method(known: Known, name: str, arguments: list[Term], words: dict[str, Term]) -> Term:
    if name not in _STRING_METHODS or words or not all(isinstance(argument, Known) for argument in arguments):
        return UNKNOWN
    values = [argument.value for argument in arguments if isinstance(argument, Known)]
    try:
        found = getattr(known.value, name)(*values)
    except Exception:
        return UNKNOWN
    return Known(tuple(found) if isinstance(found, list) else found, known.package)


def _builtin(evaluator: Evaluator, name: str, arguments: list[Term], words: dict[str, Term]) -> Term:
    match name, arguments:
        case "hasattr", [Thing(dotted=dotted), Known(value=str() as attribute)]:
            found = evaluator.outside.has(f"{dotted}.{attribute}", evaluator)
            return UNKNOWN if found is None else Known(found)
        case "hasattr", [Off(), _]:
            return Known(False)
        case "getattr", [Thing(dotted=dotted), Known(value=str() as attribute), *default]:
            found = evaluator.outside.has(f"{dotted}.{attribute}", evaluator)
            if found is False and default:
                return default[0]
            return evaluator.dotted(f"{dotted}.{attribute}") if found or not default else UNKNOWN
        case "getattr", [Setting() as setting, Known(value=str() as attribute), *default]:
            return _got(evaluator, Setting((*setting.path, attribute), setting.hints), [arguments[1], *default])
        case "getattr", [Known(value=None), Known(), default]:
            return default
        case "isinstance", [Off(), _]:
            return Known(False)
        case "callable", [one]:
            answer = truth(one)
            return UNKNOWN if answer is None else Known(answer)
        case (("set" | "dict" | "list" | "tuple" | "frozenset" | "sorted" | "vars"), [Names() as names]):
            return names
        case "map", [Thing(dotted="builtins.int"), Known(value=tuple() as values, package=package)]:
            try:
                return Known(tuple(int(value) for value in values), package)
            except (TypeError, ValueError):
                return UNKNOWN
        case "bool", [one]:
            one = evaluator.settled(one)
            answer = truth(one)
            return UNKNOWN if answer is None else Known(answer)
        case "len", [Off()]:
            return OFF
        case _ if name in _PLAIN and not words:
            settled = [evaluator.settled(one) for one in arguments]
            if not all(isinstance(one, Known) for one in settled):
                return UNKNOWN
            plain = [one.value for one in settled if isinstance(one, Known)]
            package = next((one.package for one in settled if isinstance(one, Known)), "")
            try:
                return Known(_PLAIN[name](*plain), package)
            except Exception:
                return UNKNOWN
        case _:
            return UNKNOWN
