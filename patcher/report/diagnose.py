"""The report of `diagnose`: verdict, phases, root cause with its fixes, and the cascade of errors that followed from
it.

A symptom that no record covers is explained from the exception's own words: which release removed or added the name,
what to install, links to known issues.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from patcher.diagnose.diagnosis import Diagnosis, Direction, Explanation, FailedLine, Finding, Offer, Verdict
from patcher.diagnose.evidence import LogLine
from patcher.diagnose.known_issues import KnownIssue
from patcher.i18n import Language, Phrase, Phrases, language, phrase, show
from patcher.logs.milestones import phase_name
from patcher.migrate.wording import readable_size
from patcher.terminal.document import Json, Lines, Output, Part
from patcher.terminal.layout import width, wrapped
from patcher.terminal.sequences import style, to_paste

_STYLES = {"ok": "green", "failed": "red", "stalled": "yellow", "running": "cyan"}
_WORDS: dict[Verdict, Phrase] = {
    "ok": phrase("OK"),
    "failed": phrase("FAIL"),
    "stalled": phrase("STALLED"),
    "running": phrase("RUNNING"),
}
_REFUSED = "pip would refuse {requirement}, because of {other}"
_COLUMN = 12
_WIDTH = 116
_LONG = 240
"""Characters of a quoted line."""
_SHOWN = 8
"""Lines about the root, and names of a cascade."""


def diagnosis_report(
    found: Diagnosis,
    output: Output,
    log: str = "",
    job: Mapping[str, Any] | None = None,
    *,
    columns: int = 0,
) -> Iterator[Part]:
    """`log` is what was diagnosed, by its name on the command line; `job` the host's job that wrote it, if one did.

    `columns`: those of the terminal that it goes to, 0 for a file.
    """
    if output == "json":
        yield Json({**found.as_json(), "job": job})
    else:
        yield Lines(*lines(found, log, language(), columns))


def lines(found: Diagnosis, log: str, tongue: Language, columns: int = 0) -> list[str]:
    """The report, line by line."""
    report = [_head(found, log, tongue)]
    if reached := _phases(found, tongue):
        report += _item(phrase("phases"), reached, tongue, columns)
    if found.logs:
        report += _item(phrase("logs"), show(_read_logs(found), tongue), tongue, columns)
    report += root_lines(found, tongue, columns)
    if found.root is None and found.verdict != "ok":
        report += _listed(phrase("last words"), found.telling, tongue)
    report += _cascade(found, tongue, columns)
    report += _listed(phrase("never came"), found.missing, tongue)
    report += _listed(phrase("only here"), found.added, tongue)
    for note in found.notes:
        report += _item(phrase("note"), show(note, tongue), tongue, columns)
    return report


def root_lines(found: Diagnosis, tongue: Language, columns: int = 0) -> list[str]:
    """The root causes, with what repairs them."""
    roots = [finding for finding in found.findings if finding.role == "root"]
    return [line for root in roots for line in _root(root, found, tongue, columns)]


def _head(found: Diagnosis, log: str, tongue: Language) -> str:
    called = _WORDS[found.verdict] if found.verdict != "running" or found.live else phrase("NO END SEEN")
    word = style(show(called, tongue), fg=_STYLES[found.verdict], bold=True)
    if not found.lines:
        state = phrase("the log is empty, it says nothing")
    elif found.verdict == "ok" and found.steps is not None and found.step is not None and found.step < found.steps:
        state = phrase(
            "the run has ended, at step {step} of {steps}, and no error is seen", step=found.step, steps=found.steps
        )
    elif found.verdict == "ok":
        state = phrase("the run has come to its end")
    elif found.phase is not None:
        state = phrase("in phase {phase}", phase=phase_name(found.phase))
    else:
        state = phrase("no phase of a training is seen")
    size = phrase(
        "{log}: {lines} {lines:line|lines}, {size}", log=log, lines=f"{found.lines:,}", size=readable_size(found.size)
    )
    return f"{word}  {show(state, tongue)}" + (f"  ({show(size, tongue)})" if log else "")


def _read_logs(found: Diagnosis) -> Phrase:
    """Which of a folder's logs were read."""
    named = ", ".join(found.logs[:_SHOWN]) + (", \u2026" if len(found.logs) > _SHOWN else "")
    if not found.earlier:
        return phrase("{count} of one run: {names}", count=len(found.logs), names=named)
    text = "{count} of the newest run: {names}. Left aside: {earlier} of earlier runs, such as {example}"
    return phrase(text, count=len(found.logs), names=named, earlier=len(found.earlier), example=found.earlier[0])


