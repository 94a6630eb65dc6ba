"""What an expression of the tree stands for on a release: an object at hand, or an instance of a known class."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Mapping
from typing import Any

from .isolation import Isolation, bound_by
from .stand_ins import StandIn, StandInBase, StandInModule


class Broken(Exception):
    """The release refuses it; the message says how."""


class Unknown(Exception):
    """Cannot be executed or is not evident; the message says why."""


@dataclasses.dataclass(frozen=True)
class Object:
    """Something at hand. `bound`: a function taken from a class as a method of an instance."""

    value: Any
    bound: bool = False
    owner: Any = None


@dataclasses.dataclass(frozen=True)
class Instance:
    """Some value of a type; nothing is constructed."""

    type: Any


State = Object | Instance
_ITERABLES = (
    "list",
    "List",
    "Sequence",
    "Iterable",
    "Iterator",
    "AsyncIterator",
    "AsyncGenerator",
    "Generator",
    "set",
    "AsyncIterable",
    "Collection",
    "MutableSequence",
    "deque",
)
_AWAITABLES = ("Coroutine", "Awaitable")


class States:
    """Evaluates the expressions that uses are made of."""

    def __init__(self, isolation: Isolation) -> None:
        self.isolation = isolation
        self._imports: dict[tuple[str, str | None], State | Exception] = {}
        self._sets: dict[type, dict[str, Any]] = {}
        self._reading: set[type] = set()

    def evaluate(self, expression: Any) -> State:
        """Raises Broken where the last step fails, Unknown where an earlier one does or nothing is evident."""
        match expression:
            case ["import", module, name]:
                return self.imported(module, name)
            case ["attr", of, name]:
                return self.attribute(self._inner(of), name)
            case ["result", of]:
                return self.result(self._inner(of))
            case ["instance", of]:
                state = self._inner(of)
                return Instance(state.value) if isinstance(state, Object) else state
            case ["each", of] | ["item", of]:
                return self.element(self._inner(of), expression[0])
            case ["oneof", options]:
                return self._only(options)
        raise Unknown("not followed")

    def _inner(self, expression: Any) -> State:
        try:
            return self.evaluate(expression)
        except Broken as error:
            raise Unknown(f"an earlier step fails: {error}") from error

    def _only(self, options: list[Any]) -> State:
        found: list[State] = []
        failed: list[str] = []
        for option in options:
            try:
                state = self._inner(option)
            except Unknown as error:
                failed.append(str(error))
                continue
            if not any(_same(state, other) for other in found):
                found.append(state)
        if any("earlier step fails" not in reason for reason in failed):
            raise Unknown(failed[0])
        if len(found) != 1:
            raise Unknown("several values" if found else failed[0])
        return found[0]

    # imports

    def imported(self, module: str, name: str | None) -> State:
        key = (module, name)
        if key not in self._imports:
            try:
                self._imports[key] = self._import(module, name)
            except (Broken, Unknown) as error:
                self._imports[key] = error
        found = self._imports[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _import(self, module: str, name: str | None) -> State:
        isolation = self.isolation
        statement = f"from {module} import {name} as _it" if name else f"import {module}"
        space: dict[str, Any] = {"__name__": "__main__"}
        try:
            isolation.run(lambda: exec(statement, space))
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if module == missing or module.startswith(missing + "."):
                raise self._broken(error, missing, None) from error
            raise Unknown(_said(error)) from error
        except ImportError as error:
            holder = sys.modules.get(module)
            if name and holder is not None and error.name == module and f"import name {name!r}" in str(error):
                raise self._broken(error, module, name) from error
            raise Unknown(_said(error)) from error
        except Exception as error:
            raise Unknown(_said(error)) from error
        if isolation.stands_in(module) or (name and (module, name) in isolation.tainted):
            raise Unknown("a stand-in serves it")
        value = space["_it"] if name else sys.modules[module]
        if isinstance(value, StandInModule) and isolation.own(value.__name__):
            raise Unknown("a stand-in serves it")
        return Object(value)

    def _broken(self, error: Exception, module: str, name: str | None) -> Exception:
        """Broken, or Unknown where the source would bind the name on another platform."""
        holder = sys.modules.get(module)
        if name and holder is not None and name in _conditional(holder):
            return Unknown("bound under a condition that does not hold on this machine")
        if name is None and self.isolation.folder is not None and _generated(module):
            return Unknown("compiled or generated when the package is built")
        return Broken(_said(error))

    # attributes

    def attribute(self, state: State, name: str) -> State:
        if isinstance(state, Object):
            return self._of_object(state.value, name)
        return self._of_instance(state.type, name)

    def _of_object(self, value: Any, name: str) -> State:
        if isinstance(value, StandIn):
            raise Unknown("a stand-in")
        if isinstance(value, types.ModuleType):
            if isinstance(value, StandInModule) or (value.__name__, name) in self.isolation.tainted:
                raise Unknown("a stand-in serves it")
            try:
                return Object(getattr(value, name))
            except AttributeError as error:
                return self._submodule(value, name, error)
            except Exception as error:
                raise Unknown(_said(error)) from error
        if isinstance(value, (types.FunctionType, types.MethodType)) and not hasattr(value, name):
            raise Broken(f"AttributeError: {value!r} has no attribute {name!r}".partition(" at 0x")[0])
        try:
            return Object(getattr(value, name))
        except AttributeError as error:
            if isinstance(value, type) and (_stands_in(value) or name in _annotations(value)):
                if name in _annotations(value):
                    raise Broken(_said(error)) from error
                raise Unknown("a base is a stand-in") from error
            if isinstance(value, type) or dataclasses.is_dataclass(value):
                raise Broken(_said(error)) from error
            raise Unknown(_said(error)) from error

    def _submodule(self, module: types.ModuleType, name: str, error: AttributeError) -> State:
        whole = f"{module.__name__}.{name}"
        try:
            self.isolation.run(lambda: importlib.import_module(whole))
        except ModuleNotFoundError as missing:
            if missing.name != whole:
                raise Unknown(_said(missing)) from missing
            raise self._broken(error, module.__name__, name) from error
        except Exception as other:
            raise Unknown(_said(other)) from other
        if self.isolation.stands_in(whole):
            raise Unknown("a stand-in serves it") from error
        return Object(sys.modules[whole])

    def _of_instance(self, annotation: Any, name: str) -> State:
        classes = self._classes(annotation)
        found: list[State] = []
        refused: list[Broken] = []
        for cls in classes:
            try:
                found.append(self._of_class(cls, name))
            except Broken as error:
                refused.append(error)
        if found and refused:
            raise Unknown("some of several types have it")
        if refused:
            raise refused[0]
        if len(found) > 1 and not all(_same(found[0], other) for other in found[1:]):
            raise Unknown("several types")
        return found[0]

    def _classes(self, annotation: Any) -> list[type]:
        annotation = _plain(annotation)
        if isinstance(annotation, (StandIn, str)) or annotation is Any or annotation is inspect.Parameter.empty:
            raise Unknown("no annotation tells its class")
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            return [
                cls for part in typing.get_args(annotation) if part is not type(None) for cls in self._classes(part)
            ]
        origin = typing.get_origin(annotation) or annotation
        if not isinstance(origin, type) or origin is object or origin is type(None):
            raise Unknown("no annotation tells its class")
        return [origin]

    def _of_class(self, cls: type, name: str) -> State:
        if cls.__module__.startswith("transformers.models.auto.") and cls.__name__.startswith("Auto"):
            raise Unknown("a factory, which has no instances")
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), _NOTHING)
        match found:
            case property(fget=getter) if getter is not None:
                return self._annotated(getter, cls)
            case functools.cached_property():
                return self._annotated(found.func, cls)
            case staticmethod() | classmethod():
                return Object(getattr(cls, name))
            case types.FunctionType() | types.MethodDescriptorType() | types.WrapperDescriptorType():
                return Object(found, bound=True, owner=cls)
        hints = self._fields(cls)
        if name in hints:
            return Instance(hints[name]) if hints[name] is not None else Instance(Any)
        if found is not _NOTHING:
            if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)) or found is None:
                return Instance(Any)
            if callable(found) and not isinstance(found, type):
                return Object(found, bound=False, owner=cls)
            return Instance(type(found)) if not isinstance(found, type) else Object(found)
        if _stands_in(cls):
            raise Unknown("a base is a stand-in")
        if (delegate := _DELEGATES.get(cls.__name__)) is not None:
            return self._delegated(cls, name, *delegate)
        if any("__getattr__" in vars(base) or "__getattribute__" in vars(base) for base in cls.__mro__[:-1]):
            raise Unknown(f"{cls.__name__} serves attributes of its own")
        if cls.__module__.partition(".")[0] != self.isolation.package:
            raise Unknown("a class of another package")
        if any(
            word in _source(base)
            for base in cls.__mro__[:-1]
            for word in ("setattr(self", "self.__dict__", "vars(self)")
        ):
            raise Unknown(f"{cls.__name__} sets attributes by computed names")
        for subclass in _subclasses(cls):
            if inspect.getattr_static(subclass, name, _NOTHING) is not _NOTHING or name in self._fields(subclass):
                raise Unknown(f"{cls.__name__} lacks it, {subclass.__name__} has it")
        raise Broken(f"AttributeError: {cls.__name__!r} object has no attribute {name!r}")

    def _delegated(self, cls: type, name: str, holder: str, module: str, served: str) -> State:
        """An attribute that `__getattr__` takes from another object: the real `__getattr__` on bare instances."""
        target = self._inner(["import", module, served])
        if not isinstance(target, Object) or not isinstance(target.value, type) or _stands_in(target.value):
            raise Unknown("what it delegates to cannot be had")
        bare: Any = object.__new__(cls)
        vars(bare)[holder] = object.__new__(target.value)
        try:
            value = getattr(bare, name)
        except AttributeError as error:
            if name in self._fields(target.value):
                return Instance(self._fields(target.value)[name] or Any)
            raise Broken(_said(error)) from error
        return Object(value) if callable(value) else Instance(type(value))

    def _annotated(self, function: Any, cls: type) -> State:
        hint = self._hint(inspect.unwrap(function).__annotations__.get("return", Any), function.__module__)
        return Instance(cls if hint is typing_self else hint)

    def _fields(self, cls: type) -> dict[str, Any]:
        """Attributes of an instance that annotations, fields and assignments to `self` give, with their type or None."""
        fields: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-1]):
            if _origin(base) in ("builtins", "torch", "pydantic", "abc", "typing"):
                continue
            for name, hint in self._assigned(base).items():
                if hint is not None or name not in fields:
                    fields[name] = hint
            for name, annotation in vars(base).get("__annotations__", {}).items():
                fields[name] = _quiet(lambda a=annotation, b=base: self._hint(a, b.__module__))
        for name in getattr(cls, "__struct_fields__", ()):
            fields.setdefault(name, None)
        for name in getattr(cls, "model_fields", None) or ():
            fields.setdefault(name, None)
        return fields

    def _assigned(self, cls: type) -> Mapping[str, Any]:
        """`self.name = …` in the methods of a class, from its source."""
        if cls in self._reading:
            raise Unknown("classes that lead to each other")
        if cls not in self._sets:
            self._reading.add(cls)
            self._sets[cls] = found = {}
            try:
                for definition in ast.parse(textwrap.dedent(_source(cls))).body[:1]:
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
                hint = _quiet(lambda n=node: self._hint(ast.unparse(n.annotation), cls.__module__))
            elif isinstance(node, ast.Assign):
                targets = [
                    inner
                    for target in node.targets
                    for inner in (target.elts if isinstance(target, ast.Tuple) else [target])
                ]
                if len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
                    hint = _quiet(lambda n=node: self._value(n.value, parameters, cls, found))
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
                return self._hint(ast.unparse(parameters[name]), cls.__module__)
            case ast.Call(func=function):
                try:
                    callee = eval(ast.unparse(function), vars(sys.modules[cls.__module__]))
                except Exception:
                    return None
                state = self.result(Object(callee))
                return state.type if isinstance(state, Instance) else None
            case ast.Attribute(value=inner, attr=name):
                state = self.attribute(Instance(self._value(inner, parameters, cls, found) or Any), name)
                return state.type if isinstance(state, Instance) else None
        return None

    # calls and elements

    def result(self, state: State) -> State:
        """What a call gives, awaited."""
        if isinstance(state, Instance):
            state = self._of_instance(state.type, "__call__")
        value = state.value
        if isinstance(value, StandIn):
            raise Unknown("a stand-in")
        if isinstance(value, type):
            return Instance(value)
        function = inspect.unwrap(value)
        owner = state.owner if state.bound else getattr(value, "__self__", None)
        annotations = getattr(function, "__annotations__", {})
        hint = annotations.get("return")
        if hint is None:
            raise Unknown("no annotation tells what it returns")
        if isinstance(hint, str) and owner is not None and hint.strip("'\"") == getattr(owner, "__name__", ""):
            return Instance(owner)
        hint = self._hint(hint, function.__module__)
        if hint is typing_self or isinstance(hint, typing.TypeVar):
            if owner is None:
                raise Unknown("no annotation tells what it returns")
            return Instance(owner if isinstance(owner, type) else type(owner))
        if typing.get_origin(hint) is not None and typing.get_origin(hint).__name__ in _AWAITABLES:
            hint = typing.get_args(hint)[-1]
        return Instance(hint)

    def element(self, state: State, how: str) -> State:
        if not isinstance(state, Instance):
            raise Unknown("not followed")
        hint = _plain(state.type)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is None or not arguments:
            raise Unknown("no annotation tells its elements")
        if origin.__name__ in _ITERABLES or (origin is tuple and len(set(arguments) - {...}) == 1):
            return Instance(arguments[0])
        if origin.__name__ in ("dict", "Mapping", "MutableMapping", "defaultdict"):
            return Instance(arguments[1 if how == "item" else 0])
        raise Unknown("no annotation tells its elements")

    def _hint(self, annotation: Any, module: str) -> Any:
        """An annotation as a type; names that only type checkers import are imported now."""
        if isinstance(annotation, typing.ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return annotation
        space = {**_typing_imports(module, self.isolation), **vars(sys.modules[module])}
        try:
            found = eval(annotation, space)
        except Exception as error:
            raise Unknown(f"annotation {annotation!r}: {error}") from error
        return self._hint(found, module) if isinstance(found, str) else found


_PLACES = re.compile(r" \([^()]*/[^()]*\)")
_DELEGATES = {"WorkerWrapperBase": ("worker", "vllm.v1.worker.gpu_worker", "Worker")}
"""Classes whose `__getattr__` asks another object: under which name they hold it, and its class on a GPU."""
typing_self = getattr(typing, "Self", None)
_NOTHING = object()


def _plain(annotation: Any) -> Any:
    """Without Optional and Annotated."""
    while True:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Annotated, typing.ClassVar, typing.Final, dataclasses.InitVar):
            annotation = arguments[0]
        elif origin in (typing.Union, types.UnionType) and len([a for a in arguments if a is not type(None)]) == 1:
            annotation = next(a for a in arguments if a is not type(None))
        elif isinstance(annotation, typing.TypeVar) and annotation.__bound__ is not None:
            annotation = annotation.__bound__
        else:
            return annotation


def _same(one: State, other: State) -> bool:
    if type(one) is not type(other):
        return False
    return one.value is other.value if isinstance(one, Object) and isinstance(other, Object) else one == other


def _said(error: BaseException) -> str:
    return _PLACES.sub("", f"{type(error).__name__}: {error}".splitlines()[0])[:160]


def _quiet(action: typing.Callable[[], Any]) -> Any:
    try:
        return action()
    except (Unknown, Broken):
        return None


def _origin(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _stands_in(cls: type) -> bool:
    return StandInBase in cls.__mro__


def _subclasses(cls: type) -> list[type]:
    """The loaded classes that derive from it."""
    found: list[type] = []
    for subclass in type.__subclasses__(cls):
        found += [subclass, *_subclasses(subclass)]
    return found


def _annotations(cls: type) -> set[str]:
    return {name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})}


@functools.cache
def _source(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return ""


@functools.cache
def _tree(module: str) -> ast.Module | None:
    path = getattr(sys.modules.get(module), "__file__", None)
    if not path or not path.endswith(".py"):
        return None
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def _conditional(module: types.ModuleType) -> set[str]:
    """Names that a module binds only under a test or in a `try`, but not for type checkers alone."""
    tree = _tree(module.__name__)
    names: set[str] = set()
    for node in tree.body if tree else ():
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=rest):
                names |= {name for inner in rest for name in bound_by(inner)}
            case ast.If() | ast.Try() | ast.With():
                names |= bound_by(node)
    return names


def _generated(module: str) -> bool:
    return (
        any(part.startswith("_") and part.endswith("C") for part in module.split(".")) or ".vllm_flash_attn" in module
    )


@functools.cache
def _typing_imports(module: str, isolation: Isolation) -> Mapping[str, Any]:
    tree = _tree(module)
    space: dict[str, Any] = {"__name__": module, "__package__": getattr(sys.modules.get(module), "__package__", None)}
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body):
                for statement in body:
                    if isinstance(statement, (ast.Import, ast.ImportFrom)):
                        code = compile(ast.Module([statement], []), "<typing>", "exec")
                        try:
                            isolation.run(lambda c=code: exec(c, space))
                        except Exception:
                            continue
    return space
