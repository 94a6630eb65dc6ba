"""The parameters of a function as plain values, without Python's syntax."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Literal

from patcher.analysis.syntax import with_defaults

Kind = Literal["positional", "either", "keyword"]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: Kind
    required: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters in order, without `self`; `any_positional` and `any_keyword` are `*args` and `**kwargs`."""

    parameters: tuple[Parameter, ...]
    any_positional: bool = False
    any_keyword: bool = False

    @property
    def first(self) -> str:
        """The name of the first parameter that can be passed by position; "" if there is none."""
        return next(iter(self.positional), "")

    @property
    def positional(self) -> tuple[str, ...]:
        """The names of all that can be passed by position."""
        return tuple(one.name for one in self.parameters if one.kind != "keyword")

    def bound(self) -> Signature:
        """The same without the first, which the instance or the class is passed for."""
        return replace(self, parameters=self.parameters[1:]) if self.first else self


def signature_in(arguments: ast.arguments) -> Signature:
    """The parameters that a function or a lambda is written with, `self` included."""
    either = len(arguments.posonlyargs)
    keyword = either + len(arguments.args)
    found = tuple(
        Parameter(
            argument.arg,
            "positional" if index < either else "either" if index < keyword else "keyword",
            required=default is None,
        )
        for index, (argument, default) in enumerate(with_defaults(arguments))
    )
    return Signature(found, arguments.vararg is not None, arguments.kwarg is not None)
