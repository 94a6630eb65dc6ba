"""REPORT.md: the seven points of a bug report, ready to paste, with what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patcher import __version__
from patcher.bundle.contents import Missing, Run, Section
from patcher.i18n import Language, language, phrase, show
from patcher.templating import environment

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Finding

DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "REPORT.md": ("bug-report.md.j2", "en"),
    "REPORT.zh-CN.md": ("bug-report.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""
EXCERPT = 24_000
"""Characters of the log that are pasted: sites where bugs are reported take some 60,000 in all."""
SCRIPT = 12_000
"""Characters of the script that are pasted, beside the excerpt."""


def reports(run: Run, missing: Sequence[Missing], *, renamed: bool) -> Iterator[Section]:
    """The report in English, and in the user's language. `renamed`: whether people and machines have other names."""
    for name, (_, tongue) in DOCUMENTS.items():
        if tongue in ("en", language()):
            holds = phrase("the seven points of a bug report, ready to paste")
            yield Section(name, holds, render(name, run, missing, renamed=renamed))


def render(name: str, run: Run, missing: Sequence[Missing], *, renamed: bool) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, tongue = DOCUMENTS[name]
    facts, diagnosis = run.facts, run.diagnosis
    root = diagnosis.root if diagnosis is not None else None
    cascade = [one.id for one in diagnosis.findings if one.role == "cascade"] if diagnosis is not None else []
    script = facts.get("script")
    engine = environment()
    engine.filters["gib"] = lambda size: "-" if size is None else f"{size / (1 << 30):.1f} GiB"
    return engine.get_template(template).render(
        root=_root(root, tongue) if root is not None else None,
        verdict=diagnosis.verdict if diagnosis is not None else None,
        notes=[show(note, tongue) for note in diagnosis.notes] if diagnosis is not None else [],
        cascade=list(dict.fromkeys(cascade)),
        missing=missing,
        lack=lambda point: " ".join(_lacking(one, tongue) for one in missing if one.point == point),
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


def _root(root: Finding, tongue: Language) -> dict[str, Any]:
    text = root.symptom.zh if root.symptom is not None and tongue == "zh" else root.symptom
    title, cause = (text.title, text.cause) if text is not None else (root.place.text, "")
    return {"id": root.id, "title": title, "line": root.place.number, "cause": cause}


def _lacking(one: Missing, tongue: Language) -> str:
    what, how = show(one.what, tongue), show(one.how, tongue) if one.how else ""
    label = show("missing: {what}", tongue).format(what=what)
    return f"**{label}**{f' ({how})' if how else ''}"


def _gpus(gpus: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    counted = Counter((gpu["name"], gpu["memory"]) for gpu in gpus)
    return [{"name": name, "memory": memory, "count": count} for (name, memory), count in counted.items()]


def _cut(text: str, most: int) -> str:
    """The end of a text that is too long to paste: what tells of a failure stands last."""
    return text if len(text) <= most else "…\n" + text[-most:].partition("\n")[2]
