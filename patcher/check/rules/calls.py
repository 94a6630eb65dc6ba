"""Calls: do their arguments bind to the parameters of what is called?

Gives the kinds argument-removed, argument-required and argument-shifted (it reaches another parameter by its position).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.findings import Broken, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import InstanceOf, Meaning, Method, Program, TypeOf
from patcher.analysis.meaning.callables import NotOurs, Takes, takes
from patcher.analysis.meaning.members import may_have
from patcher.analysis.meaning.program import moved, named
from patcher.analysis.symbols import Class, Function, Parameter, Signature, Unknown
from patcher.analysis.uses import CallOf, Keyword, Member, Named, Shape, Use, Value
from patcher.check.rules.members import present_on_target, tree_subclass_has
from patcher.i18n import phrase


@dataclass(frozen=True, slots=True)
class NotTaken:
    """An argument that there is no parameter for; `keyword` is None for a positional one."""

    name: str
    keyword: Keyword | None = None


@dataclass(frozen=True, slots=True)
class Required:
    name: str


@dataclass(frozen=True, slots=True)
class Shifted:
    """The argument that was meant for the parameter `name`, which may be gone, binds to `reaches`."""

    name: str
    reaches: str


Mismatch: TypeAlias = NotTaken | Required | Shifted


def bind(shape: Shape, signature: Signature, before: Signature | None = None) -> tuple[Mismatch, ...]:
    """The mismatches between a call and a signature. `before`: the signature that the call was written for, if
    known."""
    takers = [one for one in signature.parameters if one.kind != "keyword"]
    names = {one.name for one in signature.parameters if one.kind != "positional"}
    wrong: list[Mismatch] = []
    given = {word.name for word in shape.keywords}
    if not signature.any_keyword:
        wrong += [NotTaken(word.name, word) for word in shape.keywords if word.name not in names]
    extra = len(shape.positional) - len(takers)
    # More positional arguments than parameters: which of them lost its parameter?
    if extra > 0 and not signature.any_positional:
        wrong += [NotTaken(name) for name in _dropped(shape.positional, takers, extra, before)]
    elif (shifted := _shifted(shape.positional, takers, _written_for(shape, takers, before), given)) is not None:
        wrong.append(shifted)
    # `f(**kwargs)` of unknown keys may pass whatever is required; `partial(f)` may get it later.
    if not (shape.partial or shape.any_keyword):
        filled = {one.name for one in takers[: len(shape.positional)]}
        for one in signature.parameters:
            if not one.required or one.name in given | filled or one.name in shape.sometimes:
                continue
            # `f(*args)` may fill any position.
            if shape.any_positional and one.kind != "keyword":
                continue
            wrong.append(Required(one.name))
    return tuple(wrong)


def _dropped(positional: tuple[str, ...], takers: list[Parameter], extra: int, before: Signature | None) -> list[str]:
    """The parameters that too many positional arguments were meant for; "" for one that cannot be known."""
    now = {one.name for one in takers}
    if before is not None:
        old = before.positional[: len(positional)]
        gone = [name for name in old if name not in now]
        if len(gone) == extra:
            return gone
    strange = [name for name in positional if name and name not in now]
    if len(strange) == extra and any(name in now for name in positional):
        return strange
    return list(positional[len(takers) :])


def _written_for(shape: Shape, takers: list[Parameter], before: Signature | None) -> Signature | None:
    """`before`, unless the call was changed for the target already.

    `f(engine, app.state, args)` where `f(engine, config, state, args)` was: it lacks an argument there, and its
    arguments bear the names of the parameters `f(engine, state, args)` that they reach now.
    """
    if before is None:
        return None
    if any(isinstance(wrong, Required) for wrong in bind(shape, before)):
        return None
    triples = [*zip(shape.positional, before.positional, (one.name for one in takers), strict=False)]
    fit_now = any(name == now != old for name, old, now in triples)
    fit_then = any(name == old != now for name, old, now in triples)
    return None if fit_now and not fit_then else before


def _shifted(
    positional: tuple[str, ...], takers: list[Parameter], before: Signature | None, given: set[str]
) -> Shifted | None:
    """The first positional argument that binds to another parameter than the one it was meant for."""
    now = [one.name for one in takers]
    if before is not None:
        old = before.positional
        for index in range(min(len(positional), len(old), len(now))):
            was, is_ = old[index], now[index]
            # The parameters of the baseline say what each position was meant for. A parameter that only has another
            # name is the same one; one that stands elsewhere now is not.
            if was != is_ and (was in now or is_ in old):
                return Shifted(was, is_)
    reached = dict(zip(now, positional, strict=False))
    # Without a baseline only names tell: `f(model, state)` where `f(state, model)` is defined.
    strays = [
        (index, name)
        for index, name in enumerate(positional[: len(now)])
        if name and name != now[index] and name in reached and reached[name] != name and name not in given
    ]
    # `f(model, module)` where `f(module, name)` is defined: one name that is another one's by chance, and all fits.
    if not strays or (len(strays) == 1 and takers[strays[0][0]].required):
        return None
    index, name = strays[0]
    meant = next((one for one in positional[:index] if one and one not in now), name)
    return Shifted(meant, now[positional.index(meant)])


def judge_call(use: Use, need: CallOf, program: Program, baseline: Program | None) -> Verdict:
    """Whether the call's arguments bind."""
    values = present_on_target(program.evaluate(need.of))
    found = [(one, takes(program, one)) for one in values]
    ours = [(one, what) for one, what in found if not isinstance(what, NotOurs)]
    if not ours:
        return Unrelated()
    unsure: Unknown | None = None
    problems: tuple[Problem, ...] = ()
    for one, what in ours:
        if isinstance(what, Takes):
            symbol = _as_written(need.of, one, program) or what.symbol
            wrong = bind(need.shape, what.signature, _before(need.of, baseline))
            if not wrong:
                return Fine(symbol)
            if _subclass_may_take(program, one, wrong):
                unsure = unsure or Unknown("an override further down may take it", symbol)
            problems = problems or tuple(_problem(use, symbol, mismatch) for mismatch in wrong)
        elif isinstance(what, Unknown):
            unsure = unsure or what
    if unsure is not None:
        return Undecided(unsure.symbol, unsure.reason)
    # The value may also be something of the tree, which may be what is called here.
    if len(ours) < len(found):
        return Undecided(problems[0].symbol, "not all of the functions that may be meant are known")
    return Broken(problems)


