"""Where something of a package that is gone from its place is now: by its name, and by how alike the places are."""

from __future__ import annotations

import re
from typing import Literal

from patcher.analysis.bindings import Imported
from patcher.analysis.meaning.lookup import Lookup
from patcher.analysis.symbols import (
    Absent,
    Class,
    Definition,
    Function,
    Module,
    Symbols,
    Unknown,
    Variable,
    full_name,
)

Kind = Literal["class", "function", "variable"]
_BY_KEYWORD: dict[str, Kind] = {"class": "class", "def": "function", "": "variable"}
_ASIDE = frozenset({"tests", "test", "testing", "examples", "benchmarks", "third_party"})


def moved_symbol(program: Lookup, module: str, name: str, baseline: Lookup | None = None) -> str:
    """The dotted name under which what was `module.name` is to be found now; "" if that is not clear."""
    if module.partition(".")[0] not in program.target.packages or name.startswith("__"):
        return ""
    wanted = _kind_of(baseline.resolve(f"{module}.{name}").definition) if baseline is not None else None
    key = ("moved", module, name, wanted)
    return program.once(key, lambda: moved_in(program.symbols(module), module, name, wanted), "")


def moved_module(program: Lookup, dotted: str) -> str:
    """The one module of the package that has the same last name and a path alike; "" if that is not clear."""
    symbols = program.target.packages.get(dotted.partition(".")[0])
    if symbols is None:
        return ""
    tail = dotted.rpartition(".")[2]
    same = [module for module in symbols.text.modules if module.rpartition(".")[2] == tail]
    best = _best_match(dotted, same)
    # A module called `utils` or `base` (five letters or fewer, or one of many) is no evidence.
    return best if best and (len(same) == 1 or _likeness(dotted, best) > 1) and len(tail) > 5 else ""


def _kind_of(definition: Definition) -> Kind | None:
    match definition:
        case Class():
            return "class"
        case Function():
            return "function"
        case Variable():
            return "variable"
        case _:
            return None


def moved_in(symbols: Symbols, module: str, name: str, wanted: Kind | None = None) -> str:
    """The dotted name in these sources; `wanted`: what it stood for, where that is known."""
    found: dict[str, Kind] = {}
    for place, keyword in symbols.text.definitions(name):
        if not _ASIDE & set(place.split(".")):
            found.setdefault(place, _BY_KEYWORD[keyword])
    sorts = {wanted} if wanted is not None else _likely_kinds(name)
    places = [place for place, sort in found.items() if sort in sorts]
    best = _best_match(module, places)
    # A short name (`run`, `Index`) or one of several namesakes is believed only if the modules are alike.
    if not best or ((len(places) > 1 or len(name) < 6) and not _is_similar(module, best, name)):
        return ""
    if isinstance(symbols.resolve(f"{best}.{name}").definition, Absent | Unknown):
        return ""
    return _public(symbols, best, name)


_ALIKE = 0.9
"""How alike two names are, by difflib's ratio, where one is a misspelling of the other. Set by hand: `LlamaFroCausalLM`
and `LlamaForCausalLM` have 0.94."""
_DIGITS = re.compile(r"\d+")


def spelled_alike(symbols: Symbols, symbol: str) -> str:
    """What is there and differs in a letter or two from `pkg.mod.name` or `pkg.mod.function(parameter)`, else "".

    For a symbol that no release has: one that was removed may well resemble another. Numbers must be the same: a
    `Qwen4Config` that is not there yet is no misspelling of `Qwen3Config`.
    """
    import difflib

    owner, last = symbol.rstrip(")").split("(") if symbol.endswith(")") else symbol.rpartition(".")[::2]
    definition = symbols.resolve(owner).definition
    if symbol.endswith(")"):
        signature = symbols.signature(definition)
        names = [] if isinstance(signature, Unknown) else [one.name for one in signature.parameters]
    elif isinstance(definition, Module) and not isinstance(scope := symbols.modules.scope(definition), Unknown):
        names = [*scope.names]
    else:
        return ""
    digits = _DIGITS.findall(last)
    same = [one for one in names if _DIGITS.findall(one) == digits and one != last]
    near = difflib.get_close_matches(last, same, n=2, cutoff=_ALIKE)
    return near[0] if len(near) == 1 else ""


def _likely_kinds(name: str) -> set[Kind]:
    """What a name stands for by how it is written."""
    bare = name.lstrip("_")
    if bare[:1].isupper():
        return {"variable"} if bare.isupper() else {"class", "variable"}
    return {"function", "variable"}


def _best_match(old: str, places: list[str]) -> str:
    """The place most like the old one; "" if two are equally so."""
    if len(places) < 2:
        return places[0] if places else ""
    ranked = sorted(places, key=lambda place: _likeness(old, place), reverse=True)
    return ranked[0] if _likeness(old, ranked[0]) > _likeness(old, ranked[1]) else ""


def _likeness(old: str, place: str) -> float:
    """How many words of their paths two modules share; those of the last part count double."""
    ours, theirs = old.split(".")[1:], place.split(".")[1:]
    # A guessed measure: the last part of the path tells the most, shared folders and words less, and of two places
    # alike the shorter path wins.
    tail = 2 * len(set(ours[-1:]) & set(theirs[-1:]))
    words = {word for part in ours for word in part.split("_")} & {word for part in theirs for word in part.split("_")}
    return tail + len(set(ours) & set(theirs)) + len(words) / 2 - len(theirs) / 100


def _is_similar(old: str, place: str, name: str) -> bool:
    # A long name is hardly given twice by chance; twelve letters is a guess.
    return _likeness(old, place) >= 1 or len(name) > 12


def _public(symbols: Symbols, module: str, name: str) -> str:
    """The shortest package above the module that exports the same thing by the same name."""
    target = symbols.resolve(f"{module}.{name}").definition
    parts = module.split(".")
    for length in range(1, len(parts)):
        package = ".".join(parts[:length])
        home = symbols.modules.find(package)
        if not isinstance(home, Module) or home.path is None:
            continue
        scope = symbols.modules.scope(home)
        if isinstance(scope, Unknown) or not any(isinstance(b.value, Imported) for b in scope.bindings(name)):
            continue
        found = symbols.module_member(home, name).definition
        if full_name(found) == full_name(target):
            return f"{package}.{name}"
    return f"{module}.{name}"
