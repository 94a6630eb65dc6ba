"""What a type annotation in a target's sources says of a value: `Optional[X]`, `list[X]`, `type[X]`, `Self`, a
`TypeVar`.
"""

from __future__ import annotations

from patcher.analysis import expressions as ex
from patcher.analysis.bindings import Imported
from patcher.analysis.expressions import Expression, Place, below, expression, last_name
from patcher.analysis.meaning.lookup import Lookup
from patcher.analysis.meaning.meanings import (
    Container,
    Frame,
    InstanceOf,
    Meanings,
    Outside,
    TypeOf,
    union,
)
from patcher.analysis.symbols import Absent, Class, Definition, External, Module, Unknown, Variable
from patcher.worktree.python import UnreadableError, parse_expression

_UNTOLD = Unknown("not annotated with a class")
_THROUGH = frozenset({"Optional", "Union", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "InitVar",
                      "Awaitable", "ContextManager", "AbstractContextManager", "AsyncContextManager",
                      "AbstractAsyncContextManager"})  # fmt: skip
_MANY = frozenset({"list", "List", "Sequence", "Iterable", "Iterator", "Collection", "AsyncIterable", "AsyncIterator",
                   "MutableSequence", "set", "Set", "frozenset", "FrozenSet", "AbstractSet", "deque",
                   "Deque"})  # fmt: skip
_STREAMS = frozenset({"Generator", "AsyncGenerator"})
_MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"})
_ANYTHING = frozenset({"typing.Any", "typing_extensions.Any", "builtins.object"})


def annotated_as(program: Lookup, annotation: Expression, module: str, frame: Frame | None = None) -> Meanings:
    """What a value with that annotation is; `None` among alternatives is left out."""
    frame = frame or Frame(module)
    return program.once(("annotated", Place(annotation), frame), lambda: _read(program, annotation, frame), (_UNTOLD,))


def _read(program: Lookup, annotation: Expression, frame: Frame) -> Meanings:
    match annotation:
        case ex.Constant(value=None):
            return ()
        case ex.Constant(value=str() as text):
            try:
                return _read(program, expression(parse_expression(text.strip())), frame)
            except UnreadableError:
                return (_UNTOLD,)
        case ex.BinOp(left=left, operator="|", right=right):
            return union(_read(program, left, frame), _read(program, right, frame))
        case ex.Name() | ex.Attribute():
            return _named(program, annotation, frame)
        case ex.Subscript(of=value, key=inner):
            return _subscripted(program, value, inner, frame)
        case _:
            return (_UNTOLD,)


def _named(program: Lookup, node: ex.Name | ex.Attribute, frame: Frame) -> Meanings:
    if last_name(node) == "Self" and frame.receiver is not None:
        return (_as_instance(frame),)
    return _as_class(program, type_named(program, node, frame), frame)


def _as_instance(frame: Frame) -> InstanceOf:
    receiver = frame.receiver
    assert receiver is not None
    match receiver:
        case InstanceOf():
            return receiver
        case TypeOf(of=of):
            return InstanceOf(of)
        case _:
            return InstanceOf(receiver, exact=True)


def _as_class(program: Lookup, definition: Definition, frame: Frame) -> Meanings:
    match definition:
        case Class():
            return (InstanceOf(definition),)
        case External(name=name):
            if name in _ANYTHING:
                return (_UNTOLD,)
            return (Outside(name),)
        case Variable(module=module, value=ex.Call(of=called, keywords=words)) if last_name(called) == "TypeVar":
            # `def from_config(cls: type[T]) -> T`: T is the class that the method is called on.
            if (own := _own_variable(definition, frame)) is not None:
                return own
            # `TypeVar("T", bound=Base)` is at least a Base.
            bound = dict(words).get("bound")
            return (_UNTOLD,) if bound is None else annotated_as(program, bound, module)
        # `UserId = NewType("UserId", int)`
        case Variable(value=ex.Call(of=called)) if last_name(called) == "NewType":
            return (Outside("typing.NewType"),)
        case Variable(
            module=module, value=ex.Name() | ex.Attribute() | ex.Subscript() | ex.BinOp() | ex.Constant() as value
        ):
            return annotated_as(program, value, module)
        case Unknown() | Absent():
            return (Unknown("its annotation is not known"),)
        case _:
            return (_UNTOLD,)


