"""What definitions, expressions, calls and iteration give in a target's sources, as far as syntax tells."""

from __future__ import annotations

from patcher.analysis import expressions as ex
from patcher.analysis.expressions import Expression, Place, is_none, last_name
from patcher.analysis.meaning.annotations import annotated_as
from patcher.analysis.meaning.lookup import Lookup
from patcher.analysis.meaning.meanings import (
    Container,
    ElementGetter,
    Frame,
    InstanceOf,
    Meaning,
    Meanings,
    Method,
    Outside,
    Receiver,
    SuperOf,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    class_of,
    frame_of,
    union,
)
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


def meaning_of(program: Lookup, definition: Definition, asked: str = "") -> Meanings:
    """What a definition means as a value; a variable is what it holds, if that is known."""
    match definition:
        case Module() | Class() | Function() | Absent():
            return (definition,)
        case External(name=name):
            package = name.partition(".")[0]
            # Something of a package that nobody asked about.
            if package not in program.names:
                return (Outside(name),)
            if package in program.target.packages:
                found = program.resolve(name).definition
                return (Outside(name),) if isinstance(found, External) else meaning_of(program, found, asked)
            # The package is checked against and is not installed.
            return (Absent("", package),)
        case Unknown(reason=reason, symbol=symbol):
            return (Unknown(reason, symbol or asked or reason),)
        case Variable():
            return variable_value(program, definition, Frame(definition.module))


def variable_value(program: Lookup, variable: Variable, frame: Frame) -> Meanings:
    """What a variable holds by its annotation, else by what is assigned to it; itself if that cannot be known."""
    key = ("holds", variable, frame)
    return program.once(key, lambda: _variable_value(program, variable, frame), (variable,))


def _variable_value(program: Lookup, variable: Variable, frame: Frame) -> Meanings:
    values: Meanings = ()
    # `Final`, `ClassVar` or `TypeAlias` without a class says nothing.
    if variable.annotation is not None and last_name(variable.annotation) not in ("Final", "ClassVar", "TypeAlias"):
        values = annotated_as(program, variable.annotation, frame.module, frame)
    if not values and variable.value is not None:
        # `engine = None` at module level is filled in later, with what cannot be known.
        if is_none(variable.value):
            return (variable,) if variable.annotation is None else ()
        values = infer(program, variable.value, frame)
    if not values or all(isinstance(one, Unknown | Absent) for one in values):
        return (variable,)
    return tuple(one for one in values if not isinstance(one, Unknown | Absent))


_UNTOLD = Unknown("computed")
_MOST = 6
"""Assignments to one local name that are looked at."""


def infer(program: Lookup, node: Expression, frame: Frame) -> Meanings:
    """What the expression gives."""
    return program.once(("infer", Place(node), frame), lambda: _infer(program, node, frame), (_UNTOLD,))


def _infer(program: Lookup, node: Expression, frame: Frame) -> Meanings:
    match node:
        case ex.Constant(value=None):
            return ()
        case ex.Constant(value=value):
            return (Outside(f"builtins.{type(value).__name__}"),)
        case ex.Formatted():
            return (Outside("builtins.str"),)
        case ex.Name(id=name):
            return _name(program, node, name, frame)
        case ex.Attribute(of=value, name=attribute):
            return union(*(program.lookup(one, attribute) for one in infer(program, value, frame)))
        case ex.Call(of=ex.Name(id="super"), positional=()):
            # `super().method()`: the look-up goes on behind the class that the code stands in.
            if frame.owner is not None and isinstance(frame.receiver, InstanceOf | TypeOf):
                return (SuperOf(frame.owner, frame.receiver),)
            return (_UNTOLD,)
        # `cast(Engine, x)` says what x is.
        case ex.Call(of=ex.Name(id="cast") | ex.Attribute(name="cast"), positional=(kind, _)):
            return annotated_as(program, kind, frame.module, frame)
        case ex.Call(of=ex.Name(id="type"), positional=(value,)):
            found = infer(program, value, frame)
            return tuple(TypeOf(one.of) if isinstance(one, InstanceOf) else _UNTOLD for one in found)
        case ex.Call(of=called):
            return union(*(result_of(program, one) for one in infer(program, called, frame)))
        case ex.Spread(of=value):
            return infer(program, value, frame)
        case ex.IfExp(body=body, orelse=orelse):
            return union(infer(program, body, frame), infer(program, orelse, frame))
        case ex.BoolOp(values=values):
            return union(*(infer(program, value, frame) for value in values))
        case ex.Subscript(of=value):
            return union(*(element_of(program, one) for one in infer(program, value, frame)))
        case ex.Elements(values=values) | ex.Table(values=values):
            return (Container(union(*(infer(program, value, frame) for value in values[:_MOST]))),)
        case ex.Comprehension(element=item) | ex.Generated(element=item):
            return (Container(infer(program, item, frame)),)
        case ex.Lambda():
            return (Outside("types.LambdaType"),)
        case ex.Compare() | ex.Not():
            return (Outside("builtins.bool"),)
        case _:
            return (_UNTOLD,)


