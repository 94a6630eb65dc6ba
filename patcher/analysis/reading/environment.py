"""Environment variables that a file sets: in its own environment, a worker's or a child's. Reading them is no use."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from patcher.analysis.model import Context, EnvironmentVariable, Use
from patcher.analysis.syntax import below

_SPOKEN_OF = (b"environ", b"env_vars", b"setenv", b"putenv", b"ENV")
_CONTAINER = re.compile(r"(?i)(?:\w*_)?(?:env|envs|environ|environment|env_?vars?|env_?variables)(?:_\w+)?")
_SETTERS = frozenset({"setenv", "putenv", "set_env", "set_env_var", "temp_env_var"})
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_\w+|[A-Z]{4,}")


def environment_uses(
    content: bytes, tree: ast.Module, file: str, context_of: Callable[[ast.AST], Context]
) -> Iterator[Use]:
    """The variables that the file sets under names that are spelled out, each where its name stands.

    `context_of` is asked for statements, calls and dicts.
    """
    if any(word in content for word in _SPOKEN_OF):
        reader = _Reader(file, context_of, _constants(tree))
        reader.read(tree)
        yield from reader.uses


@dataclass(slots=True)
class _Reader:
    file: str
    context_of: Callable[[ast.AST], Context]
    constants: dict[str, str]
    uses: list[Use] = field(default_factory=list)
    _dicts: set[int] = field(default_factory=set)

    def read(self, tree: ast.Module) -> None:
        for node in below(tree):
            match node:
                case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=items) | ast.List(elts=items)):
                    self._looped(node, name, items)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assigned(node, target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assigned(node, target, value)
                case ast.AugAssign(target=target, op=ast.BitOr(), value=value) if _is_container(target):
                    self._items(value)
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        if isinstance(key, ast.Constant) and key.value in ("env_vars", "env"):
                            self._items(value)
                case ast.Call():
                    self._called(node)
                case _:
                    pass

    def _assigned(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Subscript(value=container, slice=key) if _is_container(container):
                self._set(statement, key, value)
                self._items(value)
            case ast.Name() | ast.Attribute() if _is_container(target):
                self._items(value)
            case _:
                pass

    def _looped(self, loop: ast.For, name: str, items: list[ast.expr]) -> None:
        """`for key in ("A", "B"): os.environ[key] = …`"""
        for node in ast.walk(loop):
            match node:
                case ast.Assign(targets=[ast.Subscript(value=container, slice=ast.Name(id=key))]) if (
                    key == name and _is_container(container)
                ):
                    for item in items:
                        self._set(node, item, None)
                case _:
                    pass

    def _called(self, call: ast.Call) -> None:
        match call:
            case ast.Call(func=ast.Attribute(value=container, attr="setdefault"), args=[key, value]) if _is_container(
                container
            ):
                self._set(call, key, value)
            case ast.Call(func=ast.Attribute(value=container, attr="update"), args=arguments) if _is_container(
                container
            ):
                self._keywords(call)
                for argument in arguments:
                    self._items(argument)
            case ast.Call(func=ast.Attribute(attr="dict"), args=[container, changed, *_]) if _is_container(container):
                self._items(changed)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[key, *rest]) if name in _SETTERS:
                self._set(call, key, rest[0] if rest else None)
            case _:
                pass
        for keyword in call.keywords:
            if keyword.arg in ("env", "env_vars"):
                self._items(keyword.value)

    def _items(self, value: ast.expr) -> None:
        """The variables that a dict literal holds, however it is put together."""
        match value:
            case ast.Dict(keys=keys, values=values) if id(value) not in self._dicts:
                self._dicts.add(id(value))
                for key, item in zip(keys, values, strict=True):
                    if key is None:
                        self._items(item)
                    elif isinstance(item, ast.Dict):
                        continue
                    else:
                        self._set(value, key, item)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self._items(left)
                self._items(right)
            case ast.IfExp(body=body, orelse=orelse):
                self._items(body)
                self._items(orelse)
            case ast.Call(func=ast.Name(id="dict"), args=arguments):
                self._keywords(value)
                for argument in arguments:
                    self._items(argument)
            case _:
                pass

    def _keywords(self, call: ast.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._add(call, keyword.arg, keyword.lineno, keyword.value)

    def _set(self, where: ast.AST, key: ast.expr, value: ast.expr | None) -> None:
        match key:
            case ast.Constant(value=str(name)):
                self._add(where, name, key.lineno, value)
            case ast.Name(id=constant) if constant in self.constants:
                self._add(where, self.constants[constant], key.lineno, value)
            case _:
                pass

    def _add(self, where: ast.AST, name: str, line: int, value: ast.expr | None) -> None:
        if _VARIABLE.fullmatch(name):
            text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
            self.uses.append(Use(self.file, line, EnvironmentVariable(name, text), self.context_of(where)))


def _is_container(node: ast.expr) -> bool:
    """Whether an expression is an environment by its name: `os.environ`, `runtime_env["env_vars"]`, `worker_env`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _CONTAINER.fullmatch(name) is not None and not name.endswith(("_keys", "_names"))
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in ("env_vars", "env")
        case _:
            return False


def _constants(tree: ast.Module) -> dict[str, str]:
    """Names that the module's body sets to a text."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
