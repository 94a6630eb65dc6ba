"""The first line of a report: the tree and what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.git.head import head
from patcher.i18n import Language, phrase, show

if TYPE_CHECKING:
    from patcher.session.pre_images import PreImages
    from patcher.session.session import Session

_ALWAYS = ("vllm",)
_SHOWN = ("vllm", "torch", "transformers", "triton", "ray", "flash-attn")


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
        elif name in _ALWAYS or name == "flash-attn":
            parts.append(f"{name} {show('not installed', language)}")
    return " · ".join(parts)


def problems(session: Session, language: Language) -> list[str]:
    """What is odd about the environment, a line each."""
    texts = [*session.environment.notes, *session.environment.problems]
    if inner := session.tree.nested():
        texts.append(phrase("there is another verl tree within this one: {folders}", folders=", ".join(inner)))
    return [f"{show('note', language)}: {show(text, language)}" for text in texts]


def about_pre_images(found: PreImages, language: Language) -> list[str]:
    """What is wrong with the ledger and the pre-images, a line each."""
    return [f"{show('note', language)}: {text.render(language)}" for text, _ in found.findings]
