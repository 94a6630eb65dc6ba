"""What symbols mean on one set of releases: dotted names and symbolic values -> definitions and instances."""

from patcher.compat.meaning.meanings import (
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
from patcher.compat.meaning.universe import Universe
from patcher.symbols import Class, Function

__all__ = [
    "Class",
    "Container",
    "Function",
    "InstanceOf",
    "Meaning",
    "Meanings",
    "Method",
    "Outside",
    "SuperOf",
    "TreeClass",
    "TreeFunction",
    "TreeModule",
    "TypeOf",
    "Universe",
]
