"""Members of classes of the tree and of its targets alike, along bases that lead from one to the other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from patcher.analysis.meaning.definitions import holds, meaning_of
from patcher.analysis.meaning.delegation import delegates
from patcher.analysis.meaning.frame import Frame
from patcher.analysis.meaning.inference import frame_of
from patcher.analysis.meaning.meanings import (
    InstanceOf,
    Meanings,
    Method,
    Outside,
    SuperOf,
    TooFarError,
    TreeClass,
    TreeFunction,
    TypeOf,
    united,
)
from patcher.analysis.meaning.results import function_result
from patcher.analysis.meaning.torch_modules import MODULE_NAMES, registered
from patcher.analysis.symbols import Absent, Class, External, Function, Unknown, Variable
from patcher.analysis.symbols.annotations import is_property
from patcher.analysis.symbols.classes import external_has, is_open, own_member, set_on_self

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe

Base: TypeAlias = Class | TreeClass | Outside | Unknown
Receiver: TypeAlias = InstanceOf | TypeOf | Class | TreeClass

_MOST_BASES = 150
"""How many classes one class may inherit from, each as often as a way leads there. A class of verl has 6 at most."""
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})
_MEMBER_NAMES = frozenset({"name", "value", "_name_", "_value_"})


def dotted(owner: Class | TreeClass) -> str:
    return owner.dotted if isinstance(owner, TreeClass) else f"{owner.module}.{owner.qualname}"


def ancestry(universe: Universe, owner: Class | TreeClass) -> tuple[Base, ...]:
    """The class and its bases, in the order in which Python asks them."""
    return universe.once(("bases", owner), lambda: _merge(universe, owner), (owner,))


def _merge(universe: Universe, owner: Class | TreeClass) -> tuple[Base, ...]:
    found: list[Base] = []
    for base in _direct(universe, owner):
        if isinstance(base, Class | TreeClass):
            found += ancestry(universe, base)
            if len(found) > _MOST_BASES:
                raise TooFarError("it inherits from too many classes")
        else:
            found.append(base)
    last = {base: index for index, base in enumerate(found)}
    return (owner, *(base for index, base in enumerate(found) if last[base] == index))


def _direct(universe: Universe, owner: Class | TreeClass) -> list[Base]:
    found: list[Base] = []
    if isinstance(owner, TreeClass):
        for value in owner.facts.bases:
            classes = [one for one in universe.evaluate(value) if not isinstance(one, Absent)]
            match classes:
                case [Class() | TreeClass() | Outside() | Unknown() as one, *_]:
                    found.append(one)
                case [TypeOf(of=of), *_]:
                    found.append(of)
                case _:
                    found.append(Unknown(f"a base of {owner.facts.qualname} is not known"))
        return found
    symbols = universe.symbols(owner.module)
    for node in owner.node.bases:
        definition = symbols.expression(owner.module, node).definition
        if isinstance(definition, External):
            definition = universe.resolve(definition.name).definition
        match definition:
            case Class():
                found.append(definition)
            case External(name=name):
                found.append(Outside(name))
            case _:
                found.append(Unknown(f"{owner.qualname} inherits from {ast.unparse(node)}"))
    return found


def instance_member(universe: Universe, of: InstanceOf, name: str) -> Meanings:
    """The attribute of an instance."""
    key = ("member", of, name)
    asked = f"{dotted(of.of)}.{name}"
    return universe.once(key, lambda: _of_instance(universe, of, name, asked), (Unknown(asked),))


def _of_instance(universe: Universe, of: InstanceOf, name: str, asked: str) -> Meanings:
    found = _search(universe, ancestry(universe, of.of), name, of, asked)
    if isinstance(of.of, Class) and all(isinstance(one, Absent) for one in found) and _is_factory(of.of):
        return (Unknown(f"{of.of.qualname} makes instances of other classes only", asked),)
    return found


def _is_factory(owner: Class) -> bool:
    """Whether the class refuses to be instantiated, as transformers' AutoTokenizer does: it stands for others."""
    for node in owner.node.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            body = [one for one in node.body if not isinstance(one, ast.Expr)]
            return len(body) == 1 and isinstance(body[0], ast.Raise)
    return False


def class_member(universe: Universe, owner: Class | TreeClass, name: str, receiver: Receiver) -> Meanings:
    """The attribute of a class."""
    key = ("member", owner, name, receiver)
    asked = f"{dotted(owner)}.{name}"
    return universe.once(
        key, lambda: _search(universe, ancestry(universe, owner), name, receiver, asked), (Unknown(asked),)
    )


def super_member(universe: Universe, of: SuperOf, name: str) -> Meanings:
    """The attribute that `super()` finds: along the receiver's bases behind the class."""
    order = ancestry(universe, of.receiver.of)
    order = order[order.index(of.of) + 1 :] if of.of in order else ancestry(universe, of.of)[1:]
    return _search(universe, order, name, of.receiver, f"{dotted(of.of)}.{name}")


