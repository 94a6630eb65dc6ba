"""What a name in a file stands for: dotted names, resolved through the file's imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import libcst as cst

from patcher.rewrite.syntax import IMPORTS, only

Parts: TypeAlias = tuple[str, ...]
Imports: TypeAlias = Mapping[str, tuple[Parts, ...]]


def imports(nodes: Iterable[cst.CSTNode]) -> Imports:
    """The full names that each imported local name may stand for."""
    table: dict[str, tuple[Parts, ...]] = {}
    for node in only(nodes, *IMPORTS):
        base = tuple(module(node).split(".")) if isinstance(node, cst.ImportFrom) else ()
        for alias in aliases(node):
            full = (*base, *dotted(alias.name))
            # `import a.b` binds `a`, `import a.b as c` binds `c` to a.b, `from a import b` binds `b` to a.b.
            local = alias.evaluated_alias or full[0 if not base else -1]
            full_names = full if alias.asname or base else full[:1]
            table[local] = (*table.get(local, ()), full_names)
    return table


def aliases(node: cst.Import | cst.ImportFrom) -> tuple[cst.ImportAlias, ...]:
    """What an import names; nothing for `*`."""
    return () if isinstance(node.names, cst.ImportStar) else tuple(node.names)


def imported(alias: cst.ImportAlias) -> str:
    """The name that is imported, dotted: `a.b` of `import a.b as c`."""
    return ".".join(dotted(alias.name))


def local(alias: cst.ImportAlias) -> str:
    """The name that it is imported as: `c` of `import a.b as c`, `a.b` of `import a.b`."""
    return alias.evaluated_alias or imported(alias)


def module(node: cst.ImportFrom) -> str:
    """The module that names are imported from, with its leading dots."""
    return "." * len(node.relative) + (".".join(dotted(node.module)) if node.module else "")


def dotted(node: cst.CSTNode) -> Parts:
    """The parts of `a.b.c`; where the chain starts at something else than a name, an empty first part."""
    found: list[str] = []
    while isinstance(node, cst.Attribute):
        found.append(node.attr.value)
        node = node.value
    found.append(node.value if isinstance(node, cst.Name) else "")
    return tuple(reversed(found))


def resolve(node: cst.CSTNode, table: Imports) -> tuple[Parts, ...]:
    """The full names that a dotted expression may stand for; the expression itself where nothing is imported."""
    parts = dotted(node)
    full_names = table.get(parts[0])
    return tuple((*full, *parts[1:]) for full in full_names) if full_names else (parts,)


def ends_in(names: Iterable[Parts], tail: Parts) -> bool:
    """Whether one of some full names ends in the parts of another."""
    return any(name[-len(tail) :] == tail for name in names)
