"""Imports: is the module there, and the name in it; and where is it now, if it was moved or renamed?

Gives the kinds module-removed, module-moved, symbol-removed and symbol-moved.
"""

from __future__ import annotations

from patcher.analysis.findings import Broken, FindingKind, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.meaning.moves import moved_module, moved_symbol
from patcher.analysis.symbols import Absent, Function, Module, Symbols, Unknown
from patcher.analysis.uses import ImportOf, Member, MemberOf, Named, Use, Value
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
        to = _moved(program, use, need.module, name, baseline)
        detail = phrase("there is no module {module}", module=missing)
        kind: FindingKind = "module-moved" if to else "module-removed"
        return Broken((Problem(kind, symbol, use.line, detail, suggested(to), to),))
    if name is None:
        return Fine(symbol)
    home = symbols.modules.find(need.module)
    found = symbols.module_member(home, name).definition if isinstance(home, Module) else home
    match found:
        case Absent():
            return Broken((absent_from_module(use, symbol, found, program, baseline),))
        case Unknown(reason=reason):
            # The package computes its names, but a module of this name is there, which an import finds in any case.
            if symbols.modules.find(symbol) is not None:
                return Fine(symbol)
            return Undecided(symbol, reason)
        case _:
            return Fine(symbol)


def absent_from_module(use: Use, symbol: str, gone: Absent, program: Program, baseline: Program | None) -> Problem:
    """The problem of a name that a module does not have."""
    module, _, name = symbol.rpartition(".")
    detail = phrase("{parent} has no {name}", parent=gone.parent or module, name=gone.name)
    if gone.newer:
        package = symbol.partition(".")[0]
        suggestion = phrase("{package} {version} has it", package=package, version=gone.newer)
        return Problem("symbol-removed", symbol, use.line, detail, suggestion)
    to = _moved(program, use, module, name, baseline)
    return Problem("symbol-moved" if to else "symbol-removed", symbol, use.line, detail, suggested(to), to)


def _moved(program: Program, use: Use, module: str, name: str | None, baseline: Program | None) -> str:
    """Where it is now; "" if that is not clear."""
    if not program.target.moves:
        return ""
    dotted = f"{module}.{name}" if name else module
    to = moved_symbol(program, module, name, baseline) if name else moved_module(program, module)
    read = _read_off(program, use.file, dotted)
    # A class, or what a name stands for otherwise, may have lost what is read off it. A module is the one that has it.
    if not read or (name and to and not isinstance(program.resolve(to).definition, Function)):
        return to
    if name and not name.islower():  # `from pkg.a import Model`, then `Model.run = run`: a class, as its name shows.
        return to
    homes = {moved_symbol(program, dotted, one, baseline).rpartition(".")[0] for one in read}
    if len(homes) == 1 and (home := homes.pop()):
        return home
    if name or not to:
        return ""
    return to if all(program.symbols(to).has(f"{to}.{one}") for one in read) else ""


def _read_off(program: Program, file: str, dotted: str) -> frozenset[str]:
    """What a file reads off a module: `Model` of `import pkg.models as m; m.Model`."""
    uses = program.project.uses(file) if file.endswith(".py") else ()
    needs = [use.need for use in uses if isinstance(use.need, MemberOf)]
    return frozenset(need.name for need in needs if _written_out(need.of) == dotted)


def _written_out(value: Value) -> str:
    """The dotted name that a value is written as: `pkg.models` of `import pkg`, then `pkg.models`; else ""."""
    match value:
        case Named(dotted=dotted):
            return dotted
        case Member(of=of, name=name) if outer := _written_out(of):
            return f"{outer}.{name}"
        case _:
            return ""


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