def _name(program: Lookup, node: ex.Name, name: str, frame: Frame) -> Meanings:
    function, symbols = frame.function, program.symbols(frame.module)
    if function is not None:
        # `self` or `cls`
        if function.signature.first == name and frame.receiver is not None:
            return (frame.receiver,)
        if any(parameter.name == name for parameter in function.signature.parameters):
            annotation = function.annotations.get(name)
            if annotation is None:
                return (Unknown(f"the parameter {name}"),)
            return annotated_as(program, annotation, frame.module, frame)
        body = symbols.body(frame.module, function)
        if (imported := body.imports.get(name)) is not None:
            return meaning_of(program, symbols.imported(frame.module, imported).definition)
        if local := body.values.get(name):
            parts = []
            for annotation, value in local[:_MOST]:
                if annotation is not None:
                    return annotated_as(program, annotation, frame.module, frame)
                parts.append(infer(program, value, frame) if value is not None else (_UNTOLD,))
            return union(*parts)
    elif frame.owner is not None:
        found = symbols.member(frame.owner, name).definition
        if not isinstance(found, Absent | Unknown):
            return meaning_of(program, found)
    resolution = symbols.expression(frame.module, node)
    parts = [meaning_of(program, one) for one in (resolution.definition, *resolution.alternatives)]
    return union(*parts)


_UNTOLD_RESULT = Unknown("what calling it gives is not known")
_ELEMENT = Unknown("what is in it is not known")


def result_of(program: Lookup, called: Meaning) -> Meanings:
    """What calling something gives, awaited if it is a coroutine."""
    match called:
        case Class() | TreeClass():
            return (InstanceOf(called, exact=True),)
        case TypeOf(of=of):
            return (InstanceOf(of),)
        case Function():
            return function_result(program, called, None)
        case Method(function=function, receiver=receiver):
            return function_result(program, function, receiver)
        case TreeFunction(facts=facts):
            return program.evaluate(facts.result)
        case InstanceOf():
            found = program.lookup(called, "__call__")
            return union(*(result_of(program, one) for one in found if isinstance(one, Method | TreeFunction))) or (
                _UNTOLD_RESULT,
            )
        case Outside(name=name):
            return (Outside(name),)
        case ElementGetter(of=of, every=every):
            return (of,) if every else element_of(program, of)
        case Absent():
            return (called,)
        case Unknown() | Variable() | Module() | TreeModule() | SuperOf() | Container():
            return (_UNTOLD_RESULT,)


def element_of(program: Lookup, of: Meaning) -> Meanings:
    """What iterating over something or subscripting it gives."""
    match of:
        case Container(elements=elements):
            return elements or (_ELEMENT,)
        case InstanceOf():
            for name in ("__getitem__", "__iter__", "__aiter__"):
                found = [one for one in program.lookup(of, name) if isinstance(one, Method | TreeFunction)]
                if found:
                    results = union(*(result_of(program, one) for one in found))
                    # Subscripting gives the element itself; iterating gives an iterator, whose elements are asked for
                    # once more.
                    if name == "__getitem__":
                        return results
                    return union(*(element_of(program, one) for one in results if one != of))
            return (_ELEMENT,)
        case Outside():
            return (of,)
        case Class() | TypeOf():
            kind = of.of if isinstance(of, TypeOf) else of
            # A member of an enumeration, or a generic class with its arguments.
            return (InstanceOf(kind, exact=True),) if is_enumeration(program, kind) else (of,)
        case Absent():
            return (of,)
        case _:
            return (_ELEMENT,)


def is_enumeration(program: Lookup, kind: Class | TreeClass) -> bool:
    return any(isinstance(base, Outside) and base.name.startswith("enum.") for base in program.ancestry(kind))


def function_result(program: Lookup, function: Function, receiver: Receiver | None) -> Meanings:
    """What a function of a target gives: by its annotation, else by what its `return` statements say."""
    key = ("result", function, receiver)
    return program.once(key, lambda: _function_result(program, function, receiver), (_UNTOLD_RESULT,))


def _function_result(program: Lookup, function: Function, receiver: Receiver | None) -> Meanings:
    header = function.header
    if receiver is not None and _runs_overrides(program, function, class_of(receiver)):
        return (Unknown(f"{full_name(function)} calls methods that the tree overrides"),)
    frame = frame_of(function.module, function.owner, header, receiver)
    if header.returns is not None:
        # What `@contextmanager` makes of `-> Iterator[X]` is entered to get the X.
        return annotated_as(program, header.returns, function.module, frame)
    body = program.symbols(function.module).body(function.module, header)
    # More than six `return` statements seldom agree on a class. The number is a guess; each costs one inference.
    if not body.returned or len(body.returned) > 6 or body.yields:
        return (Unknown(f"{full_name(function)} tells no class"),) if body.returned or body.yields else ()
    return union(*(infer(program, value, frame) for value in body.returned))


def _runs_overrides(program: Lookup, function: Function, receiver: Class | TreeClass) -> bool:
    """Whether an inherited method calls one that a class of the tree overrides, and may give what that gives.

    `LLM.generate` is annotated `-> list[RequestOutput]` and ends in `return self._run_engine()`. For a class of the
    tree with a `_run_engine` of its own the annotation is no longer true.
    """
    if not isinstance(receiver, TreeClass):
        return False
    own: set[str] = set()
    for base in program.ancestry(receiver):
        if base == function.owner:
            break
        if isinstance(base, TreeClass):
            own |= base.facts.methods.keys()
    return not own.isdisjoint(program.symbols(function.module).body(function.module, function.header).runs)
