"""The parameters of functions, methods and constructors; those of dataclasses, attrs, pydantic and msgspec are
generated from their fields.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from patcher.analysis.symbols.classes import Base, declared_fields, linearise, methods
from patcher.analysis.symbols.definition import Class, Definition, External, Function, Unknown, Variable, is_static
from patcher.analysis.symbols.lookup import Lookup
from patcher.analysis.symbols.scope import FunctionNode
from patcher.analysis.syntax import last_name

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


def signature_of(symbols: Lookup, definition: Definition) -> Signature | Unknown:
    """The parameters that a call of the definition takes. Decorators are taken to keep them."""
    match definition:
        case Function(node=node, owner=owner):
            return _read(node.args, drop=owner is not None and not is_static(node))
        case Class():
            return _constructor(symbols, definition)
        case Variable(value=ast.Lambda(args=arguments)):
            return _read(arguments, drop=False)
        case _:
            return Unknown("what a call of it takes is not known")


def _read(arguments: ast.arguments, *, drop: bool) -> Signature:
    plain = [*arguments.posonlyargs, *arguments.args]
    optional_from = len(plain) - len(arguments.defaults)
    found = [
        Parameter(
            argument.arg,
            "positional" if index < len(arguments.posonlyargs) else "either",
            required=index < optional_from,
        )
        for index, argument in enumerate(plain)
    ]
    found = found[1:] if drop else found
    found += [
        Parameter(argument.arg, "keyword", required=default is None)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return Signature(tuple(found), arguments.vararg is not None, arguments.kwarg is not None)


def _constructor(symbols: Lookup, owner: Class) -> Signature | Unknown:
    maker = constructor_of(linearise(symbols, owner), lambda _: symbols)
    if isinstance(maker, ast.FunctionDef | ast.AsyncFunctionDef):
        return _read(maker.args, drop=True)
    if isinstance(maker, Unknown):
        return Unknown(f"the constructor of {owner.qualname} is that of a class from outside")
    return maker


def constructor_of(order: Sequence[Base], symbols_of: Callable[[Class], Lookup]) -> FunctionNode | Signature | Unknown:
    """What makes instances of a class with these bases: a method, or fields; `Unknown` if a class from outside does."""
    maker: FunctionNode | None = None
    for index, base in enumerate(order):
        match base:
            case Class():
                own = {method.name: method for method in methods(symbols_of(base), base)}
                # The first class in Python's order that says how it is made: an `__init__`, or the fields of a
                # dataclass.
                if "__init__" in own:
                    return own["__init__"]
                if _is_dataclass(symbols_of(base), base):
                    return _from_fields([b for b in _own(order[index:]) if _is_dataclass(symbols_of(b), b)])
                # `__new__` alone decides only if no base has an `__init__`.
                if "__new__" in own and maker is None:
                    maker = own["__new__"]
            case External(name=name) if name in _FIELDS:
                return _from_fields(_own(order), positional=name in _POSITIONAL)
            case External(name=name) if name in _PLAIN:
                continue
            case External(name=name) if maker is None:
                return Unknown(f"{name} is from outside", name)
            case Unknown() if maker is None:
                return base
            case _:
                continue
    return maker or Signature(())


def read_parameters(node: FunctionNode, *, bound: bool) -> Signature:
    """A function's parameters; without the first if it is `bound`."""
    return _read(node.args, drop=bound)


def _own(order: Iterable[Base]) -> list[Class]:
    """The package's own among a class and its bases."""
    return [base for base in order if isinstance(base, Class)]


_FIELDS = ("pydantic.BaseModel", "pydantic.main.BaseModel", "msgspec.Struct", "typing.NamedTuple", "typing.TypedDict",
           "typing_extensions.TypedDict")  # fmt: skip
_POSITIONAL = ("msgspec.Struct", "typing.NamedTuple")
_PLAIN = ("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol")


def _is_dataclass(symbols: Lookup, owner: Class) -> bool:
    return any(_makes_dataclass(symbols, owner, mark) for mark in owner.node.decorator_list)


def _makes_dataclass(symbols: Lookup, owner: Class, mark: ast.expr) -> bool:
    called = mark.func if isinstance(mark, ast.Call) else mark
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.endswith("dataclass"):
            return True
        case ast.Name() | ast.Attribute():
            found = symbols.expression(owner.module, called).definition
        case _:
            return False
    # Decorators of attrs make fields as those of dataclasses do.
    if isinstance(found, External):
        return found.name in ("attr.s", "attr.define", "attrs.define", "attrs.frozen")
    return isinstance(found, Function) and any(
        last_name(node) in ("dataclass", "dataclass_transform") for node in ast.walk(found.node)
    )


def _from_fields(bases: list[Class], *, positional: bool = True) -> Signature:
    """The constructor that is generated from annotated fields, those of the furthest base first."""
    found: dict[str, Parameter] = {}
    any_keyword = False
    for base in reversed(bases):
        keyword_only = any(
            isinstance(mark, ast.Call) and any(word.arg == "kw_only" and _is_true(word.value) for word in mark.keywords)
            for mark in base.node.decorator_list
        ) or any(word.arg == "kw_only" and _is_true(word.value) for word in base.node.keywords)
        any_keyword = any_keyword or _allows_extra(base)
        for name, node in declared_fields(base):
            # pydantic takes names with an underscore for private attributes, not for fields.
            if not positional and name.startswith("_"):
                continue
            kind = ast.unparse(node.annotation).strip("'\"").rpartition(".")[2]
            # `_: KW_ONLY` in a dataclass: the fields after it are passed by keyword.
            if kind == "KW_ONLY":
                keyword_only = True
            elif not ast.unparse(node.annotation).strip("'\"").startswith(("ClassVar", "typing.ClassVar")):
                words = (
                    {word.arg: word.value for word in node.value.keywords} if isinstance(node.value, ast.Call) else {}
                )
                # `field(init=False)` is no parameter.
                if "init" in words and not _is_true(words["init"]):
                    found.pop(name, None)
                    continue
                alone = keyword_only or not positional or ("kw_only" in words and _is_true(words["kw_only"]))
                found[name] = Parameter(name, "keyword" if alone else "either", required=_has_no_default(node.value))
    return Signature(tuple(found.values()), any_keyword=any_keyword)


def _has_no_default(value: ast.expr | None) -> bool:
    match value:
        case None:
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=words) if name in (
            "field",
            "Field",
        ):
            given = {word.arg for word in words} & {"default", "default_factory", "factory"}
            return not given and (not args or (isinstance(args[0], ast.Constant) and args[0].value is ...))
        case _:
            return False


def _allows_extra(base: Class) -> bool:
    """Whether a pydantic model takes fields that it does not declare."""
    for node in base.node.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "model_config" for t in node.targets
        ):
            return "extra='allow'" in ast.unparse(node.value) or "'extra': 'allow'" in ast.unparse(node.value)
    return False


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
