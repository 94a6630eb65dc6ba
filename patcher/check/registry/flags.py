"""Whether an engine argument is one that the release of vLLM takes."""

from __future__ import annotations

import re

from patcher.analysis.meaning import Universe
from patcher.analysis.model import Beside, Broken, EngineFlag, Fine, Problem, Undecided, Use, Verdict
from patcher.check.registry.options import ENGINE_ARGS, Options, options_of
from patcher.i18n import Phrase, phrase

__all__ = ["judge_flag", "options_of"]

_OPPOSITES = (("disable_", "enable_"), ("enable_", "disable_"), ("no_", ""))
_LIKE_ENOUGH = 0.75


def judge_flag(use: Use, universe: Universe, baseline: Universe | None = None) -> Verdict:  # noqa: ARG001
    """Whether vLLM takes the flag: on its command line, or as a field of its engine arguments."""
    assert isinstance(use.need, EngineFlag)
    if "vllm" not in universe.target.against or "vllm" not in universe.target.packages:
        return Beside()
    name = use.need.name.replace("-", "_")
    symbol = f"{ENGINE_ARGS}({name})"
    options = options_of(universe.target.packages["vllm"])
    if options is None:
        return Undecided(symbol, "the engine arguments of this release are not found in its sources")
    first = name.partition(".")[0]
    if options.takes(first) or (not use.need.option and first in options.fields):
        return Fine(symbol)
    version = universe.target.against["vllm"]
    detail = phrase("vLLM {version} has no engine argument {name}", version=version, name=first)
    return Broken((Problem("flag-removed", symbol, use.line, detail, _suggestion(first, options)),))


def _suggestion(name: str, options: Options) -> Phrase | None:
    there = options.options | frozenset(options.fields)
    for prefix, other in _OPPOSITES:
        opposite = other + name.removeprefix(prefix)
        if name.startswith(prefix) and opposite in there:
            return phrase("there is {other}, whose sense is the opposite", other=opposite)
    near = nearest(name, there)
    return phrase("there is {names}", names=", ".join(near)) if near else None


def nearest(name: str, names: frozenset[str] | set[str]) -> list[str]:
    """Up to two names that are written much the same, the likest first; `cuda_graph` and `cudagraph` are alike."""
    from difflib import SequenceMatcher

    bare = _bare(name)
    rated = sorted(
        ((SequenceMatcher(None, bare, _bare(other)).ratio(), _words_shared(name, other), other) for other in names),
        key=lambda entry: (-entry[0], -entry[1], entry[2]),
    )
    likely = [entry for entry in rated[:2] if entry[0] >= _LIKE_ENOUGH]
    return [other for ratio, _, other in likely if ratio >= likely[0][0] - 0.05]


def _bare(name: str) -> str:
    return re.sub(r"^(?:enable|disable|no|use)_", "", name).replace("_", "")


def _words_shared(one: str, other: str) -> int:
    return len(set(one.split("_")) & set(other.split("_")))
