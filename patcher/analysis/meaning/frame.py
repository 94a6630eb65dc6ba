"""Where an expression of a package stands: whose names it sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patcher.analysis.symbols.scope import FunctionNode

if TYPE_CHECKING:
    from patcher.analysis.meaning.meanings import InstanceOf, TreeClass, TypeOf
    from patcher.analysis.symbols import Class


@dataclass(frozen=True, slots=True)
class Frame:
    """A module's body, a class's (`owner`) or a function's; `receiver` is what its first parameter is bound to."""

    module: str
    owner: Class | None = None
    function: FunctionNode | None = None
    receiver: InstanceOf | TypeOf | Class | TreeClass | None = None
