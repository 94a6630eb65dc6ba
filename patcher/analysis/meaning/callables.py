"""The signature of what is called: of functions, methods and constructors, through decorators that keep or add
parameters, and with `**kwargs` that are only passed on replaced by what the other function takes.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from patcher.analysis import expressions as ex
from patcher.analysis.expressions import Expression, below, dotted_or_called, expression, last_name
from patcher.analysis.meaning.annotations import type_named
from patcher.analysis.meaning.inference import infer
from patcher.analysis.meaning.meanings import (
    Frame,
    InstanceOf,
    Meaning,
    Method,
    Outside,
    Receiver,
    SuperOf,
    TreeClass,
    TypeOf,
    frame_of,
    is_class_method,
)
from patcher.analysis.meaning.members import ancestry, dotted, lookup
from patcher.analysis.symbols import (
    Class,
    External,
    Function,
    Parameter,
    Signature,
    Unknown,
    Variable,
    full_name,
)
from patcher.analysis.symbols.classes import body_of_class, has_metaclass
from patcher.analysis.symbols.definition import is_static
from patcher.analysis.symbols.signature import constructor_of, read_parameters
from patcher.analysis.syntax import FunctionNode, text_in

if TYPE_CHECKING:
    from patcher.analysis.meaning.program import Program


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


def takes(program: Program, called: Meaning) -> Callable_:
    """The parameters that a call of the meaning binds to."""
    if_circular: Callable_ = NotOurs()
    return program.once(("takes", called), lambda: _takes(program, called), if_circular)


def _takes(program: Program, called: Meaning) -> Callable_:
    match called:
        case Class() | TreeClass():
            return _constructor(program, called)
        case TypeOf(of=of):
            # A subclass may take something else, but rarely does.
            return _constructor(program, of)
        case Function():
            return _function(program, called, bound=False, symbol=full_name(called))
        case Method(function=function, receiver=receiver):
            # `Class.method(x)` passes `self` by hand, so that it counts as a parameter; `instance.method(x)` binds it.
            on_instance = isinstance(receiver, InstanceOf)
            name = function.header.name
            bound = not is_static(function.header) and (on_instance or is_class_method(function.header))
            # `super().__new__(cls, ...)` passes the class by hand.
            if name == "__new__":
                bound = False
            kind = receiver.of if isinstance(receiver, InstanceOf | TypeOf) else receiver
            asked = kind if isinstance(kind, Class) else function.owner
            symbol = f"{dotted(asked)}.{name}" if asked is not None else full_name(function)
            return _function(program, function, bound=bound, symbol=symbol, receiver=receiver)
        case InstanceOf(of=Class() as of):
            return _instance(program, called, of)
        case Variable(value=ex.Lambda(signature=signature)):
            return Takes(signature, full_name(called))
        case Variable():
            return Unknown("what it holds is not known", full_name(called))
        case _:
            return NotOurs()


def _instance(program: Program, called: InstanceOf, of: Class) -> Callable_:
    for one in lookup(program, called, "__call__"):
        if isinstance(one, Method):
            return takes(program, one)
        # `module(x)` of torch calls `forward(x)`.
        if isinstance(one, Outside) and one.name.startswith("torch.nn"):
            for inner in lookup(program, called, "forward"):
                if isinstance(inner, Method):
                    return takes(program, inner)
    return Unknown("what a call of an instance takes is not known", dotted(of))


def _function(
    program: Program, function: Function, *, bound: bool, symbol: str, receiver: Receiver | None = None
) -> Callable_:
    changes = changes_parameters(program, function)
    if changes is None:
        return Unknown(f"{function.qualname} is decorated", symbol)
    signature = _with(read_parameters(function.header, bound=bound), changes)
    return Takes(with_forwarded(program, function, signature, receiver), symbol)


def _with(signature: Signature, names: frozenset[str]) -> Signature:
    known = {one.name for one in signature.parameters}
    more = tuple(Parameter(name, "keyword", required=False) for name in sorted(names - known))
    return Signature((*signature.parameters, *more), signature.any_positional, signature.any_keyword)


def _constructor(program: Program, owner: Class | TreeClass) -> Callable_:
    symbol = dotted(owner)
    order: list[Class | External | Unknown] = []
    behind_tree, raised = isinstance(owner, TreeClass), False
    for base in ancestry(program, owner):
        match base:
            case TreeClass():
                # The tree makes its own instances; whether it calls its base rightly is a use of its own.
                if {"__init__", "__new__", "__call__"} & set(base.facts.methods):
                    return NotOurs()
            case Class():
                if behind_tree and not order:
                    symbol = dotted(base)
                order.append(base)
            case Outside(name=name):
                # `State("running")` and `Options(a=1)` take what their generated constructors take.
                if name.startswith("enum.") or name.endswith(".TypedDict"):
                    return Takes(_FREE, symbol)
                raised = raised or _is_exception(name)
                order.append(External(name))
            case Unknown():
                order.append(base)
    if not any(isinstance(one, Class) for one in order):
        return NotOurs()
    # A metaclass with a `__call__` decides what a call takes.
    if any(isinstance(one, Class) and has_metaclass(one) for one in order):
        return Unknown("it has a metaclass", symbol)
    made = constructor_of(order, lambda base: program.symbols(base.module))
    # An exception class without an `__init__` takes any positional arguments.
    if raised and isinstance(made, Unknown):
        return Takes(Signature((), any_positional=True), symbol)
    match made:
        case Unknown(reason=reason):
            return Unknown(reason, symbol)
        case Signature():
            if isinstance(owner, TreeClass):
                own = {
                    name
                    for base in ancestry(program, owner)
                    if isinstance(base, TreeClass)
                    for name in base.facts.attributes
                }
                made = _with(made, frozenset(own))
            return Takes(made, symbol)
        case header:
            classes = (base for base in order if isinstance(base, Class))
            home = next(base for base in classes if header in body_of_class(program.symbols(base.module), base).methods)
            function = Function(home.module, f"{home.qualname}.{header.name}", header, home)
            return _function(program, function, bound=True, symbol=symbol, receiver=InstanceOf(owner, exact=True))


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


_KEEP = frozenset(
    [
        "staticmethod",
        "jit",
        "heuristics",
        "autotune",
        "classmethod",
        "property",
        "cached_property",
        "abstractmethod",
        "overload",
        "override",
        "final",
        "lru_cache",
        "cache",
        "wraps",
        "contextmanager",
        "asynccontextmanager",
        "no_grad",
        "inference_mode",
        "deprecated",
        "validator",
        "field_validator",
        "model_validator",
        "singledispatch",
        "total_ordering",
        "runtime_checkable",
        "no_type_check",
    ]
)
_OUTSIDE = ("torch.", "functools.", "contextlib.", "typing.", "typing_extensions.", "abc.", "builtins.", "torch_")


def changes_parameters(program: Program, function: Function) -> frozenset[str] | None:
    """Keywords that decorators take besides the function's own; None if they may change what it takes."""
    more: set[str] = set()
    marks = function.header.decorators
    for mark in marks:
        called = dotted_or_called(mark)
        if not isinstance(called, ex.Name | ex.Attribute):
            return None
        # Known by name, wherever they come from: each calls the function with what it was given.
        if last_name(called) in _KEEP or last_name(called) in ("setter", "getter"):
            continue
        if not _keeps(program, called, function):
            return None
        # `@deprecate_kwargs("old_name")` takes the old keywords beside the function's own.
        if isinstance(mark, ex.Call):
            texts = (one.value for one in below(mark) if isinstance(one, ex.Constant) and isinstance(one.value, str))
            more |= {text for text in texts if text.isidentifier()}
    return frozenset(more) if any("deprec" in str(mark) for mark in marks) else frozenset()