def _phases(found: Diagnosis, tongue: Language) -> str:
    """`config ▸ dataset ▸ actor 12 s · step 3 of 100`."""
    took = [
        (show(phase_name(one), tongue), f" {seconds:.0f} s" if seconds >= 1 else "")
        for one, seconds in found.spans.items()
    ]
    parts = [" \u25b8 ".join(f"{called}{seconds}" for called, seconds in took)] if took else []
    if found.step is not None and found.steps is not None:
        parts.append(show(phrase("step {step} of {steps}", step=found.step, steps=found.steps), tongue))
    elif found.step is not None:
        parts.append(show(phrase("step {step}", step=found.step), tongue))
    return " \u00b7 ".join(parts)


def _root(root: Finding, found: Diagnosis, tongue: Language, columns: int) -> Iterator[str]:
    symptom = root.symptom
    explanation = root.explanation
    if symptom is None:
        unknown = phrase("not known: no record covers it; the lines around it:")
        sentence = _sentence(explanation)
        if sentence is not None:
            unknown = phrase("{sentence} (read from the exception; no record covers it)", sentence=sentence)
        yield from _item(phrase("root"), show(unknown, tongue), tongue, columns)
    else:
        words = symptom.zh if tongue == "zh" else symptom
        yield from _item(phrase("root"), f"{words.title}  [{symptom.id}]", tongue, columns)
    yield f"{' ' * (_COLUMN + 2)}{_where(root.place)}"
    yield from _quoted(_about(root, found), root.place)
    if symptom is not None:
        yield from _item(phrase("cause"), (symptom.zh if tongue == "zh" else symptom).cause, tongue, columns)
    # The words of the message stand among the lines above.
    only_quoted = explanation is None or explanation.parts is None or explanation.parts.matter == "words"
    if symptom is not None and not only_quoted and (sentence := _sentence(explanation)) is not None:
        yield from _item(phrase("here"), show(sentence, tongue), tongue, columns)
    if explanation is not None and root.needs_more:
        yield from _explained(explanation, tongue, columns)
    elif symptom is not None and symptom.part == "wrapper" and explanation is not None and explanation.often:
        yield from _item(phrase("often"), show(explanation.often, tongue), tongue, columns)
    yield from _threads(root.threads, tongue)
    if explanation is not None and explanation.search and not root.threads:
        yield f"{_label(phrase('search'), tongue)}{explanation.search}"
    for number, offer in enumerate(root.fixes, 1):
        label = phrase("fix {number}", number=number) if len(root.fixes) > 1 else phrase("fix")
        yield from _fix(label, offer, tongue, columns)


def _sentence(one: Explanation | None) -> Phrase | None:
    """What an exception of a known shape says."""
    return one.sentence if one is not None and one.parts is not None else None


