"""Calls: do their arguments bind to what is called?"""

from __future__ import annotations

import re

from patcher.analysis.meaning import Class, Function, InstanceOf, Meaning, Method, TypeOf, Universe
from patcher.analysis.meaning.callables import NotOurs, Takes, takes
from patcher.analysis.meaning.subclasses import may_have
from patcher.analysis.model import Beside, Broken, CallOf, Fine, Problem, Undecided, Use, Verdict
from patcher.analysis.symbols import Signature, Unknown
from patcher.analysis.values import Member, Named, Value
from patcher.check.rules.binding import Mismatch, NotTaken, Required, Shifted, bind
from patcher.check.rules.members import lasting
from patcher.i18n import phrase


def judge_call(use: Use, need: CallOf, universe: Universe, baseline: Universe | None) -> Verdict:
    """Whether the call's arguments bind."""
    values = lasting(universe.evaluate(need.of))
    found = [(one, takes(universe, one)) for one in values]
    ours = [(one, what) for one, what in found if not isinstance(what, NotOurs)]
    if not ours:
        return Beside()
    unsure: Unknown | None = None
    problems: tuple[Problem, ...] = ()
    for one, what in ours:
        if isinstance(what, Takes):
            symbol = _as_written(need.of, one, universe) or what.symbol
            wrong = bind(need.shape, what.signature, _before(need.of, baseline))
            if not wrong:
                return Fine(symbol)
            if _taken_further_down(universe, one, wrong):
                unsure = unsure or Unknown("an override further down may take it", symbol)
            problems = problems or tuple(_problem(use, symbol, mismatch) for mismatch in wrong)
        elif isinstance(what, Unknown):
            unsure = unsure or what
    if unsure is not None:
        return Undecided(unsure.symbol, unsure.reason)
    if len(ours) < len(found):
        return Undecided(problems[0].symbol, "not all of the functions that may be meant are known")
    return Broken(problems)


def _taken_further_down(universe: Universe, one: Meaning, wrong: tuple[Mismatch, ...]) -> bool:
    """Whether what a method of a declared class does not take is taken by another method of that name."""
    match one:
        case Method(function=function, receiver=InstanceOf(of=Class() as of, exact=False) | TypeOf(of=Class() as of)):
            text = universe.symbols(of.module).text
            names = [
                mismatch.name.encode() for mismatch in wrong if isinstance(mismatch, NotTaken) and mismatch.keyword
            ]
            for mention in text.mentions(function.node.name) if names else ():
                if text.before(mention).strip() in (b"def", b"async def"):
                    taken = text.after(mention, function.node.name, 2000).partition(b"):")[0].partition(b") ->")[0]
                    if all(re.search(rb"\b%b\b" % name, taken) for name in names):
                        return may_have(universe, of, function.node.name)
            return False
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


def _as_written(value: Value, one: Meaning, universe: Universe) -> str:
    """The name by which the tree imports a function or class of a package."""
    if not isinstance(one, Class | Function):
        return ""
    match value:
        case Named(dotted=name) if not name.startswith(f"{universe.top}."):
            return name
        case Member(of=of, name=name):
            match of:
                case Named(dotted=module) if not module.startswith(f"{universe.top}."):
                    return f"{module}.{name}"
                case Member() if outer := _as_written(of, one, universe):
                    return f"{outer}.{name}"
    return ""


def _before(value: Value, baseline: Universe | None) -> Signature | None:
    """The one signature that the call had in the baseline."""
    if baseline is None:
        return None
    found = [
        takes(baseline, one) for one in lasting(baseline.evaluate(value)) if isinstance(one, Class | Function | Method)
    ]
    return found[0].signature if len(found) == 1 and isinstance(found[0], Takes) else None