def _keeps(program: Program, called: Expression, function: Function) -> bool:
    found = type_named(program, called, Frame(function.module))
    match found:
        case External(name=name):
            return name.startswith(_OUTSIDE)
        # `array_function_dispatch = functools.partial(overrides.array_function_dispatch, module='numpy')`
        case Variable(module=module, value=ex.Call(of=ex.Name() | ex.Attribute() as of, positional=(inner, *_))) if (
            last_name(of) == "partial"
        ):
            found = type_named(program, inner, Frame(module))
    if not isinstance(found, Function):
        return False
    return program.symbols(found.module).modules.holding(found.module).asked_of(found.header, _returns_like)


def _returns_like(node: FunctionNode) -> bool:
    """Whether a decorator wraps with `functools.wraps` or gives back what it is given."""
    given: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, FunctionNode):
            given |= {argument.arg for argument in (*inner.args.posonlyargs, *inner.args.args)}
    for inner in ast.walk(node):
        match inner:
            # `functools.wraps` promises the same signature.
            case ast.Name(id="wraps") | ast.Attribute(attr="wraps" | "update_wrapper") | ast.Name(id="update_wrapper"):
                return True
            case ast.Return(value=ast.Name(id=name)) if name in given:
                return True
    return False


_READS = frozenset({"pop", "get", "setdefault"})


