"""Imports: is the module there, and the name in it; and where is it now, if it was moved or renamed?

Gives the kinds module-removed, module-moved, symbol-removed and symbol-moved.
"""

from __future__ import annotations

from patcher.analysis.findings import Broken, FindingKind, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.meaning.moves import moved_module, moved_symbol
from patcher.analysis.symbols import Absent, Module, Symbols, Unknown
from patcher.analysis.uses import ImportOf, Use
from patcher.i18n import Phrase, phrase


def judge_import(use: Use, need: ImportOf, program: Program, baseline: Program | None) -> Verdict:
    """Whether an import statement succeeds."""
    package = need.module.partition(".")[0]
    if package not in program.names:
        return Unrelated()
    name = need.name if need.name != "*" else None
    symbol = f"{need.module}.{name}" if name else need.module
    # The package is known not to be installed.
    if package not in program.target.packages:
        detail = phrase("{module} is not installed", module=package)
        return Broken((Problem("module-removed", symbol, use.line, detail),))
    symbols = program.target.packages[package]
    missing = missing_module(symbols, need.module)
    if missing:
        to = _moved(program, need.module, name, baseline)
        detail = phrase("there is no module {module}", module=missing)
        kind: FindingKind = "module-moved" if to else "module-removed"
        return Broken((Problem(kind, symbol, use.line, detail, suggested(to), to),))
    if name is None:
        return Fine(symbol)
    home = symbols.modules.find(need.module)
    found = symbols.module_member(home, name).definition if isinstance(home, Module) else home
    match found:
        case Absent(parent=parent, name=lacking):
            return Broken((absent_from_module(use.line, symbol, parent, lacking, program, baseline),))
        case Unknown(reason=reason):
            # The package computes its names, but a module of this name is there, which an import finds in any case.
            if symbols.modules.find(symbol) is not None:
                return Fine(symbol)
            return Undecided(symbol, reason)
        case _:
            return Fine(symbol)


def absent_from_module(
    line: int, symbol: str, parent: str, lacking: str, program: Program, baseline: Program | None
) -> Problem:
    """The problem of a name that a module does not have."""
    module, _, name = symbol.rpartition(".")
    to = _moved(program, module, name, baseline)
    detail = phrase("{parent} has no {name}", parent=parent or module, name=lacking)
    return Problem("symbol-moved" if to else "symbol-removed", symbol, line, detail, suggested(to), to)


def _moved(program: Program, module: str, name: str | None, baseline: Program | None) -> str:
    if not program.target.moves:
        return ""
    return moved_symbol(program, module, name, baseline) if name else moved_module(program, module)


def suggested(to: str) -> Phrase | None:
    return phrase("it is {symbol} now", symbol=to) if to else None


def missing_module(symbols: Symbols, dotted: str) -> str:
    """The first part of a module's dotted name that is not there; "" if all are."""
    parts = dotted.split(".")
    for length in range(1, len(parts) + 1):
        part = ".".join(parts[:length])
        found = symbols.modules.find(part)
        # What lies below a compiled module cannot be known.
        if isinstance(found, Unknown):
            return ""
        if found is None:
            return part
    return ""
