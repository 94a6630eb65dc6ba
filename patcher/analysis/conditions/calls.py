"""What a call in a test evaluates to: well-known functions, and small functions of the tree that are interpreted."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patcher.analysis.conditions.names import EvalContext
from patcher.analysis.conditions.terms import (
    EXCEPTIONS,
    FAILED_IMPORT,
    OFF,
    UNKNOWN,
    Known,
    Method,
    Names,
    Off,
    Raised,
    Reference,
    Setting,
    Term,
    truth,
)
from patcher.analysis.summary import Body, FileSummary
from patcher.analysis.syntax import absolute_module, caught

if TYPE_CHECKING:
    from patcher.analysis.conditions.evaluator import Evaluator


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


def called(evaluator: Evaluator, node: ast.Call, context: EvalContext) -> Term:
    """The result of a call."""
    func = evaluator.term(node.func, context)
    arguments = [evaluator.term(argument, context) for argument in node.args if not isinstance(argument, ast.Starred)]
    words = {word.arg: evaluator.term(word.value, context) for word in node.keywords if word.arg is not None}
    opened = len(arguments) != len(node.args) or len(words) != len(node.keywords)
    match func:
        case Off():
            return OFF
        # `config.get("name", default)`
        case Setting(path=(*path, "get"), hints=hints) if arguments and isinstance(arguments[0], Known):
            return _setting_or_default(evaluator, Setting((*path, str(arguments[0].value)), hints), arguments)
        case Method(of=Known(value=Names() as names), name="keys" | "values" | "copy"):
            return names
        case Method(of=Known() as known, name=name):
            return _method(known, name, arguments, words)
        # What the plain job is known to get from `torch.cuda.is_available()`.
        case Known(value=bool() | str()) if evaluator.job is not None:
            return func
        case Reference(dotted=dotted):
            pass
        case _:
            return _as_setting(node, arguments)
    if dotted.startswith("builtins."):
        return _builtin(evaluator, dotted.removeprefix("builtins."), arguments, words)
    if not opened:
        found = evaluator.queries.call(dotted, arguments, words, evaluator)
        if found is not None:
            return found
        split = evaluator.summaries.split(dotted)
        if split is not None and (body := split[0].bodies.get(split[1])) is not None:
            # A decorator that is not known may return anything.
            if any(mark.rpartition(".")[2] not in _DECORATORS for mark in body.decorators):
                return UNKNOWN
            term = interpret(evaluator, split[0], body, arguments, words)
            if term != UNKNOWN:
                return term
    return _as_setting(node, arguments)


def _as_setting(node: ast.Call, arguments: list[Term]) -> Term:
    """Functions that turn a configuration into another form of it."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    # `omega_conf_to_dataclass(config)`, `OmegaConf.to_container(config)`
    if arguments and isinstance(arguments[0], Setting) and any(w in name.lower() for w in ("conf", "dataclass")):
        return arguments[0]
    return UNKNOWN


def _setting_or_default(evaluator: Evaluator, setting: Setting, arguments: list[Term]) -> Term:
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
    # `config.get("engine_kwargs", {})` is an empty group of settings.
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
        case "hasattr", [Reference(dotted=dotted), Known(value=str() as attribute)]:
            found = evaluator.queries.has(f"{dotted}.{attribute}", evaluator)
            return UNKNOWN if found is None else Known(found)
        case "hasattr", [Off(), _]:
            return Known(False)
        case "getattr", [Reference(dotted=dotted), Known(value=str() as attribute), *default]:
            found = evaluator.queries.has(f"{dotted}.{attribute}", evaluator)
            # `getattr(module, "name", None)`
            if found is False and default:
                return default[0]
            return evaluator.dotted(f"{dotted}.{attribute}") if found or not default else UNKNOWN
        case "getattr", [Setting() as setting, Known(value=str() as attribute), *default]:
            return _setting_or_default(
                evaluator, Setting((*setting.path, attribute), setting.hints), [arguments[1], *default]
            )
        # `getattr(None, "name", default)`
        case "getattr", [Known(value=None), Known(), default]:
            return default
        case "isinstance", [Off(), _]:
            return Known(False)
        case "callable", [one]:
            answer = truth(one)
            return UNKNOWN if answer is None else Known(answer)
        case (("set" | "dict" | "list" | "tuple" | "frozenset" | "sorted" | "vars"), [Names() as names]):
            return names
        # `tuple(map(int, version.split(".")[:2]))`
        case "map", [Reference(dotted="builtins.int"), Known(value=tuple() as values, package=package)]:
            try:
                return Known(tuple(int(value) for value in values), package)
            except (TypeError, ValueError):
                return UNKNOWN
        case "bool", [one]:
            one = evaluator.resolve_setting(one)
            answer = truth(one)
            return UNKNOWN if answer is None else Known(answer)
        case "len", [Off()]:
            return OFF
        case _ if name in _PLAIN and not words:
            resolve_setting = [evaluator.resolve_setting(one) for one in arguments]
            if not all(isinstance(one, Known) for one in resolve_setting):
                return UNKNOWN
            plain = [one.value for one in resolve_setting if isinstance(one, Known)]
            package = next((one.package for one in resolve_setting if isinstance(one, Known)), "")
            try:
                return Known(_PLAIN[name](*plain), package)
            except Exception:
                return UNKNOWN
        case _:
            return UNKNOWN


_FUEL = 120
"""Statements that one call may run: a guess. Tests of versions take a few dozen at most, and undecided branches are run
both ways."""
_LINES = 60
"""Lines of a function that is interpreted at all: longer ones do more than answer a question."""


