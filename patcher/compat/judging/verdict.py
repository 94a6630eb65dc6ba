"""One verdict a use."""

from __future__ import annotations

from patcher.compat.meaning import Universe
from patcher.compat.model import Beside, Broken, FindingKind, Fine, ImportOf, Problem, Undecided, Use, Verdict
from patcher.language import phrase
from patcher.symbols import Absent, Unknown


def judge(use: Use, universe: Universe, baseline: Universe | None = None) -> Verdict:  # noqa: ARG001
    """Whether what a use needs is there.

    `baseline`, a release that the tree is known to work with, tells what positional arguments were meant for.
    """
    match use.need:
        case ImportOf(module=module, name=name):
            return _imported(use, module, name, universe)
        case _:
            return Beside()


def _imported(use: Use, module: str, name: str | None, universe: Universe) -> Verdict:
    package = module.partition(".")[0]
    if package not in universe.target.against:
        return Beside()
    symbol = f"{module}.{name}" if name and name != "*" else module
    match universe.resolve(symbol).definition:
        case Absent(parent=parent, name=missing):
            detail = phrase("{parent} has no {name}", parent=parent, name=missing)
            kind: FindingKind = "symbol-removed" if parent == module else "module-removed"
            return Broken((Problem(kind, symbol, use.line, detail),))
        case Unknown(reason=reason):
            return Undecided(symbol, reason)
        case _:
            return Fine(symbol)
