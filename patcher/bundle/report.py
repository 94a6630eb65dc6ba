"""REPORT.md: the seven points of a bug report, ready to paste, with what is missing said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patcher.bundle.model import Missing
from patcher.i18n import Language, show
from patcher.templating import environment

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis

DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "REPORT.md": ("bug-report.md.j2", "en"),
    "REPORT.zh-CN.md": ("bug-report.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""
EXCERPT = 24_000
"""Characters of the log that are pasted: sites where bugs are reported take some 60,000 in all."""
SCRIPT = 12_000


def render(
    name: str, facts: Mapping[str, Any], diagnosis: Diagnosis | None, missing: Sequence[Missing], *, renamed: bool
) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    from patcher import __version__

    template, language = DOCUMENTS[name]
    engine = environment()
    engine.filters["gib"] = _gib

    def lack(point: str) -> str:
        return " ".join(_lacking(one, language) for one in missing if one.point == point)

    root = diagnosis.root if diagnosis is not None else None
    symptom = root.symptom if root is not None else None
    text = symptom.zh if symptom is not None and language == "zh" else symptom
    told_root = None
    if root is not None:
        title = text.title if text is not None else root.place.text
        told_root = {"id": root.id, "title": title, "line": root.place.number, "cause": text.cause if text else ""}
    cascade = [one.id for one in diagnosis.findings if one.role == "cascade"] if diagnosis is not None else []
    script = facts.get("script")
    return engine.get_template(template).render(
        root=told_root,
        verdict=diagnosis.verdict if diagnosis is not None else None,
        cascade=list(dict.fromkeys(cascade)),
        missing=missing,
        lack=lack,
        gpus=_gpus(facts["machine"]["gpus"]),
        machine=facts["machine"],
        packages=facts["versions"]["packages"],
        git=facts.get("git"),
        applied=facts.get("applied", ()),
        command=facts.get("command", ""),
        excerpt=_cut(facts.get("excerpt", ""), EXCERPT).rstrip("\n"),
        first=facts.get("first", 1),
        environments=facts["environments"],
        ignored=facts.get("ignored", {}),
        script={"kind": script["kind"], "text": _cut(script["text"], SCRIPT).rstrip("\n")} if script else None,
        tried=facts.get("tried", ()),
        others=facts.get("others", ()),
        version=__version__,
        renamed=renamed,
    )


def _lacking(one: Missing, language: Language) -> str:
    what, how = show(one.what, language), show(one.how, language) if one.how else ""
    label = show("missing: {what}", language).format(what=what)
    return f"**{label}**{f' ({how})' if how else ''}"


def _gpus(gpus: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    counted = Counter((gpu["name"], gpu["memory"]) for gpu in gpus)
    return [{"name": name, "memory": memory, "count": count} for (name, memory), count in counted.items()]


def _gib(size: int | None) -> str:
    return "-" if size is None else f"{size / (1 << 30):.1f} GiB"


def _cut(text: str, most: int) -> str:
    """The end of a text that is too long to paste: what tells of a failure stands last."""
    return text if len(text) <= most else "…\n" + text[-most:].partition("\n")[2]
