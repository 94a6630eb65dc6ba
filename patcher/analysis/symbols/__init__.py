"""Static look-up of a symbol in a package's sources: nothing is imported or run."""

from patcher.analysis.parameters import Parameter, Signature
from patcher.analysis.symbols.definition import (
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
from patcher.analysis.symbols.resolver import Symbols

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
