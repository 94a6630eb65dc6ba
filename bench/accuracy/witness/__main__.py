"""`python -m witness JOB`: answer the probes of a job, a line of JSON each as it is done.

The job: {"package", "folder" (sources, or null for what is installed), "paths", "probes": [[key, probe], …]}.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import sys
import types
import typing
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from .forwarding import forwarded
from .isolation import Isolation
from .state import BrokenError, Instance, Object, State, UnknownError
from .states import States

_DUMMY = object()
_FIRST = {
    "vllm": [
        "vllm.v1.worker.gpu_worker",
        "vllm.v1.engine.core_client",
        "vllm.v1.engine.async_llm",
        "vllm.v1.executor.multiproc_executor",
        "vllm.v1.executor.ray_executor",
    ]
}
"""Modules whose classes are the ones at work where an annotation names only their base."""


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    sys.path[:0] = job["paths"]
    folder = Path(job["folder"]) if job["folder"] else None
    isolation = Isolation(job["package"], folder)
    with contextlib.suppress(Exception):
        isolation.run(lambda: importlib.import_module(job["package"]))
    states = States(isolation)
    for module in _FIRST.get(job["package"], ()):
        with contextlib.suppress(Exception):
            isolation.run(partial(importlib.import_module, module))
    for key, probe in job["probes"]:
        print(json.dumps(["begin", key]), file=answers)
        print(json.dumps(["end", key, answer(probe, states)]), file=answers)
    print(json.dumps(["done", sorted(isolation.missing), sorted(isolation.tolerant)]), file=answers)


_ABSTRACT = "_forward_unimplemented"
"""What `torch.nn.Module.forward` is: it stands for whatever a subclass defines."""


def answer(probe: Any, states: States) -> list[Any]:
    """["holds", …] or ["broken", message] or ["unknown", reason]."""
    try:
        match probe:
            case ["exists", expression]:
                states.evaluate(expression)
                return ["holds"]
            case ["call", expression, count, keywords, partial]:
                return _bind(states, expression, count, keywords, partial)
            case ["override", expression, name]:
                return _overridden(states, expression, name)
    except BrokenError as error:
        return ["broken", str(error)]
    except UnknownError as error:
        return ["unknown", str(error)[:200]]
    except (Exception, SystemExit) as error:
        return ["unknown", f"{type(error).__name__}: {error}"[:200]]
    return ["unknown", "no such probe"]


def _signature(state: State) -> inspect.Signature:
    if isinstance(state, Instance):
        raise UnknownError("an instance is called")
    value = state.value
    if type(value).__name__.startswith("StandIn"):
        raise UnknownError("a stand-in")
    if isinstance(value, type) and any(base.__name__ == "StandInBase" for base in value.__mro__):
        raise UnknownError("a base is a stand-in")
    if typing.is_typeddict(value):
        return inspect.Signature([inspect.Parameter("fields", inspect.Parameter.VAR_KEYWORD)])
    if getattr(value, "__name__", "") == _ABSTRACT:
        raise UnknownError("a subclass defines it")
    try:
        # A wrapper of a bound method is bound a second time: what it says that it wraps has one parameter less.
        twice = isinstance(getattr(getattr(value, "__func__", None), "__wrapped__", None), types.MethodType)
        signature = inspect.signature(value, follow_wrapped=not twice)
    except (TypeError, ValueError) as error:
        raise UnknownError(f"no signature: {error}") from error
    if state.bound:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    return signature


def _bind(states: States, expression: Any, count: int, keywords: list[str], partial: bool) -> list[Any]:
    """Whether the arguments bind, each keyword on its own, then the rest; and to which parameters the positional go."""
    try:
        state = states.evaluate(expression)
    except BrokenError as error:
        raise UnknownError(f"an earlier step fails: {error}") from error
    if isinstance(state, Instance):
        state = states.attribute(state, "__call__")
    if isinstance(state, Instance):
        raise UnknownError("an instance is called")
    signature = _signature(state)
    accepted, refused = [], {}
    for keyword in keywords:
        try:
            into = signature.bind_partial(**{keyword: _DUMMY}).arguments
            if keyword not in into:
                forwarded(state.value, keyword)
            accepted.append(keyword)
        except TypeError as error:
            refused[keyword] = f"TypeError: {error}"
    bind = signature.bind_partial if partial else signature.bind
    given = [_DUMMY] * count
    positional = "" if not refused else "unknown"
    try:
        bind(*given, **dict.fromkeys(accepted, _DUMMY))
        positional = ""
    except TypeError as error:
        positional = f"TypeError: {error}"
    names = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return ["bound", refused, positional, names[:24]]


def _overridden(states: States, expression: Any, name: str) -> list[Any]:
    """The parameters of the method that is overridden: name, kind, and whether it must be given."""
    try:
        state = states.evaluate(expression)
    except BrokenError as error:
        raise UnknownError(f"an earlier step fails: {error}") from error
    if not isinstance(state, Object) or not isinstance(state.value, type):
        raise UnknownError("no class")
    if any(base.__name__ == "StandInBase" for base in state.value.__mro__):
        raise UnknownError("a base is a stand-in")
    method = inspect.getattr_static(state.value, name, None)
    if method is None:
        return ["free"]
    if isinstance(method, (staticmethod, classmethod)):
        method = method.__func__
    if not inspect.isfunction(method) or method.__name__ == _ABSTRACT:
        return ["free"]
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    return ["method", [[each.name, each.kind.name, each.default is each.empty] for each in parameters]]


if __name__ == "__main__":
    main()
