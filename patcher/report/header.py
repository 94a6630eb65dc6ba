"""The first lines of reports, and their JSON: the tree, installed versions, which environment was chosen, warnings
about both.

    verl 0.6.1 (/home/me/fork, main@869d31b) · vllm 0.20.2 · torch 2.9.1 · flash-attn not installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.git.head import head
from patcher.i18n import Language, Phrase, phrase, show
from patcher.packages.versions import No, satisfies
from patcher.session.session import NAME_IT

if TYPE_CHECKING:
    from patcher.check.untried import Untried
    from patcher.session.pre_images import PreImages
    from patcher.session.session import Session

_ALWAYS = ("vllm", "flash-attn")
"""Packages that are named also where they are not installed: records ask for them."""
_SHOWN = ("vllm", "torch", "transformers", "triton", "ray", "flash-attn", "sglang", "megatron-core")


def header(session: Session, language: Language) -> str:
    """`verl 0.6.1 (checkout ~/fork, main@869d31b) · vllm 0.20.2 · …`."""
    packages = session.environment.packages
    tree = session.tree
    place = [str(tree.root)]
    if (where := head(tree.root)) is not None:
        place.append(f"{where.branch or show('detached', language)}@{where.short}")
    verl = packages.get("verl")
    parts = [f"verl {verl.version if verl else show('of unknown version', language)} ({', '.join(place)})"]
    for name in _SHOWN:
        item = packages.get(name)
        if item is not None:
            alias = f" ({item.distribution})" if item.distribution not in (None, name) else ""
            assumed = f" ({show('assumed', language)})" if item.origin == "assumed" else ""
            parts.append(f"{name} {item.version}{alias}{assumed}")
        elif name in _ALWAYS:
            parts.append(f"{name} {show('not installed', language)}")
    return " · ".join(parts)


def problems(session: Session, language: Language) -> list[str]:
    """What is odd about the environment, a line each."""
    texts = [*session.environment.notes, *session.environment.problems]
    if inner := session.tree.nested():
        texts.append(phrase("there is another verl tree within this one: {folders}", folders=", ".join(inner)))
    return [f"{show('note', language)}: {show(text, language)}" for text in texts]


def about_version(session: Session, language: Language) -> list[str]:
    """A newer verl that was merged while the version file stayed."""
    merged = session.merged_verl
    return [f"{show('note', language)}: {merged.text.render(language)}"] if merged is not None else []


def about_pre_images(found: PreImages, language: Language) -> list[str]:
    """What is wrong with the ledger and the pre-images, a line each."""
    return [f"{show('note', language)}: {text.render(language)}" for text, _ in found.findings]


def unknown_environment(session: Session, tongue: Language) -> list[str]:
    """The lines at the top of a report where the environment that trains is not known."""
    why = session.unknown_environment
    if why is None:
        return []
    return [f"{show('note', tongue)}: {why.render(tongue)}", f"  {NAME_IT.render(tongue)}", ""]


def environment_json(session: Session) -> dict[str, Any]:
    """Which interpreter counts, by which rule it was chosen, and what to do where it is not known."""
    environment = session.environment
    found: dict[str, Any] = {"python": str(environment.python), "chosen_by": environment.chosen_by}
    return {**found, "known": environment.known, "advice": "" if environment.known else str(NAME_IT)}


def untried_json(found: Untried | None) -> dict[str, Any] | None:
    """What `check` finds that no record was made for; None where it was not asked."""
    if found is None:
        return None
    counts = None if found.found is None else dict(found.found)
    fields: dict[str, Any] = {"why": str(found.why), "check": counts, "unreadable": found.unreadable}
    return {**fields, "unknown": str(found.unknown), "next": "" if found.clean else str(found.next)}


def after_untried(found: Untried, session: Session) -> Phrase:
    """How a report's last sentence ends where records leave something: what may repair it, and the command."""
    verl = session.environment.version("verl")
    if verl is None or _is_reached(verl, session):
        return phrase(". Next: {step}", step=found.next)
    text = ". No record is for verl {verl}; drafts may repair part of it. Next: {step}"
    return phrase(text, verl=verl, step=found.next)


def _is_reached(verl: str, session: Session) -> bool:
    """Whether any record, on or off, is for this verl, be it installed beside the right releases or not."""
    ranges = [record.when.versions.get("verl", "") for record in session.records_anywhere]
    return any(not isinstance(satisfies(verl, one, kind="tree"), No) for one in ranges if one)