def _explained(one: Explanation, tongue: Language, columns: int) -> Iterator[str]:
    """What the message and the releases say, and where to look further."""
    if one.caller is not None:
        called = f"{one.caller.shown}  {one.calls}".rstrip()
        yield from _item(phrase("called at"), called, tongue, columns)
    if one.own:
        yield from _item(phrase("own code"), one.own, tongue, columns)
    direction = one.direction
    if direction is not None:
        yield from _item(phrase("releases"), show(_of_releases(direction), tongue), tongue, columns)
        if direction.asks_until:
            text = phrase(
                "{name} asks for it no more since {version}", name=direction.asker, version=direction.asks_until
            )
            yield from _item(phrase("or"), show(text, tongue), tongue, columns)
        if direction.asks_since:
            text = phrase("{name} asks for it since {version}", name=direction.asker, version=direction.asks_since)
            yield from _item(phrase("or"), show(text, tongue), tongue, columns)
        # Two ways out: another release of what is asked, or of the package that asks. `against`: what is installed and
        # would make pip refuse it.
        ways = [(direction.requirement, direction.against), (direction.asker_requirement, direction.against_asker)]
        for requirement, against in ways:
            if requirement and not against and one.parts is not None and one.parts.matter != "config-key":
                yield f"{_label(phrase('to try'), tongue)}{to_paste(f'pip install {shlex.quote(requirement)}')}"
            for other in against:
                refused = phrase(_REFUSED, requirement=requirement, other=other)
                yield from _item(phrase("but"), show(refused, tongue), tongue, columns)
    elif one.often is not None:
        yield from _item(phrase("often"), show(one.often, tongue), tongue, columns)
    if one.failed_line is not None:
        yield from _item(phrase("releases"), show(_of_line(one.failed_line), tongue), tongue, columns)
    if (raised := one.raised_where) is not None:
        text = phrase("{test}, in {name} {version}", test=raised.test, name=raised.distribution, version=raised.release)
        yield from _item(phrase("raised if"), show(text, tongue), tongue, columns)
    if one.nearest:
        yield from _item(phrase("nearest"), ", ".join(one.nearest), tongue, columns)
    if one.remedy:
        yield from _item(phrase("it says"), one.remedy, tongue, columns)


def _threads(threads: Sequence[KnownIssue], tongue: Language) -> Iterator[str]:
    """Links, with the release that a thread names and, in English, a line of what it comes to."""
    for at, one in enumerate(threads):
        head = _label(phrase("threads"), tongue) if not at else " " * (_COLUMN + 2)
        fixed = show(phrase("fixed in {release}", release=one.fixed_in), tongue) if one.fixed_in else ""
        facts = "; ".join(part for part in (fixed, one.about if tongue == "en" else "") if part)
        yield f"{head}{one.url}  {facts}".rstrip()


def _of_releases(one: Direction) -> Phrase | Phrases | str:
    fields = {"symbol": one.symbol, "name": one.distribution}
    if one.moved_to:
        text = "{name} has {symbol} as {place} since {version}"
        return phrase(text, version=one.removed_in, place=one.moved_to, **fields)
    if one.removed_in and one.added_in:
        text = "{name} has {symbol} from {first} on and no longer since {version}; which release ran is not known"
        return phrase(text, first=one.added_in, version=one.removed_in, **fields)
    if one.removed_in:
        return phrase("{name} has {symbol} no longer since {version}", version=one.removed_in, **fields)
    if one.added_in:
        text = "{name} has {symbol} only since {version}"
        if one.again:
            text = "{name} has {symbol} again since {version}; it was there before, and releases between lack it"
        return phrase(text, version=one.added_in, **fields)
    return one.unknown


def _of_line(one: FailedLine) -> Phrase:
    fields = {"name": one.distribution, "release": one.release, "version": one.changed_in}
    if one.release:
        return phrase("{name} {release} has the line that failed, {version} has another in its place", **fields)
    text = "{name} has the line that failed no longer since {version}; which release ran is not known"
    return phrase(text, **fields)


def _where(place: LogLine) -> str:
    file = "" if place.file == "-" else place.file
    return ":".join(part for part in (file, str(place.number or "")) if part)


