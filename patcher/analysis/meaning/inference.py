"""What definitions, expressions, calls and iteration give in a target's sources, as far as syntax tells."""

from __future__ import annotations

import ast

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
    SuperOf,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    class_of,
    frame_of,
    local_import,
    local_values,
    statements,
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
from patcher.analysis.symbols.scope import FunctionNode
from patcher.analysis.syntax import decorators, last_name


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
    key = ("holds", full_name(variable), variable.annotation, variable.value, frame)
    return program.once(key, lambda: _variable_value(program, variable, frame), (variable,))


def _variable_value(program: Lookup, variable: Variable, frame: Frame) -> Meanings:

    values: Meanings = ()
    if variable.annotation is not None and not _says_nothing(variable.annotation):
        values = annotated_as(program, variable.annotation, frame.module, frame)
    if not values and variable.value is not None:
        # `engine = None` at module level is filled in later, with what cannot be known.
        if isinstance(variable.value, ast.Constant) and variable.value.value is None:
            return (variable,) if variable.annotation is None else ()
        values = infer(program, variable.value, frame)
    if not values or all(isinstance(one, Unknown | Absent) for one in values):
        return (variable,)
    return tuple(one for one in values if not isinstance(one, Unknown | Absent))


def _says_nothing(annotation: ast.expr) -> bool:
    """`Final`, `ClassVar` or `TypeAlias` without a class."""
    return last_name(annotation) in ("Final", "ClassVar", "TypeAlias")


_UNTOLD = Unknown("computed")
_MOST = 6
"""Assignments to one local name that are looked at."""


def infer(program: Lookup, node: ast.expr, frame: Frame) -> Meanings:
    """What the expression gives."""
    return program.once(("infer", node, frame), lambda: _infer(program, node, frame), (_UNTOLD,))


def _infer(program: Lookup, node: ast.expr, frame: Frame) -> Meanings:

    match node:
        case ast.Constant(value=None):
            return ()
        case ast.Constant(value=value):
            return (Outside(f"builtins.{type(value).__name__}"),)
        case ast.JoinedStr():
            return (Outside("builtins.str"),)
        case ast.Name(id=name):
            return _name(program, name, frame)
        case ast.Attribute(value=value, attr=attribute):
            return union(*(program.lookup(one, attribute) for one in infer(program, value, frame)))
        case ast.Call(func=ast.Name(id="super"), args=[]):
            # `super().method()`: the look-up goes on behind the class that the code stands in.
            if frame.owner is not None and isinstance(frame.receiver, InstanceOf | TypeOf):
                return (SuperOf(frame.owner, frame.receiver),)
            return (_UNTOLD,)
        # `cast(Engine, x)` says what x is.
        case ast.Call(func=ast.Name(id="cast") | ast.Attribute(attr="cast"), args=[kind, _]):
            return annotated_as(program, kind, frame.module, frame)
        case ast.Call(func=ast.Name(id="type"), args=[value]):
            found = infer(program, value, frame)
            return tuple(TypeOf(one.of) if isinstance(one, InstanceOf) else _UNTOLD for one in found)
        case ast.Call(func=func):
            return union(*(result_of(program, one) for one in infer(program, func, frame)))
        case ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
            return infer(program, value, frame)
        case ast.IfExp(body=body, orelse=orelse):
            return union(infer(program, body, frame), infer(program, orelse, frame))
        case ast.BoolOp(values=values):
            return union(*(infer(program, value, frame) for value in values))
        case ast.Subscript(value=value):
            return union(*(element_of(program, one) for one in infer(program, value, frame)))
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return (Container(union(*(infer(program, part, frame) for part in parts[:_MOST]))),)
        case ast.Dict(values=values):
            return (Container(union(*(infer(program, value, frame) for value in values[:_MOST]))),)
        case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.DictComp(value=item) | ast.GeneratorExp(elt=item):
            return (Container(infer(program, item, frame)),)
        case ast.Lambda():
            return (Outside("types.LambdaType"),)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return (Outside("builtins.bool"),)
        case _:
            return (_UNTOLD,)


def _name(program: Lookup, name: str, frame: Frame) -> Meanings:
    function = frame.function
    if function is not None:
        arguments = [*function.args.posonlyargs, *function.args.args]
        # `self` or `cls`
        if arguments and arguments[0].arg == name and frame.receiver is not None:
            return (frame.receiver,)
        for argument in (*arguments, *function.args.kwonlyargs):
            if argument.arg == name:
                if argument.annotation is None:
                    return (Unknown(f"the parameter {name}"),)
                return annotated_as(program, argument.annotation, frame.module, frame)
        if (imported := local_import(function, name)) is not None:
            return meaning_of(program, program.symbols(frame.module).imported(frame.module, imported).definition)
        if local := local_values(function, name):
            parts = []
            for annotation, value in local[:_MOST]:
                if annotation is not None:
                    return annotated_as(program, annotation, frame.module, frame)
                parts.append(infer(program, value, frame) if value is not None else (_UNTOLD,))
            return union(*parts)
    elif frame.owner is not None:
        found = program.symbols(frame.module).member(frame.owner, name).definition
        if not isinstance(found, Absent | Unknown):
            return meaning_of(program, found)
    symbols = program.symbols(frame.module)
    resolution = symbols.expression(frame.module, ast.Name(id=name, ctx=ast.Load()))
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


def function_result(
    program: Lookup, function: Function, receiver: InstanceOf | TypeOf | Class | TreeClass | None
) -> Meanings:
    """What a function of a target gives: by its annotation, else by what its `return` statements say."""
    key = ("result", function, receiver)
    return program.once(key, lambda: _function_result(program, function, receiver), (_UNTOLD_RESULT,))


def _function_result(
    program: Lookup, function: Function, receiver: InstanceOf | TypeOf | Class | TreeClass | None
) -> Meanings:
    node = function.node
    if receiver is not None and _runs_overrides(program, function, class_of(receiver)):
        return (Unknown(f"{full_name(function)} calls methods that the tree overrides"),)
    frame = frame_of(function.module, function.owner, node, receiver)
    if node.returns is not None:
        found = annotated_as(program, node.returns, function.module, frame)
        # `@contextmanager` turns `-> Iterator[X]` into a manager whose `as` name is an X.
        if not decorators(node).isdisjoint(("contextmanager", "asynccontextmanager")):
            found = union(*(one.elements if isinstance(one, Container) else (one,) for one in found))
        return found
    returned = [inner.value for inner in statements(node.body) if isinstance(inner, ast.Return) and inner.value]
    # More than six `return` statements seldom agree on a class. The number is a guess; each costs one inference.
    if not returned or len(returned) > 6 or _yields(node):
        return (Unknown(f"{full_name(function)} tells no class"),) if returned or _yields(node) else ()
    return union(*(infer(program, value, frame) for value in returned))


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
    called = {
        inner.func.attr
        for returned in statements(function.node.body)
        if isinstance(returned, ast.Return | ast.Assign) and returned.value is not None
        for inner in ast.walk(returned.value)
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and isinstance(inner.func.value, ast.Name)
        and inner.func.value.id in ("self", "cls")
    }
    return not own.isdisjoint(called)


def _yields(node: FunctionNode) -> bool:
    return any(
        isinstance(inner, ast.Expr | ast.Assign) and isinstance(inner.value, ast.Yield | ast.YieldFrom)
        for inner in statements(node.body)
    )
