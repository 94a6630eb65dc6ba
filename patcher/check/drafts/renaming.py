"""Was a parameter renamed? Only a witness can tell: words or code of the release that had both, or its very place."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import SequenceMatcher

from patcher.check.drafts.callees import Callee, Formal
from patcher.check.drafts.shims import inverted, named_instead, same_stem
from patcher.i18n import Phrase, phrase

_ALIKE = 0.7


@dataclass(frozen=True, slots=True)
class Renamed:
    """The parameter's new name, whether its sense is the opposite, and what says so."""

    name: str
    inverted: bool
    evidence: Phrase


def renamed(name: str, old: Callee | None, new: Callee) -> Renamed | None:
    """What the parameter is called now; None unless a witness supports one name."""
    if old is None or name not in old.formals:
        return None
    was = old.formals[name]
    if old.node is not None:
        for other in named_instead(old.node, name):
            if other in new.formals and (found := _by_words(was, new.formals[other])) is not None:
                return found
        if (found := _by_code(name, old, new)) is not None:
            return found
    return _by_place(was, old, new)


def _by_words(was: Formal, now: Formal) -> Renamed | None:
    opposite = inverted(was.name, now.name)
    if opposite and not (was.boolean and now.boolean):
        return None
    if not opposite and not _same_kind(was, now):
        return None
    told = phrase("the last release that took {old} says to use {new} in its place", old=was.name, new=now.name)
    return Renamed(now.name, opposite, told)


def _by_code(name: str, old: Callee, new: Callee) -> Renamed | None:
    """`new = old` or `new = not old` in the function that took both."""
    for part in ast.walk(old.node) if old.node is not None else ():
        match part:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=source)) if source == name:
                opposite = False
            case ast.Assign(
                targets=[ast.Name(id=target)], value=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=source))
            ) if source == name:
                opposite = True
            case _:
                continue
        if target not in old.formals or target not in new.formals or inverted(name, target) != opposite:
            continue
        if opposite and not (old.formals[name].boolean and new.formals[target].boolean):
            continue
        told = phrase("the last release that took {old} handed it on as {new}", old=name, new=target)
        return Renamed(target, opposite, told)
    return None


def _by_place(was: Formal, old: Callee, new: Callee) -> Renamed | None:
    """A parameter that came in the very place of the one that went, of the same kind, default and almost name."""
    came = [formal for formal in new.formals.values() if formal.name not in old.formals]
    went = [formal for formal in old.formals.values() if formal.name not in new.formals]
    if _place(was, old) is None:
        return None
    found = [
        formal
        for formal in came
        if _place(formal, new) == _place(was, old)
        and _same_kind(was, formal)
        and (SequenceMatcher(None, was.name, formal.name).ratio() >= _ALIKE or same_stem(was.name, formal.name))
    ]
    if len(found) != 1 or len([formal for formal in went if _place(formal, old) == _place(was, old)]) != 1:
        return None
    now = found[0]
    opposite = inverted(was.name, now.name)
    if opposite:
        if not (was.boolean and now.boolean and same_stem(was.name, now.name) and _opposite_defaults(was, now)):
            return None
    elif not _same_default(was, now):
        return None
    told = phrase(
        "{new} stands in the place of {old}, with the same type and a default to match", old=was.name, new=now.name
    )
    return Renamed(now.name, opposite, told)


def _place(formal: Formal, callee: Callee) -> tuple[str, ...] | None:
    """The neighbours that a parameter stands between; None where it stands alone."""
    names = list(callee.formals)
    at = names.index(formal.name)
    around = (names[at - 1] if at else "", names[at + 1] if at + 1 < len(names) else "")
    return around if len(names) > 1 and any(around) else None


def _same_kind(was: Formal, now: Formal) -> bool:
    if was.kind and now.kind:
        return was.kind == now.kind
    return was.boolean and now.boolean


def _same_default(was: Formal, now: Formal) -> bool:
    if was.default is None or now.default is None:
        return was.default is now.default
    return ast.dump(was.default) == ast.dump(now.default)


def _opposite_defaults(was: Formal, now: Formal) -> bool:
    match was.default, now.default:
        case ast.Constant(value=bool() as one), ast.Constant(value=bool() as two):
            return one is not two
        case _:
            return False