class _NotFollowed(Exception):  # noqa: N818
    """The run cannot be followed any further."""


@dataclass
class _Interpretation:
    evaluator: Evaluator
    summary: FileSummary
    function: str
    local: dict[str, Term]
    fuel: list[int] = field(default_factory=lambda: [_FUEL])


def interpret(
    evaluator: Evaluator, summary: FileSummary, body: Body, arguments: Sequence[Term], words: dict[str, Term]
) -> Term:
    """What the function returns; unknown where it cannot be followed. Raises `Raised`."""
    if body.last - body.first > _LINES:
        return UNKNOWN
    node = evaluator.summaries.node(summary, body)
    if node is None or isinstance(node, ast.AsyncFunctionDef) or node.args.vararg or node.args.kwarg:
        return UNKNOWN
    names = [name for name in body.parameters if not (body.owner and name in ("self", "cls"))]
    if len(arguments) > len(names) or any(word not in names for word in words):
        return UNKNOWN
    local: dict[str, Term] = dict(zip(names, arguments, strict=False)) | words
    run = _Interpretation(evaluator, summary, body.qualname, local)
    for name in names:
        if name not in local:
            default = body.defaults.get(name)
            local[name] = UNKNOWN if default is None else _value(run, default)
    key = (summary.file, body.qualname, "()")
    if key in evaluator.active:
        return UNKNOWN
    evaluator.active.add(key)
    try:
        returned = _block(run, node.body)
    except _NotFollowed:
        return UNKNOWN
    finally:
        evaluator.active.discard(key)
    return Known(None) if returned is None else returned


def _block(run: _Interpretation, body: Sequence[ast.stmt]) -> Term | None:
    """What the statements return; None if they run through."""
    for index, node in enumerate(body):
        run.fuel[0] -= 1
        if run.fuel[0] < 0:
            raise _NotFollowed
        match node:
            case ast.If(test=test):
                answer = truth(run.evaluator.resolve_setting(_value(run, test)))
                rest = body[index + 1 :]
                # Both branches are run to the end of the function; if they return the same, the test does not matter.
                if answer is None:
                    return _both(run, [*node.body, *rest], [*node.orelse, *rest])
                returned = _block(run, node.body if answer else node.orelse)
            case ast.Try():
                returned = _try(run, node)
            case ast.With(body=inner):
                returned = _block(run, inner)
            case _:
                returned = _simple(run, node)
        if returned is not None:
            return returned
    return None


def _both(run: _Interpretation, one: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> Term | None:
    """Where a test cannot be known, both ways must come to the same."""
    found: list[Term | None] = []
    for body in (one, other):
        inner = _Interpretation(run.evaluator, run.summary, run.function, dict(run.local), run.fuel)
        try:
            found.append(_block(inner, body))
        except Raised:
            continue
    if not found:
        raise _NotFollowed
    if len(found) == 2 and found[0] != found[1]:
        answers = {truth(term) if term is not None else False for term in found}
        if len(answers) == 1 and None not in answers:
            return Known(answers.pop())
        raise _NotFollowed
    return Known(None) if found[0] is None else found[0]


def _try(run: _Interpretation, node: ast.Try) -> Term | None:
    try:
        returned = _block(run, node.body)
        if returned is None:
            returned = _block(run, node.orelse)
    except Raised as raised:
        for handler in node.handlers:
            # `except ImportError` catches ModuleNotFoundError: `names` are the exception and those above it.
            if set(caught(handler.type)) & set(raised.names):
                returned = _block(run, handler.body)
                break
        else:
            raise
    return returned if returned is not None else _block(run, node.finalbody)


def _simple(run: _Interpretation, node: ast.stmt) -> Term | None:
    match node:
        case ast.Return(value=value):
            return Known(None) if value is None else _value(run, value)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            run.local[name] = _value(run, value)
        case ast.Assign(targets=targets):
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        run.local[part.id] = UNKNOWN
        case ast.Import(names=aliases):
            for alias in aliases:
                _require_import(run, alias.name)
                name = alias.asname or alias.name.partition(".")[0]
                run.local[name] = run.evaluator.dotted(alias.name if alias.asname else name)
        case ast.ImportFrom(names=aliases):
            where = absolute_module(run.summary.package, node)
            for alias in aliases:
                _require_import(run, f"{where}.{alias.name}")
                run.local[alias.asname or alias.name] = run.evaluator.dotted(f"{where}.{alias.name}")
        case ast.Raise(exc=exception):
            raise Raised(*_raised(exception))
        # Calls of a logger, docstrings. An `assert` is taken to hold.
        case ast.Expr() | ast.Pass() | ast.Assert():
            pass
        # Names defined inside stay unknown, which is safe.
        case ast.Global() | ast.FunctionDef() | ast.ClassDef():
            pass
        case _:
            raise _NotFollowed
    return None


def _require_import(run: _Interpretation, dotted: str) -> None:
    if run.evaluator.summaries.split(dotted) is None and run.evaluator.queries.has(dotted, run.evaluator) is False:
        raise Raised(*FAILED_IMPORT)


def _raised(node: ast.expr | None) -> tuple[str, ...]:
    target = node.func if isinstance(node, ast.Call) else node
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "Exception")
    return EXCEPTIONS.get(name, (name, "Exception", "BaseException"))


def _value(run: _Interpretation, node: ast.expr) -> Term:
    return run.evaluator.term(node, EvalContext(run.summary, run.function, run.local))
