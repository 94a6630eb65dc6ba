"""How a call's arguments bind to parameters, and what is wrong with that. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.analysis.model import Keyword, Shape
from patcher.analysis.symbols import Parameter, Signature


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
    """The argument meant for one parameter (or one that is gone) reaches another."""

    name: str
    reaches: str


Mismatch: TypeAlias = NotTaken | Required | Shifted
Kind: TypeAlias = Literal["positional", "either", "keyword"]


def bind(shape: Shape, signature: Signature, before: Signature | None = None) -> tuple[Mismatch, ...]:
    """What is wrong with a call of that shape; `before` is the signature that it was written for."""
    takers = [one for one in signature.parameters if one.kind != "keyword"]
    names = {one.name for one in signature.parameters if one.kind != "positional"}
    wrong: list[Mismatch] = []
    given = {word.name for word in shape.keywords}
    if not signature.any_keyword:
        wrong += [NotTaken(word.name, word) for word in shape.keywords if word.name not in names]
    extra = len(shape.positional) - len(takers)
    if extra > 0 and not signature.any_positional:
        wrong += [NotTaken(name) for name in _dropped(shape.positional, takers, extra, before)]
    elif (shifted := _shifted(shape.positional, takers, before, given)) is not None:
        wrong.append(shifted)
    if not (shape.partial or shape.any_keyword):
        filled = {one.name for one in takers[: len(shape.positional)]}
        for one in signature.parameters:
            if not one.required or one.name in given | filled or one.name in shape.sometimes:
                continue
            if shape.any_positional and one.kind != "keyword":
                continue
            wrong.append(Required(one.name))
    return tuple(wrong)


def doubled(shape: Shape, signature: Signature) -> tuple[str, ...]:
    """Parameters that get a value twice: by position and by keyword."""
    takers = [one for one in signature.parameters if one.kind == "either"]
    given = {word.name for word in shape.keywords}
    return tuple(one.name for one in takers[: len(shape.positional)] if one.name in given)


def _dropped(positional: tuple[str, ...], takers: list[Parameter], extra: int, before: Signature | None) -> list[str]:
    """Which of too many positional arguments have lost their parameter; "" where that cannot be told."""
    now = {one.name for one in takers}
    if before is not None:
        old = [one.name for one in before.parameters if one.kind != "keyword"][: len(positional)]
        gone = [name for name in old if name not in now]
        if len(gone) == extra:
            return gone
    strange = [name for name in positional if name and name not in now]
    if len(strange) == extra and any(name in now for name in positional):
        return strange
    return list(positional[len(takers) :])


def _shifted(
    positional: tuple[str, ...], takers: list[Parameter], before: Signature | None, given: set[str]
) -> Shifted | None:
    """The first positional argument that reaches another parameter than it is meant for."""
    now = [one.name for one in takers]
    if before is not None:
        old = [one.name for one in before.parameters if one.kind != "keyword"]
        for index in range(min(len(positional), len(old), len(now))):
            was, is_ = old[index], now[index]
            if was != is_ and (was in now or is_ in old):
                return Shifted(was, is_)
    reached = dict(zip(now, positional, strict=False))
    for index, name in enumerate(positional[: len(now)]):
        if name and name != now[index] and name in reached and reached[name] != name and name not in given:
            meant = next((one for one in positional[:index] if one and one not in now), name)
            return Shifted(meant, reached_by(now, positional, meant))
    return None


def reached_by(now: list[str], positional: tuple[str, ...], name: str) -> str:
    return now[positional.index(name)]