def _subclass_may_take(program: Program, one: Meaning, wrong: tuple[Mismatch, ...]) -> bool:
    """Whether a subclass may take what the declared class's method does not: some method of that name has the
    keywords."""
    match one:
        case Method(function=function, receiver=InstanceOf(of=Class() as of, exact=False) | TypeOf(of=Class() as of)):
            text = program.symbols(of.module).text
            names = [
                mismatch.name.encode() for mismatch in wrong if isinstance(mismatch, NotTaken) and mismatch.keyword
            ]
            for mention in text.mentions(function.header.name) if names else ():
                if text.before(mention).strip() in (b"def", b"async def"):
                    # The parameter list behind `def name`, as far as it stands in 2,000 bytes. The number is a guess.
                    taken = text.after(mention, function.header.name, 2000).partition(b"):")[0].partition(b") ->")[0]
                    if all(re.search(rb"\b%b\b" % name, taken) for name in names):
                        return may_have(program, of, function.header.name)
            return False
        # `runner_class: type[RunnerBase]` is called as the tree's own runner is made.
        case TypeOf():
            return tree_subclass_has(program, one, "__init__")
        case _:
            return False


def _problem(use: Use, symbol: str, mismatch: NotTaken | Required | Shifted) -> Problem:
    match mismatch:
        case NotTaken(name=name, keyword=keyword):
            line = keyword.line if keyword is not None else use.line
            if not name:
                detail = phrase("{function} takes fewer positional arguments", function=symbol)
                return Problem("argument-removed", symbol, line, detail)
            detail = phrase("{function} does not take {name}", function=symbol, name=name)
            return Problem("argument-removed", f"{symbol}({name})", line, detail)
        case Required(name=name):
            detail = phrase("{function} requires {name}", function=symbol, name=name)
            return Problem("argument-required", f"{symbol}({name})", use.line, detail)
        case Shifted(name=name, reaches=reaches):
            detail = phrase(
                "the argument {name} of {function} reaches {reaches}", name=name, function=symbol, reaches=reaches
            )
            suggestion = phrase("pass what follows by keyword, or leave {name} out", name=name)
            return Problem("argument-shifted", f"{symbol}({name})", use.line, detail, suggestion)


def _as_written(value: Value, one: Meaning, program: Program) -> str:
    """The name by which the tree imports a function or class of a package."""
    if not isinstance(one, Class | Function):
        return ""
    match value:
        case Named(dotted=name) if not program.owns(name):
            return moved(program, name, named(program, name)) or name
        case Member(of=of, name=name):
            match of:
                case Named(dotted=module) if not program.owns(module):
                    return f"{module}.{name}"
                case Member() if outer := _as_written(of, one, program):
                    return f"{outer}.{name}"
    return ""


def _before(value: Value, baseline: Program | None) -> Signature | None:
    """The one signature that the call had in the baseline."""
    if baseline is None:
        return None
    found = [
        takes(baseline, one)
        for one in present_on_target(baseline.evaluate(value))
        if isinstance(one, Class | Function | Method)
    ]
    return found[0].signature if len(found) == 1 and isinstance(found[0], Takes) else None