def with_forwarded(program: Program, function: Function, signature: Signature, receiver: Receiver | None) -> Signature:
    """The signature with `**kwargs` replaced by what becomes of them, where they go to one call and nowhere else.

    `receiver` is what the function is called on: `super()` follows its bases."""
    if not signature.any_keyword or not function.header.signature.any_keyword:
        return signature
    key = ("widened", function, signature, receiver)
    return program.once(key, lambda: _with_forwarded(program, function, signature, receiver), signature)


def _with_forwarded(program: Program, function: Function, signature: Signature, receiver: Receiver | None) -> Signature:
    header = function.header
    spread = program.symbols(function.module).modules.holding(function.module).asked_of(header, _keyword_spread)
    if spread is None:
        return signature
    call, passes, read = spread
    positional = header.signature.any_positional
    if positional and not passes:
        return signature
    if receiver is None and function.owner is not None:
        receiver = InstanceOf(function.owner)
    frame = frame_of(function.module, function.owner, header, receiver)
    found = infer(program, call.of, frame)
    # The one target must be known.
    if len(found) != 1 or isinstance(found[0], SuperOf):
        return signature
    target = takes(program, found[0])
    if not isinstance(target, Takes):
        return signature
    inner = target.signature
    given = {name for name, _ in call.keywords}
    filled = len(call.positional)
    rest = [one for one in inner.parameters if one.name not in given]
    own = {one.name for one in signature.parameters}
    if not positional:
        # Only `**kwargs` is passed on: parameters that take positions alone cannot be reached.
        rest = [Parameter(one.name, "keyword", one.required) for one in rest[filled:] if one.kind != "positional"]
    else:
        rest = rest[filled:]
        if signature.positional:
            rest = [Parameter(one.name, "keyword", one.required) for one in rest]
    more = [one for one in rest if one.name not in own]
    more += [Parameter(name, "keyword", required=False) for name in sorted(read - own - {one.name for one in more})]
    any_positional = signature.any_positional and (inner.any_positional or bool(own))
    return Signature((*signature.parameters, *more), any_positional, inner.any_keyword)


def _keyword_spread(node: FunctionNode) -> tuple[ex.Call, bool, frozenset[str]] | None:
    """The one call that gets `**words`, whether `*args` go there too, and the keys read from the words otherwise.

    None if more is done with the words."""
    words = node.args.kwarg.arg if node.args.kwarg else ""
    rest = node.args.vararg.arg if node.args.vararg else ""
    calls: list[ast.Call] = []
    read: set[str] = set()
    known = 0
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute), args=[key, *_]) if (
                name == words and attribute in _READS
            ):
                if (text := text_in(key)) is None:
                    return None
                read.add(text)
                known += 1
            case ast.Compare(left=ast.Constant(value=str() as key), comparators=[ast.Name(id=name)]) if name == words:
                read.add(key)
                known += 1
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == words:
                read.add(key)
                known += 1
            case ast.Call(keywords=keywords):
                for word in keywords:
                    if word.arg is None and isinstance(word.value, ast.Name) and word.value.id == words:
                        calls.append(inner)
                        known += 1
    mentioned = sum(1 for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id == words)
    # `kwargs` goes to several calls, or is changed or stored: then what the function takes cannot be known.
    if mentioned != known or len(calls) != 1:
        return None
    passes = any(
        isinstance(one, ast.Starred) and isinstance(one.value, ast.Name) and one.value.id == rest
        for one in calls[0].args
    )
    return cast("ex.Call", expression(calls[0])), passes, frozenset(read)
