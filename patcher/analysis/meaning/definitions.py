"""Definitions of a target's package -> meanings: what a variable holds, what an imported name is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.meaning.annotations import annotated_as
from patcher.analysis.meaning.frame import Frame
from patcher.analysis.meaning.meanings import InstanceOf, Meanings, Outside, TypeOf
from patcher.analysis.symbols import (
    Absent,
    Class,
    Definition,
    External,
    Function,
    Module,
    Unknown,
    Variable,
    full_name,
)

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe


def meaning_of(universe: Universe, definition: Definition, asked: str = "") -> Meanings:
    """What a definition means as a value; a variable is what it holds, if that can be told."""
    match definition:
        case Module() | Class() | Function() | Absent():
            return (definition,)
        case External(name=name):
            package = name.partition(".")[0]
            if package not in universe.names:
                return (Outside(name),)
            if package in universe.target.packages:
                found = universe.resolve(name).definition
                return (Outside(name),) if isinstance(found, External) else meaning_of(universe, found, asked)
            return (Absent("", package),)
        case Unknown(reason=reason, symbol=symbol):
            return (Unknown(reason, symbol or asked or reason),)
        case Variable():
            return holds(universe, definition, Frame(definition.module))


def holds(universe: Universe, variable: Variable, frame: Frame) -> Meanings:
    """What a variable holds by its annotation, else by what is assigned to it; itself if that cannot be told."""
    key = ("holds", full_name(variable), variable.annotation, variable.value, frame)
    return universe.once(key, lambda: _holds(universe, variable, frame), (variable,))


def _holds(universe: Universe, variable: Variable, frame: Frame) -> Meanings:
    from patcher.analysis.meaning.inference import infer

    told: Meanings = ()
    if variable.annotation is not None and not _says_nothing(variable.annotation):
        told = annotated_as(universe, variable.annotation, frame.module, frame)
    if not told and variable.value is not None:
        if isinstance(variable.value, ast.Constant) and variable.value.value is None:
            return (variable,) if variable.annotation is None else ()
        told = infer(universe, variable.value, frame)
    if not told or all(isinstance(one, Unknown | Absent) for one in told):
        return (variable,)
    return tuple(one for one in told if not isinstance(one, Unknown | Absent))


def _says_nothing(annotation: ast.expr) -> bool:
    """`Final`, `ClassVar` or `TypeAlias` without a class."""
    return isinstance(annotation, ast.Name | ast.Attribute) and (
        getattr(annotation, "id", "") or getattr(annotation, "attr", "")
    ) in ("Final", "ClassVar", "TypeAlias")


def exactly(meanings: Meanings) -> Meanings:
    """Classes for `type[X]`."""
    return tuple(one.of if isinstance(one, TypeOf) else one for one in meanings)


def instance(of: Class) -> InstanceOf:
    return InstanceOf(of)
