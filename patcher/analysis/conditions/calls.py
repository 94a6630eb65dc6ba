"""What a call in a test evaluates to: built-in functions, methods of texts, `config.get`, and small helpers of the
tree, which are interpreted step by step (`def is_vllm_at_least(wanted): …`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from patcher.analysis.bindings import Imported
from patcher.analysis.conditions.names import EvalContext, NameResolver
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
    is_caught,
    package_of,
    truth,
    values_of,
)
from patcher.analysis.expressions import Call, Expression, last_name
from patcher.analysis.steps import Assign, If, Raise, Return, Step, Steps, Try, Unfollowed, With
from patcher.analysis.summary import Body, FileSummary

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


def called(evaluator: NameResolver, call: Call, context: EvalContext) -> Term:
    """The result of a call."""
    func = evaluator.term(call.of, context)
    arguments = [evaluator.term(argument, context) for argument in call.positional]
    words = {name: evaluator.term(value, context) for name, value in call.keywords}
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
        # What the plain job is known to get from `torch.cuda.is_available()`, or from how many stages a pipeline has.
        case Known(value=bool() | int() | str()) if evaluator.job is not None:
            return func
        case Reference(dotted=dotted):
            pass
        case _:
            return _as_setting(call, arguments)
    if dotted.startswith("builtins."):
        return _builtin(evaluator, dotted.removeprefix("builtins."), arguments, words)
    if not call.spread:
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
    return _as_setting(call, arguments)


def _as_setting(call: Call, arguments: list[Term]) -> Term:
    """Functions that turn a configuration into another form of it."""
    name = last_name(call.of)
    # `omega_conf_to_dataclass(config)`, `OmegaConf.to_container(config)`
    if arguments and isinstance(arguments[0], Setting) and any(w in name.lower() for w in ("conf", "dataclass")):
        return arguments[0]
    return UNKNOWN


def _setting_or_default(evaluator: NameResolver, setting: Setting, arguments: list[Term]) -> Term:
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
    values = values_of(arguments)
    if name not in _STRING_METHODS or words or values is None:
        return UNKNOWN
    try:
        found = getattr(known.value, name)(*values)
    except Exception:
        return UNKNOWN
    return Known(tuple(found) if isinstance(found, list) else found, known.package)


def _builtin(evaluator: NameResolver, name: str, arguments: list[Term], words: dict[str, Term]) -> Term:
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
            answer = truth(evaluator.resolve_setting(one))
            return UNKNOWN if answer is None else Known(answer)
        case "len", [Off()]:
            return OFF
        # `len(inspect.signature(init_app_state).parameters) == 4`
        case "len", [Names(count=int() as count)]:
            return Known(count)
        case _ if name in _PLAIN and not words:
            resolved = [evaluator.resolve_setting(one) for one in arguments]
            plain = values_of(resolved)
            if plain is None:
                return UNKNOWN
            try:
                return Known(_PLAIN[name](*plain), package_of(resolved))
            except Exception:
                return UNKNOWN
        case _:
            return UNKNOWN


_FUEL = 120
"""Statements that one call may run: a guess. Tests of versions take a few dozen at most, and undecided branches are run
both ways."""


class _NotFollowed(Exception):  # noqa: N818
    """The run cannot be followed any further."""


@dataclass
class _Interpretation:
    evaluator: NameResolver
    summary: FileSummary
    function: str
    local: dict[str, Term]
    fuel: list[int] = field(default_factory=lambda: [_FUEL])


def interpret(
    evaluator: NameResolver, summary: FileSummary, body: Body, arguments: Sequence[Term], words: dict[str, Term]
) -> Term:
    """What the function returns; unknown where it cannot be followed. Raises `Raised`."""
    if body.content.steps is None:
        return UNKNOWN
    names = [name for name in body.parameters if not (body.owner and name in ("self", "cls"))]
    if len(arguments) > len(names) or any(word not in names for word in words):
        return UNKNOWN
    local: dict[str, Term] = dict(zip(names, arguments, strict=False)) | words
    run = _Interpretation(evaluator, summary, body.qualname, local)
    for name in names:
        if name not in local:
            default = body.content.defaults.get(name)
            local[name] = UNKNOWN if default is None else _value(run, default)
    key = (summary.file, body.qualname, "()")
    if key in evaluator.active:
        return UNKNOWN
    evaluator.active.add(key)
    try:
        returned = _block(run, body.content.steps)
    except _NotFollowed:
        return UNKNOWN
    finally:
        evaluator.active.discard(key)
    return Known(None) if returned is None else returned


def _block(run: _Interpretation, steps: Steps) -> Term | None:
    """What the steps return; None if they run through."""
    for index, step in enumerate(steps):
        run.fuel[0] -= 1
        if run.fuel[0] < 0:
            raise _NotFollowed
        match step:
            case If(test=test, body=body, orelse=orelse):
                answer = truth(run.evaluator.resolve_setting(_value(run, test)))
                rest = steps[index + 1 :]
                # Both branches are run to the end of the function; if they return the same, the test does not matter.
                if answer is None:
                    return _both(run, (*body, *rest), (*orelse, *rest))
                returned = _block(run, body if answer else orelse)
            case Try():
                returned = _try(run, step)
            case With(body=body):
                returned = _block(run, body)
            case _:
                returned = _simple(run, step)
        if returned is not None:
            return returned
    return None


def _both(run: _Interpretation, one: Steps, other: Steps) -> Term | None:
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


def _try(run: _Interpretation, step: Try) -> Term | None:
    try:
        returned = _block(run, step.body)
        if returned is None:
            returned = _block(run, step.orelse)
    except Raised as raised:
        for catches, body in step.handlers:
            # `except ImportError` catches ModuleNotFoundError: `names` are the exception and those above it.
            if is_caught(raised.names, catches):
                returned = _block(run, body)
                break
        else:
            raise
    return returned if returned is not None else _block(run, step.last)


def _simple(run: _Interpretation, step: Step) -> Term | None:
    match step:
        case Return(value=value):
            return Known(None) if value is None else _value(run, value)
        case Assign(name=name, value=value):
            run.local[name] = _value(run, value)
        case Unfollowed(names=names):
            run.local |= dict.fromkeys(names, UNKNOWN)
        case Imported(local=local):
            _require_import(run, step.needed)
            run.local[local] = run.evaluator.dotted(step.dotted)
        case Raise(exception=exception):
            raise Raised(*EXCEPTIONS.get(exception, (exception, "Exception", "BaseException")))
        case _:
            raise _NotFollowed
    return None


def _require_import(run: _Interpretation, dotted: str) -> None:
    if run.evaluator.summaries.split(dotted) is None and run.evaluator.queries.has(dotted, run.evaluator) is False:
        raise Raised(*FAILED_IMPORT)


def _value(run: _Interpretation, of: Expression) -> Term:
    return run.evaluator.term(of, EvalContext(run.summary, run.function, run.local))
