"""Runs import statements on a release."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from .isolation import Isolation
from .stand_ins import StandInModule
from .state import BrokenError, Object, State, UnknownError, said
from .texts import conditional, generated


class Imports:
    """Each statement is run once."""

    def __init__(self, isolation: Isolation) -> None:
        self.isolation = isolation
        self._imports: dict[tuple[str, str | None], State | Exception] = {}

    def imported(self, module: str, name: str | None) -> State:
        key = (module, name)
        if key not in self._imports:
            try:
                self._imports[key] = self._import(module, name)
            except (BrokenError, UnknownError) as error:
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
                raise self._refused(error, missing, None) from error
            raise UnknownError(said(error)) from error
        except ImportError as error:
            holder = sys.modules.get(module)
            if name and holder is not None and error.name == module and f"import name {name!r}" in str(error):
                raise self._refused(error, module, name) from error
            raise UnknownError(said(error)) from error
        except Exception as error:
            raise UnknownError(said(error)) from error
        if isolation.stands_in(module) or (name and (module, name) in isolation.tainted):
            raise UnknownError("a stand-in serves it")
        value = space["_it"] if name else sys.modules[module]
        if isinstance(value, StandInModule) and isolation.own(value.__name__):
            raise UnknownError("a stand-in serves it")
        return Object(value)

    def _refused(self, error: Exception, module: str, name: str | None) -> Exception:
        """BrokenError, or UnknownError where the source would bind the name on another platform."""
        holder = sys.modules.get(module)
        if name and holder is not None and name in conditional(holder):
            return UnknownError("bound under a condition that does not hold on this machine")
        if name is None and self.isolation.folder is not None and generated(module):
            return UnknownError("compiled or generated when the package is built")
        return BrokenError(said(error))

    def submodule(self, module: types.ModuleType, name: str, error: AttributeError) -> State:
        whole = f"{module.__name__}.{name}"
        try:
            self.isolation.run(lambda: importlib.import_module(whole))
        except ModuleNotFoundError as missing:
            if missing.name != whole:
                raise UnknownError(said(missing)) from missing
            raise self._refused(error, module.__name__, name) from error
        except Exception as other:
            raise UnknownError(said(other)) from other
        if self.isolation.stands_in(whole):
            raise UnknownError("a stand-in serves it") from error
        return Object(sys.modules[whole])
