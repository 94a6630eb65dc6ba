"""What the host has: versions, GPUs, disk."""

from __future__ import annotations

from patcher.i18n import Phrase, Phrases, listed, phrase
from patcher.migrate.walk import Outcome, Walk
from patcher.profiles.model import Text
from patcher.remote.survey import Gpu, Survey

_SHOWN = ("vllm", "torch", "transformers", "triton", "ray")


def run(walk: Walk) -> Outcome:
    """Survey the host. That no interpreter there has vLLM and torch is a warning: records are planned all the same."""
    from patcher.remote.probing import survey

    walk.survey = survey(walk.connection, walk.host)
    return described(walk.survey)


def described(survey: Survey) -> Outcome:
    """The survey in a line, and what is odd about it."""
    parts: list[Text] = [_versions(survey), _machine(survey)]
    notes: list[Text] = []
    chosen = survey.interpreter
    lacking = chosen is None or "vllm" not in chosen.packages or "torch" not in chosen.packages
    if chosen is not None:
        notes.append(phrase("the interpreter is {python} ({how})", python=chosen.python, how=listed(chosen.origin)))
    rivals = [other for other in survey.others if "vllm" in other.packages and "torch" in other.packages]
    if rivals and chosen is not None and chosen.origin != "named":
        names = ", ".join(f"{other.python} (vllm {other.packages['vllm'].version})" for other in rivals)
        notes.append(phrase("others with vllm and torch: {names}; choose with --python", names=names))
    if lacking:
        notes.append(phrase("neither vllm nor torch was found there; --python names the environment that trains"))
    return Outcome(Phrases(tuple(parts), "; "), "warn" if lacking else "ok", notes=tuple(notes))


def _versions(survey: Survey) -> Phrase | str:
    chosen = survey.interpreter
    if chosen is None:
        return phrase("no environment for training")
    known = [f"{name} {chosen.packages[name].version}" for name in _SHOWN if name in chosen.packages]
    return ", ".join([*known, f"python {chosen.version}"])


def _machine(survey: Survey) -> Phrases:
    parts: list[Text] = [_gpus(survey.gpus)]
    if survey.driver:
        parts.append(phrase("driver {version}", version=survey.driver))
    if survey.free is not None:
        parts.append(phrase("{size} free", size=size(survey.free)))
    return Phrases(tuple(parts), ", ")


def _gpus(gpus: tuple[Gpu, ...]) -> Phrase:
    if not gpus:
        return phrase("no GPU")
    kinds = ", ".join(
        f"{sum(gpu.name == name for gpu in gpus)} x {name}" for name in dict.fromkeys(g.name for g in gpus)
    )
    busy = sum(bool(gpu.busy) for gpu in gpus)
    return phrase("{kinds}, {busy} busy", kinds=kinds, busy=busy) if busy else phrase("{kinds}, idle", kinds=kinds)


def size(count: int) -> str:
    """Bytes for people: `41.0 MB`, in powers of ten."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