def _own_variable(variable: Variable, frame: Frame) -> Meanings | None:
    """A type variable that stands for the receiver: `self: T`, `cls: type[T]`."""
    if frame.function is None or frame.receiver is None:
        return None
    annotation = frame.function.annotations.get(frame.function.signature.first)
    if annotation is not None and any(
        isinstance(one, ex.Name) and one.id == variable.qualname for one in below(annotation)
    ):
        return (_as_instance(frame),)
    return None


def _subscripted(program: Lookup, value: Expression, inner: Expression, frame: Frame) -> Meanings:
    parts = inner.values if isinstance(inner, ex.Elements) and inner.kind == "tuple" else (inner,)
    kind = last_name(value)
    if kind in _THROUGH:
        return union(*(_read(program, part, frame) for part in parts))
    if kind == "Annotated":
        return _read(program, parts[0], frame)
    if kind == "Coroutine":
        return _read(program, parts[-1], frame)
    if kind in ("type", "Type"):
        found = union(*(_read(program, part, frame) for part in parts))
        return tuple(TypeOf(one.of) if isinstance(one, InstanceOf) else one for one in found)
    if kind in _MANY or kind in ("tuple", "Tuple"):
        return (Container(union(*(_read(program, part, frame) for part in parts if part != ex.Constant(...)))),)
    if kind in _STREAMS:
        return (Container(_read(program, parts[0], frame)),)
    if kind in _MAPPINGS:
        return (Container(_read(program, parts[-1], frame)),)
    if kind in ("Literal", "Callable"):
        return (Outside(f"typing.{kind}"),)
    # Any other generic class, `Queue[int]`, is an instance of the class.
    if isinstance(value, ex.Name | ex.Attribute):
        return _named(program, value, frame)
    return (_UNTOLD,)


def type_named(program: Lookup, node: Expression, frame: Frame) -> Definition:
    """What a dotted name in an annotation stands for: names for type checkers, of the function and of the class too."""
    symbols = program.symbols(frame.module)
    match node:
        case ex.Name(id=name):
            home = symbols.modules.find(frame.module)
            scope = symbols.modules.scope(home) if isinstance(home, Module) else None
            if scope is not None and not isinstance(scope, Unknown):
                # An annotation may speak of names that are imported under `if TYPE_CHECKING:` alone.
                for binding in scope.for_checkers.get(name, ()):
                    if isinstance(binding.value, Imported):
                        found = symbols.imported(frame.module, binding.value).definition
                        if not isinstance(found, Absent):
                            return _across(program, found)
            inside = symbols.body(frame.module, frame.function).imports if frame.function is not None else {}
            if (imported := inside.get(name)) is not None:
                return _across(program, symbols.imported(frame.module, imported).definition)
            if frame.owner is not None:
                inner = symbols.member(frame.owner, name).definition
                # A class nested in the class around the annotation.
                if isinstance(inner, Class):
                    return inner
            return _across(program, symbols.expression(frame.module, node).definition)
        case ex.Attribute(of=value, name=attribute):
            owner = type_named(program, value, frame)
            if isinstance(owner, External):
                return _across(program, External(f"{owner.name}.{attribute}"))
            if not isinstance(owner, Module | Class):
                return Unknown("its owner is no module or class")
            where = owner.name if isinstance(owner, Module) else owner.module
            return _across(program, program.symbols(where).member(owner, attribute).definition)
        case _:
            return Unknown("computed")


def _across(program: Lookup, definition: Definition) -> Definition:
    return program.resolve(definition.name).definition if isinstance(definition, External) else definition