def _about(root: Finding, found: Diagnosis) -> Sequence[LogLine]:
    """The lines that show the root, with the line itself."""
    if root.place not in found.telling:
        return (root.place,)
    if root.symptom is None:
        return found.telling
    at = found.telling.index(root.place)
    begin = max(0, at - _SHOWN // 2)
    return found.telling[begin : begin + _SHOWN]


def _quoted(places: Sequence[LogLine], own: LogLine) -> Iterator[str]:
    """Lines of the log by their numbers, the one that counts with a mark. A process by its name has no number."""
    wide = max(len(str(place.number)) for place in places)
    for place in places:
        text = f"{place.number:>{wide}}  {_cut(place.text)}" if place.number else _cut(place.text)
        if place.number == own.number:
            yield style(f"{' ' * (_COLUMN + 2)}> {text}", bold=True)
        else:
            yield f"{' ' * (_COLUMN + 4)}{text}".rstrip()


def _listed(label: Phrase, places: Sequence[LogLine], tongue: Language) -> Iterator[str]:
    """Lines that belong to a label; their file is named where there are several."""
    several = len({place.file for place in places}) > 1
    shown = [f"{Path(place.file).name}:{place.number}" if several else str(place.number) for place in places]
    wide = max(map(len, shown), default=0)
    for at, (where, place) in enumerate(zip(shown, places, strict=True)):
        head = _label(label, tongue) if not at else " " * (_COLUMN + 2)
        yield f"{head}{where:>{wide}}  {_cut(place.text)}".rstrip()


_BAR = re.compile(r"(?<=\|)[\u2588-\u258f# ]{10,}(?=\|)")
"""The blocks of a progress bar, which may stand before what another process has written into the same line."""


def _cut(text: str) -> str:
    text = _BAR.sub("\u2026", text) if len(text) > _LONG else text
    return text if len(text) <= _LONG else f"{text[:_LONG]} \u2026"


def _fix(label: Phrase, offer: Offer, tongue: Language, columns: int) -> Iterator[str]:
    yield from _item(label, offer.zh if tongue == "zh" else offer.text, tongue, columns)
    for command in offer.commands:
        yield f"{' ' * (_COLUMN + 6)}{to_paste(command)}"
    notes = [offer.note] if offer.note else []
    if offer.setting is not None:
        notes.append(phrase("run scripts take it from the setting {setting}", setting=offer.setting))
    for note in notes:
        yield from (f"{' ' * (_COLUMN + 2)}{line}" for line in _wrapped(f"({show(note, tongue)})", columns))


def _cascade(found: Diagnosis, tongue: Language, columns: int) -> Iterator[str]:
    rest = [finding for finding in found.findings if finding.role == "cascade"]
    if not rest:
        return
    named = []
    for finding in rest[:_SHOWN]:
        words = finding.symptom.zh if tongue == "zh" and finding.symptom is not None else finding.symptom
        title = words.title if words is not None else finding.place.text[:80]
        named.append(show(phrase("{title} (line {line})", title=title, line=finding.place.number), tongue))
    if len(rest) > _SHOWN:
        named.append(show(phrase("and {count} more", count=len(rest) - _SHOWN), tongue))
    joined = ("\uff1b" if tongue == "zh" else "; ").join(named)
    yield from _item(phrase("cascade"), joined, tongue, columns)


def _item(label: Phrase, text: str, tongue: Language, columns: int) -> Iterator[str]:
    head = _label(label, tongue)
    for number, line in enumerate(_wrapped(text, columns)):
        yield f"{head if not number else ' ' * (_COLUMN + 2)}{line}"


def _label(label: Phrase, tongue: Language) -> str:
    text = show(label, tongue)
    return f"  {text}{' ' * max(1, _COLUMN - width(text))}"


def _wrapped(text: str, columns: int) -> list[str]:
    """The text in lines for a file or pipe; what goes to a terminal is broken when it is printed."""
    return [text] if columns else wrapped(text, _WIDTH - _COLUMN)