def _search(universe: Universe, order: tuple[Base, ...], name: str, receiver: Receiver, asked: str) -> Meanings:
    unsure: Meanings = ()
    ours = asked if any(isinstance(base, Class) for base in order) else ""
    is_instance = isinstance(receiver, InstanceOf)
    for base in order:
        match base:
            case Class():
                if (found := _of_target(universe, base, name, receiver, order)) is not None:
                    return found
                if is_instance and (reason := is_open(universe.symbols(base.module), base)):
                    assert isinstance(receiver, InstanceOf)
                    through = delegates(universe, base, name, receiver)
                    if through is None:
                        unsure = unsure or (Unknown(reason, ours),)
                    elif through and not all(isinstance(one, Absent) for one in through):
                        return tuple(one for one in through if not isinstance(one, Absent))
            case TreeClass():
                if (found := _of_tree(universe, base, name, receiver)) is not None:
                    return found
            case Outside(name=outside):
                if is_instance and outside in _ENUMS and name in _MEMBER_NAMES:
                    return (Outside(f"{outside}.{name}"),)
                there = external_has(outside, name)
                if there is None and ours and outside.startswith("torch.nn."):
                    there = _of_torch_module(universe, order, name)
                if there:
                    return (Outside(f"{outside}.{name}"),)
                if there is None:
                    unsure = unsure or (Unknown(f"it inherits from {outside}", ours),)
            case Unknown(reason=reason):
                unsure = unsure or (Unknown(reason, ours),)
    if hasattr(object if is_instance else type, name) or name in ("__dict__", "__annotations__", "__slots__"):
        return (Outside(f"builtins.object.{name}"),)
    if name in ("__dataclass_fields__", "__wrapped__", "__orig_bases__", "__signature__"):
        return (Outside(f"builtins.object.{name}"),)
    return unsure or (Absent(*asked.rpartition(".")[::2]),)


def _of_torch_module(universe: Universe, order: tuple[Base, ...], name: str) -> bool | None:
    """A torch module also has what its package registers by that name, wherever that is done."""
    if name in MODULE_NAMES:
        return True
    package = next(base.module for base in order if isinstance(base, Class))
    return True if registered(universe.symbols(package).text, name) else None


def _of_tree(universe: Universe, base: TreeClass, name: str, receiver: Receiver) -> Meanings | None:
    if name in base.facts.methods:
        function = base.facts.methods[name]
        if isinstance(receiver, InstanceOf) and function.is_property:
            return universe.evaluate(function.result)
        return (TreeFunction(base.module, function),)
    facts = universe.forest.module(base.module)
    if facts is not None and (inner := facts.classes.get(f"{base.facts.qualname}.{name}")) is not None:
        return (TreeClass(base.module, inner),)
    if name in base.facts.attributes:
        from patcher.analysis.meaning.evaluation import bound_to, there

        return there(united(*(bound_to(universe, bound) for bound in base.facts.attributes[name])))
    if "__getattr__" in base.facts.methods or "__getattribute__" in base.facts.methods:
        return (Unknown(f"{base.facts.qualname} has a __getattr__"),)
    return None


def _of_target(
    universe: Universe, base: Class, name: str, receiver: Receiver, order: tuple[Base, ...]
) -> Meanings | None:
    symbols = universe.symbols(base.module)
    found = own_member(symbols, base, name)
    set_here = set_on_self(symbols, base).get(name, ()) if isinstance(receiver, InstanceOf) else ()
    if found is not None:
        match found.definition:
            case Function() as function:
                if is_property(function.node):
                    if isinstance(receiver, InstanceOf):
                        told = function_result(universe, function, receiver)
                        nothing = Variable(base.module, f"{base.qualname}.{name}")
                        return tuple(one for one in told if not isinstance(one, Unknown | Absent)) or (nothing,)
                    return (Outside("builtins.property"),)
                return (Method(function, receiver),)
            case Variable() as variable:
                if any(isinstance(one, Outside) and one.name in _ENUMS for one in order):
                    return (InstanceOf(base, exact=True),)
                if variable.annotation is not None or not set_here:
                    return holds(universe, variable, Frame(base.module, base)) or (variable,)
            case definition:
                return meaning_of(universe, definition)
    parts: list[Meanings] = []
    for one in set_here[:6]:
        variable = Variable(base.module, f"{base.qualname}.{name}", one.value, one.annotation)
        frame = Frame(base.module, base)
        if one.method is not None:
            frame = frame_of(base.module, base, one.method, receiver)
        parts.append(holds(universe, variable, frame))
        if one.annotation is not None and not isinstance(one.value, ast.Name):
            break
    if set_here:
        nothing = Variable(base.module, f"{base.qualname}.{name}")
        every = united(*parts)
        told = tuple(one for one in every if not isinstance(one, Variable))
        return told or every[:1] or (nothing,)
    if (outside := symbols.set_from_outside(base, name)) is not None:
        return meaning_of(universe, outside)
    return None
