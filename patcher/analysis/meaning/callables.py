"""What a call of a meaning takes."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from patcher.analysis.meaning.classes import Receiver, ancestry, dotted
from patcher.analysis.meaning.decorators import changes_parameters
from patcher.analysis.meaning.forwarding import widened
from patcher.analysis.meaning.inference import is_class_method, is_static
from patcher.analysis.meaning.meanings import InstanceOf, Meaning, Method, Outside, TreeClass, TreeFunction, TypeOf
from patcher.analysis.symbols import Absent, Class, External, Function, Signature, Unknown, Variable, full_name
from patcher.analysis.symbols.signature import constructor_of, read_parameters

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe


@dataclass(frozen=True, slots=True)
class Takes:
    """The parameters of something that is of a package; `symbol` is how it is called there."""

    signature: Signature
    symbol: str


@dataclass(frozen=True, slots=True)
class NotOurs:
    """A call of something that is of no package that is checked against."""


Callable_: TypeAlias = Takes | NotOurs | Unknown
_FREE = Signature((), any_positional=True, any_keyword=True)
_ENUMS = ("enum.",)


def takes(universe: Universe, called: Meaning) -> Callable_:
    """The parameters that a call of the meaning binds to."""
    in_a_circle: Callable_ = NotOurs()
    return universe.once(("takes", called), lambda: _takes(universe, called), in_a_circle)


def _takes(universe: Universe, called: Meaning) -> Callable_:
    match called:
        case Class() | TreeClass():
            return _constructor(universe, called)
        case TypeOf(of=of):
            # A subclass may take something else, but rarely does.
            return _constructor(universe, of)
        case Function():
            return _function(universe, called, bound=False, symbol=full_name(called))
        case Method(function=function, receiver=receiver):
            on_instance = isinstance(receiver, InstanceOf)
            bound = not is_static(function.node) and (on_instance or is_class_method(function.node))
            if function.node.name == "__new__":
                bound = False
            kind = receiver.of if isinstance(receiver, InstanceOf | TypeOf) else receiver
            asked = kind if isinstance(kind, Class) else function.owner
            symbol = f"{dotted(asked)}.{function.node.name}" if asked is not None else full_name(function)
            return _function(universe, function, bound=bound, symbol=symbol, receiver=receiver)
        case InstanceOf(of=Class() as of):
            return _instance(universe, called, of)
        case Variable(value=ast.Lambda(args=arguments)):
            node = ast.FunctionDef(name="<lambda>", args=arguments, body=[], decorator_list=[])
            return Takes(read_parameters(node, bound=False), full_name(called))
        case Variable():
            return Unknown("what it holds is not known", full_name(called))
        case Absent() | Outside() | TreeFunction() | Unknown():
            return NotOurs()
        case _:
            return NotOurs()


def _instance(universe: Universe, called: InstanceOf, of: Class) -> Callable_:
    from patcher.analysis.meaning.members import lookup

    for one in lookup(universe, called, "__call__"):
        if isinstance(one, Method):
            return takes(universe, one)
        if isinstance(one, Outside) and one.name.startswith("torch.nn"):
            for inner in lookup(universe, called, "forward"):
                if isinstance(inner, Method):
                    return takes(universe, inner)
    return Unknown("what a call of an instance takes is not known", dotted(of))


def _function(
    universe: Universe, function: Function, *, bound: bool, symbol: str, receiver: Receiver | None = None
) -> Callable_:
    changes = changes_parameters(universe, function)
    if changes is None:
        return Unknown(f"{function.qualname} is decorated", symbol)
    signature = read_parameters(function.node, bound=bound)
    if changes:
        signature = _with(signature, changes)
    return Takes(widened(universe, function, signature, receiver), symbol)


def _with(signature: Signature, names: frozenset[str]) -> Signature:
    from patcher.analysis.symbols import Parameter

    known = {one.name for one in signature.parameters}
    more = tuple(Parameter(name, "keyword", required=False) for name in sorted(names - known))
    return Signature((*signature.parameters, *more), signature.any_positional, signature.any_keyword)


def _constructor(universe: Universe, owner: Class | TreeClass) -> Callable_:
    symbol = dotted(owner)
    order: list[Class | External | Unknown] = []
    behind_tree, raised = isinstance(owner, TreeClass), False
    for base in ancestry(universe, owner):
        match base:
            case TreeClass():
                if {"__init__", "__new__", "__call__"} & set(base.facts.methods):
                    return NotOurs()
            case Class():
                if behind_tree and not order:
                    symbol = dotted(base)
                order.append(base)
            case Outside(name=name):
                if name.startswith(_ENUMS) or name.endswith(".TypedDict"):
                    return Takes(_FREE, symbol)
                if _is_exception(name):
                    raised = True
                order.append(External(name))
            case Unknown():
                order.append(base)
    if not any(isinstance(one, Class) for one in order):
        return NotOurs()
    if _has_metaclass(order):
        return Unknown("it has a metaclass", symbol)
    made = constructor_of(order, lambda base: universe.symbols(base.module))
    if raised and isinstance(made, Unknown):
        return Takes(Signature((), any_positional=True), symbol)
    match made:
        case Unknown(reason=reason):
            return Unknown(reason, symbol)
        case Signature():
            if isinstance(owner, TreeClass):
                own = {
                    name
                    for base in ancestry(universe, owner)
                    if isinstance(base, TreeClass)
                    for name in base.facts.attributes
                }
                made = _with(made, frozenset(own))
            return Takes(made, symbol)
        case node:
            home = next(base for base in order if _holds(base, node))
            assert isinstance(home, Class)
            function = Function(home.module, f"{home.qualname}.{node.name}", node, home)
            changes = changes_parameters(universe, function)
            if changes is None:
                return Unknown(f"{function.qualname} is decorated", symbol)
            signature = _with(read_parameters(node, bound=True), changes)
            return Takes(widened(universe, function, signature, InstanceOf(owner, exact=True)), symbol)


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _holds(base: object, node: ast.AST) -> bool:
    return isinstance(base, Class) and any(inner is node for inner in ast.walk(base.node))


def _has_metaclass(order: list[Class | External | Unknown]) -> bool:
    for one in order:
        if isinstance(one, Class):
            for keyword in one.node.keywords:
                if keyword.arg == "metaclass":
                    tail = ast.unparse(keyword.value).rpartition(".")[2]
                    if tail not in ("ABCMeta", "EnumMeta", "EnumType"):
                        return True
    return False
