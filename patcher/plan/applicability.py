"""Is a record needed for what is installed? Its `[when]`, held to the versions and symbols of this environment.

    [when]                              vllm 0.20.2                     yes
    vllm = ">=0.12"                     vllm 0.11.0                     no
    lacks = ["vllm.utils.Parser"]       vllm 0.20.2, which has Parser   no
                                        vllm not installed              unknown

Versions come first; of a nightly or pre-release, whose version says little, the package's own symbols decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from patcher.data import shipped
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.packages import Environment
from patcher.packages.agent.folders import distribution_of, normalise
from patcher.packages.versions import Kind, No, Undecided, Verdict, Yes, is_prerelease, satisfies
from patcher.records.model import Record, When

SymbolLookup = Callable[[str], bool | None]
"""Whether the installed packages offer a dotted symbol; None where that is unknown."""

NOTHING_TRIED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Applicability:
    """`maybe`: the tree's files must decide. `unknown`: a package is not there to ask."""

    answer: Literal["yes", "no", "maybe", "unknown"]
    reason: Phrase | Phrases
    note: Phrase | Phrases = NOTHING
    """What the answer rests on, where that deserves saying."""


def applicability(
    record: Record, environment: Environment, lookup: SymbolLookup, newest: Mapping[str, str] = NOTHING_TRIED
) -> Applicability:
    """Decide from the record's `[when]`. Ask `lookup` only when the versions do not say no.

    `newest` are the newest releases, by name, that the shipped records were tried on. A shipped record for these is not
    refused on a newer one: its upper limit says how far it is known to be right, and what is there decides.
    """
    tried = newest if record.path is not None and record.path.is_relative_to(shipped("patches")) else NOTHING_TRIED
    unsure: list[Phrase | str] = []
    notes: list[Phrase | str] = []
    symbols = _by_package(record.when)
    for name, specifier in record.when.versions.items():
        installed = environment.packages.get(name)
        if installed is None:
            return Applicability(
                "unknown", phrase("{name} is not installed; the record is for {name} {spec}", name=name, spec=specifier)
            )
        if name in symbols and is_prerelease(installed.version) and _answered(symbols[name], lookup):
            notes.append(
                phrase("{name} {version} is no release: its symbols decide", name=name, version=installed.version)
            )
            continue
        match _verdict(name, installed.version, specifier, tried.get(name)):
            case No():
                fields = {"name": name, "version": installed.version, "spec": specifier}
                return Applicability("no", phrase("{name} {version}; the record is for {name} {spec}", **fields))
            case Undecided(reason):
                unsure.append(reason)
            case Yes(note):
                notes.extend([note] if note else [])
    for name in record.when.absent:
        if (installed := environment.packages.get(name)) is not None:
            return Applicability("no", phrase("{name} {version} is installed", name=name, version=installed.version))
    for name in record.when.renamed:
        if (installed := environment.packages.get(name)) is None:
            return Applicability("unknown", phrase("{name} is not installed", name=name))
        if not installed.renamed:
            return Applicability(
                "no", phrase("{name} {version} is known under its own name", name=name, version=installed.version)
            )
    unanswered: list[str] = []
    for wanted, names in ((True, record.when.has), (False, record.when.lacks)):
        for symbol in names:
            there = lookup(symbol)
            if there is None:
                unanswered.append(symbol)
            elif there is not wanted:
                template = "{symbol} is there" if there else "{symbol} is not there"
                return Applicability("no", phrase(template, symbol=symbol))
    if unanswered:
        listed = ", ".join(unanswered)
        notes.append(phrase("decided by version alone, for {symbols} could not be looked up", symbols=listed))
    grounds = Phrases(tuple(unsure)) if unsure else _grounds(record.when, environment)
    return Applicability("maybe" if unsure else "yes", grounds, Phrases(tuple(notes)))


def _verdict(name: str, version: str, specifier: str, newest: str | None) -> Verdict:
    kind: Kind = "tree" if name == "verl" else "dependency"
    found = satisfies(version, specifier, kind=kind)
    if newest is None or not isinstance(found, No) or not isinstance(satisfies(newest, specifier, kind=kind), Yes):
        return found
    if not isinstance(satisfies(version, f">{newest}", kind=kind), Yes):
        return found
    # A shipped `vllm = ">=0.12,<0.25"` was tried up to 0.24. Of 0.25 it does not know whether the break is still there.
    text = "{name} {version} is newer than {newest}, the last that records were tried on"
    return Undecided(phrase(text, name=name, version=version, newest=newest))


def _grounds(when: When, environment: Environment) -> Phrases:
    installed = environment.packages
    parts = [
        phrase("{name} {version} is in {spec}", name=n, version=installed[n].version, spec=s)
        for n, s in when.versions.items()
    ]
    parts += [phrase("{name} is not installed", name=name) for name in when.absent]
    parts += [
        phrase("{name} comes as {distribution}", name=name, distribution=normalise(installed[name].distribution or ""))
        for name in when.renamed
    ]
    return Phrases(tuple(parts) or (phrase("needed everywhere"),), ", ")


def _by_package(when: When) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for symbol in (*when.has, *when.lacks):
        found.setdefault(distribution_of(symbol.partition(".")[0]), []).append(symbol)
    return found


def _answered(symbols: list[str], lookup: SymbolLookup) -> bool:
    return all(lookup(symbol) is not None for symbol in symbols)
