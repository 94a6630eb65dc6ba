"""Evaluates what uses are made of: imports, attributes, calls, elements."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from typing import Any

from .fields import Fields
from .imports import Imports
from .isolation import Isolation
from .stand_ins import StandIn, StandInModule
from .state import (
    NOTHING,
    BrokenError,
    Instance,
    Object,
    State,
    UnknownError,
    annotated_names,
    derives_from_stand_in,
    plain,
    said,
    same,
    subclasses,
    typing_self,
)
from .texts import hint, source

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
_DELEGATES = {"WorkerWrapperBase": ("worker", "vllm.v1.worker.gpu_worker", "Worker")}
"""Classes whose `__getattr__` asks another object: under which name they hold it, and its class on a GPU."""


_OF_PLUG_INS = frozenset(("torch", device) for device in ("npu", "musa", "mlu", "hpu"))
"""Modules that a device's own distribution registers in a package, as torch_npu does with `torch.npu`."""


class States:
    """Evaluates the expressions that uses are made of."""

    def __init__(self, isolation: Isolation) -> None:
        self.isolation = isolation
        self._imports = Imports(isolation)
        self._fields = Fields(self)

    def evaluate(self, expression: Any) -> State:
        """Raises BrokenError where the last step fails, UnknownError where an earlier one does or none is evident."""
        match expression:
            case ["import", module, name]:
                return self._imports.imported(module, name)
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
        raise UnknownError("not followed")

    def _inner(self, expression: Any) -> State:
        try:
            return self.evaluate(expression)
        except BrokenError as error:
            raise UnknownError(f"an earlier step fails: {error}") from error

    def _only(self, options: list[Any]) -> State:
        found: list[State] = []
        failed: list[str] = []
        for option in options:
            try:
                state = self._inner(option)
            except UnknownError as error:
                failed.append(str(error))
                continue
            if not any(same(state, other) for other in found):
                found.append(state)
        if any("earlier step fails" not in reason for reason in failed):
            raise UnknownError(failed[0])
        if len(found) != 1:
            raise UnknownError("several values" if found else failed[0])
        return found[0]

    # attributes

    def attribute(self, state: State, name: str) -> State:
        if isinstance(state, Object):
            return self._of_object(state.value, name)
        return self._of_instance(state.type, name)

    def _of_object(self, value: Any, name: str) -> State:
        if isinstance(value, StandIn):
            raise UnknownError("a stand-in")
        if isinstance(value, types.ModuleType):
            if isinstance(value, StandInModule) or (value.__name__, name) in self.isolation.tainted:
                raise UnknownError("a stand-in serves it")
            try:
                return Object(getattr(value, name))
            except AttributeError as error:
                if (value.__name__, name) in _OF_PLUG_INS:
                    raise UnknownError("a plug-in brings it") from error
                return self._imports.submodule(value, name, error)
            except Exception as error:
                raise UnknownError(said(error)) from error
        if isinstance(value, (types.FunctionType, types.MethodType)) and not hasattr(value, name):
            raise BrokenError(f"AttributeError: {value!r} has no attribute {name!r}".partition(" at 0x")[0])
        try:
            return Object(getattr(value, name))
        except AttributeError as error:
            if isinstance(value, type) and (derives_from_stand_in(value) or name in annotated_names(value)):
                if name in annotated_names(value):
                    raise BrokenError(said(error)) from error
                raise UnknownError("a base is a stand-in") from error
            if isinstance(value, type) or dataclasses.is_dataclass(value):
                raise BrokenError(said(error)) from error
            raise UnknownError(said(error)) from error

    def _of_instance(self, annotation: Any, name: str) -> State:
        classes = self._classes(annotation)
        found: list[State] = []
        refused: list[BrokenError] = []
        for cls in classes:
            try:
                found.append(self._of_class(cls, name))
            except BrokenError as error:
                refused.append(error)
        if found and refused:
            raise UnknownError("some of several types have it")
        if refused:
            raise refused[0]
        if len(found) > 1 and not all(same(found[0], other) for other in found[1:]):
            raise UnknownError("several types")
        return found[0]

    def _classes(self, annotation: Any) -> list[type]:
        annotation = plain(annotation)
        if isinstance(annotation, (StandIn, str)) or annotation is Any or annotation is inspect.Parameter.empty:
            raise UnknownError("no annotation tells its class")
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            return [
                cls for part in typing.get_args(annotation) if part is not type(None) for cls in self._classes(part)
            ]
        origin = typing.get_origin(annotation) or annotation
        if not isinstance(origin, type) or origin is object or origin is type(None):
            raise UnknownError("no annotation tells its class")
        return [origin]

    def _of_class(self, cls: type, name: str) -> State:
        if cls.__module__.startswith("transformers.models.auto.") and cls.__name__.startswith("Auto"):
            raise UnknownError("a factory, which has no instances")
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), NOTHING)
        match found:
            case property(fget=getter) if getter is not None:
                return self._annotated(getter, cls)
            case functools.cached_property():
                return self._annotated(found.func, cls)
            case staticmethod() | classmethod():
                return Object(getattr(cls, name))
            case types.FunctionType() | types.MethodDescriptorType() | types.WrapperDescriptorType():
                return Object(found, bound=True, owner=cls)
        hints = self._fields.of(cls)
        if name in hints:
            return Instance(hints[name]) if hints[name] is not None else Instance(Any)
        if found is not NOTHING:
            if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)) or found is None:
                return Instance(Any)
            if callable(found) and not isinstance(found, type):
                # A method that Cython has compiled is bound as a function is.
                return Object(found, bound=hasattr(type(found), "__get__"), owner=cls)
            return Instance(type(found)) if not isinstance(found, type) else Object(found)
        if derives_from_stand_in(cls):
            raise UnknownError("a base is a stand-in")
        if (delegate := _DELEGATES.get(cls.__name__)) is not None:
            return self._delegated(cls, name, *delegate)
        if any("__getattr__" in vars(base) or "__getattribute__" in vars(base) for base in cls.__mro__[:-1]):
            raise UnknownError(f"{cls.__name__} serves attributes of its own")
        if cls.__module__.partition(".")[0] != self.isolation.package:
            raise UnknownError("a class of another package")
        if any(
            word in source(base)
            for base in cls.__mro__[:-1]
            for word in ("setattr(self", "self.__dict__", "vars(self)")
        ):
            raise UnknownError(f"{cls.__name__} sets attributes by computed names")
        # torch leaves classes for others to derive from: what `dataset: Dataset` has, a class of the tree defines.
        if self.isolation.package == "torch" and "raise NotImplementedError" in source(cls):
            raise UnknownError("subclasses of others define it")
        for subclass in subclasses(cls):
            if inspect.getattr_static(subclass, name, NOTHING) is not NOTHING or name in self._fields.of(subclass):
                raise UnknownError(f"{cls.__name__} lacks it, {subclass.__name__} has it")
        raise BrokenError(f"AttributeError: {cls.__name__!r} object has no attribute {name!r}")

    def _delegated(self, cls: type, name: str, holder: str, module: str, served: str) -> State:
        """An attribute that `__getattr__` takes from another object: the real `__getattr__` on bare instances."""
        target = self._inner(["import", module, served])
        if not isinstance(target, Object) or not isinstance(target.value, type) or derives_from_stand_in(target.value):
            raise UnknownError("what it delegates to cannot be had")
        bare: Any = object.__new__(cls)
        vars(bare)[holder] = object.__new__(target.value)
        try:
            value = getattr(bare, name)
        except AttributeError as error:
            if name in self._fields.of(target.value):
                return Instance(self._fields.of(target.value)[name] or Any)
            raise BrokenError(said(error)) from error
        return Object(value) if callable(value) else Instance(type(value))

    def _annotated(self, function: Any, cls: type) -> State:
        annotation = inspect.unwrap(function).__annotations__.get("return", Any)
        found = hint(annotation, function.__module__, self.isolation)
        return Instance(cls if found is typing_self else found)

    # calls and elements

    def result(self, state: State) -> State:
        """What a call gives, awaited."""
        if isinstance(state, Instance):
            state = self._of_instance(state.type, "__call__")
        if isinstance(state, Instance):
            raise UnknownError("an instance is called")
        value = state.value
        if isinstance(value, StandIn):
            raise UnknownError("a stand-in")
        if isinstance(value, type):
            return Instance(value)
        function = inspect.unwrap(value)
        owner = state.owner if state.bound else getattr(value, "__self__", None)
        annotations = getattr(function, "__annotations__", {})
        annotation = annotations.get("return")
        if annotation is None:
            raise UnknownError("no annotation tells what it returns")
        if isinstance(annotation, str) and owner is not None and _bare(annotation) == getattr(owner, "__name__", ""):
            return Instance(owner)
        given = hint(annotation, function.__module__, self.isolation)
        if given is typing_self or isinstance(given, typing.TypeVar):
            if owner is None:
                raise UnknownError("no annotation tells what it returns")
            return Instance(owner if isinstance(owner, type) else type(owner))
        origin = typing.get_origin(given)
        if origin is not None and origin.__name__ in _AWAITABLES:
            given = typing.get_args(given)[-1]
        return Instance(given)

    def element(self, state: State, how: str) -> State:
        if not isinstance(state, Instance):
            raise UnknownError("not followed")
        given = plain(state.type)
        origin, arguments = typing.get_origin(given), typing.get_args(given)
        if origin is None or not arguments:
            raise UnknownError("no annotation tells its elements")
        if origin.__name__ in _ITERABLES or (origin is tuple and len(set(arguments) - {...}) == 1):
            return Instance(arguments[0])
        if origin.__name__ in ("dict", "Mapping", "MutableMapping", "defaultdict"):
            return Instance(arguments[1 if how == "item" else 0])
        raise UnknownError("no annotation tells its elements")


def _bare(annotation: str) -> str:
    return annotation.strip("'\"")
