"""What symbols mean on one set of releases: dotted names and symbolic values -> definitions and instances."""

from patcher.analysis.meaning.meanings import (
    Container,
    InstanceOf,
    Meaning,
    Meanings,
    Method,
    Outside,
    SuperOf,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
)
from patcher.analysis.meaning.program import Program

__all__ = [
    "Container",
    "InstanceOf",
    "Meaning",
    "Meanings",
    "Method",
    "Outside",
    "Program",
    "SuperOf",
    "TreeClass",
    "TreeFunction",
    "TreeModule",
    "TypeOf",
]
