"""The attributes that instances of a class have, without making one."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from .isolation import Isolation
from .state import Instance, Object, State, UnknownError, origin_of, quiet
from .texts import hint, source

_OTHERS = frozenset({"builtins", "torch", "pydantic", "abc", "typing"})
"""Packages whose classes are not read: what they bring is no question to another package."""


class Evaluates(Protocol):
    """Evaluates the value that a method gives to an attribute: `self.engine = LLM(...)`."""

    isolation: Isolation

    def attribute(self, state: State, name: str) -> State: ...

    def result(self, state: State) -> State: ...


class Fields:
    """Annotations and fields are asked for; what methods set on `self` is read from the source."""

    def __init__(self, states: Evaluates) -> None:
        self.states = states
        self._sets: dict[type, dict[str, Any]] = {}
        self._reading: set[type] = set()

    def _type(self, annotation: Any, module: str) -> Any:
        return hint(annotation, module, self.states.isolation)

    def of(self, cls: type) -> dict[str, Any]:
        """Attributes of an instance by annotations, fields and assignments to `self`, each with its type or None."""
        fields: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-1]):
            if origin_of(base) in _OTHERS - {self.states.isolation.package}:
                continue
            for name, given in self._assigned(base).items():
                if given is not None or name not in fields:
                    fields[name] = given
            for name, annotation in vars(base).get("__annotations__", {}).items():
                fields[name] = quiet(partial(self._type, annotation, base.__module__))
        for name in getattr(cls, "__struct_fields__", ()):
            fields.setdefault(name, None)
        for name in getattr(cls, "model_fields", None) or ():
            fields.setdefault(name, None)
        return fields

    def _assigned(self, cls: type) -> Mapping[str, Any]:
        """`self.name = …` in the methods of a class, from its source."""
        if cls in self._reading:
            raise UnknownError("classes that lead to each other")
        if cls not in self._sets:
            self._reading.add(cls)
            found: dict[str, Any] = {}
            self._sets[cls] = found
            try:
                for definition in ast.parse(textwrap.dedent(source(cls))).body[:1]:
                    for method in ast.walk(definition):
                        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.args.args:
                            self._in_method(method, method.args.args[0].arg, cls, found)
            except (SyntaxError, ValueError):
                pass
            finally:
                self._reading.discard(cls)
        return self._sets[cls]

    def _in_method(
        self, method: ast.FunctionDef | ast.AsyncFunctionDef, first: str, cls: type, found: dict[str, Any]
    ) -> None:
        parameters = {
            argument.arg: argument.annotation
            for argument in [*method.args.args, *method.args.kwonlyargs]
            if argument.annotation
        }
        for node in ast.walk(method):
            targets: list[ast.expr] = []
            hint: Any = None
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
                hint = quiet(partial(self._type, ast.unparse(node.annotation), cls.__module__))
            elif isinstance(node, ast.Assign):
                targets = [
                    inner
                    for target in node.targets
                    for inner in (target.elts if isinstance(target, ast.Tuple) else [target])
                ]
                if len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
                    hint = quiet(partial(self._value, node.value, parameters, cls, found))
            elif isinstance(node, ast.AugAssign):
                targets = [node.target]
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id=holder), attr=name) if holder == first:
                        if name not in found or found[name] is None:
                            found[name] = hint
                        elif hint is not None and hint != found[name]:
                            found[name] = Any

    def _value(self, node: ast.expr, parameters: dict[str, ast.expr], cls: type, found: dict[str, Any]) -> Any:
        """The type of an assigned value, where it is a parameter, an attribute of one, or a call of a class."""
        match node:
            case ast.Name(id=name) if name in parameters:
                return self._type(ast.unparse(parameters[name]), cls.__module__)
            case ast.Call(func=function):
                try:
                    callee = eval(ast.unparse(function), vars(sys.modules[cls.__module__]))
                except Exception:
                    return None
                state = self.states.result(Object(callee))
                return state.type if isinstance(state, Instance) else None
            case ast.Attribute(value=inner, attr=name):
                state = self.states.attribute(Instance(self._value(inner, parameters, cls, found) or Any), name)
                return state.type if isinstance(state, Instance) else None
        return None
