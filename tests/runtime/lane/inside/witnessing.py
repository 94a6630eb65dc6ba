"""Claims of `check` about one package's symbol, executed.

An answer is ["broken", what was raised], ["holds", what was done] or ["unknown", why]. A claim is
[kind, symbol, source]: a finding's kind and symbol, and for an override the source of the tree's method.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
import types
from functools import cached_property
from typing import Any

from inside.failures import failure
from witness.forwarding import forwarded
from witness.isolation import Isolation
from witness.state import BrokenError, Instance, UnknownError
from witness.states import States

Answer = list[str]


class Witness:
    @cached_property
    def _states(self) -> States:
        return States(Isolation("vllm", None))

    def answer(self, claim: list[str]) -> Answer:
        kind, symbol, source = claim
        try:
            match kind.partition("-")[0]:
                case "module" | "symbol":
                    return self._import(symbol)
                case "attribute":
                    return self._attribute(symbol)
                case "argument":
                    return self._argument(symbol, kind)
                case "override":
                    return _override(symbol, source)
                case "env":
                    return _variable(symbol)
                case "flag":
                    return _flag(symbol)
        except UnknownError as error:
            return ["unknown", str(error)]
        except Exception as error:
            name, text, _ = failure(error, [])
            return ["unknown", f"{name}: {text}"]
        return ["unknown", "no way to execute it"]

    def _import(self, symbol: str) -> Answer:
        """`from module import name`; a member of a class by asking it."""
        module, _, name = symbol.rpartition(".")
        statement = f"from {module} import {name}" if module else f"import {symbol}"
        try:
            exec(statement, {})
        except (ImportError, AttributeError) as error:
            kind, text, _ = failure(error, [])
            owner, rest = _resolved(symbol)
            if isinstance(owner, type) and not rest:
                return ["holds", symbol]
            return ["broken", f"{kind}: {text}"]
        return ["holds", statement]

    def _attribute(self, symbol: str) -> Answer:
        owner, rest = _resolved(symbol.rpartition(".")[0])
        if rest:
            return ["unknown", f"{rest} cannot be had"]
        name = symbol.rpartition(".")[2]
        try:
            if isinstance(owner, type):
                self._states.attribute(Instance(owner), name)
            else:
                getattr(owner, name)
        except (BrokenError, AttributeError) as error:
            return ["broken", str(error) if isinstance(error, BrokenError) else f"AttributeError: {error}"]
        return ["holds", f"{owner.__name__} has {name}"]

    def _argument(self, symbol: str, kind: str) -> Answer:
        path, _, parameter = symbol.removesuffix(")").partition("(")
        function, rest = _resolved(path)
        if rest:
            return ["unknown", f"{rest} cannot be had"]
        signature = inspect.signature(function)
        if kind == "argument-required":
            others = {
                one.name: None
                for one in signature.parameters.values()
                if one.name != parameter and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
            }
            return _bound(lambda: signature.bind(**others))

        def call() -> None:
            if parameter not in signature.bind_partial(**{parameter: None}).arguments:
                forwarded(function, parameter)

        return _bound(call)


def _bound(call: Any) -> Answer:
    try:
        call()
    except TypeError as error:
        return ["broken", f"TypeError: {error}"]
    return ["holds", "the arguments bind"]


def _resolved(symbol: str) -> tuple[Any, str]:
    """The object by a dotted name, and the part of it that cannot be had, "" if all can."""
    parts = symbol.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for index, name in enumerate(parts[count:], count):
            if not hasattr(found, name):
                return found, ".".join(parts[: index + 1])
            found = getattr(found, name)
        return found, ""
    return None, symbol


def _override(symbol: str, source: str) -> Answer:
    """The tree's method is called as the package calls it, on an object that serves nobody; its result is awaited."""
    parameter = symbol.removesuffix(")").partition("(")[2]
    owner, rest = _resolved(symbol.partition("(")[0])
    if rest or parameter not in inspect.signature(owner).parameters:
        return ["holds", f"it is not called with {parameter}"]
    space: dict[str, Any] = {"pickle": importlib.import_module("pickle")}
    exec("from __future__ import annotations\n" + textwrap.dedent(source), space)
    method = space[ast.parse(textwrap.dedent(source)).body[0].name]  # type: ignore[attr-defined]
    try:
        done = method(types.SimpleNamespace(sockets=[]), "method", **{parameter: True})
        done.result()
    except (TypeError, AttributeError) as error:
        return ["broken", f"{type(error).__name__}: {error}"]
    return ["holds", f"it takes {parameter}"]


def _variable(symbol: str) -> Answer:
    module, _, name = symbol.rpartition(".")
    known = importlib.import_module(module).environment_variables
    return ["holds", f"{name} is read"] if name in known else ["broken", f"{module} does not read {name}"]


def _flag(symbol: str) -> Answer:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    flag = "--" + symbol.removesuffix(")").partition("(")[2].replace("_", "-")
    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    _, left = parser.parse_known_args([flag, "1"])
    return ["broken", f"unrecognized arguments: {' '.join(left)}"] if left else ["holds", f"{flag} is known"]
