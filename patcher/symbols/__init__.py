"""Static look-up of a symbol in a package's sources: nothing is imported or run."""

from patcher.symbols.definition import (
    Absent,
    Class,
    Definition,
    External,
    Function,
    Module,
    Resolution,
    Unknown,
    Variable,
    full_name,
)
from patcher.symbols.resolver import Symbols
from patcher.symbols.signature import Parameter, Signature

__all__ = [
    "Absent",
    "Class",
    "Definition",
    "External",
    "Function",
    "Module",
    "Parameter",
    "Resolution",
    "Signature",
    "Symbols",
    "Unknown",
    "Variable",
    "full_name",
]
