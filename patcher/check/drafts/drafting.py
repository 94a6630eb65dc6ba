"""From findings to drafted records: repairs by cause, one record each, kept only if they prove themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.findings import Finding, Report
from patcher.analysis.symbols import Symbols
from patcher.check.drafts.arguments import argument_repairs
from patcher.check.drafts.imports import import_repairs
from patcher.check.drafts.inputs import Draft, DraftInputs, Releases, Repair
from patcher.check.drafts.members import member_repairs
from patcher.check.drafts.overrides import override_repairs
from patcher.check.drafts.proof import Prover, conflicting_record, replayed, with_drafts
from patcher.check.drafts.versions import version_repairs
from patcher.check.drafts.writing import Written, as_written, write_drafts
from patcher.check.history import History, earlier_releases
from patcher.check.targets import Located
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.agent.folders import distribution_of, package_in
from patcher.packages.releases.cache import cached_sources
from patcher.plan.examples import examples
from patcher.records.model import Record, Text, When
from patcher.records.parse import parse
from patcher.records.rules import DISTRIBUTIONS
from patcher.records.writing import written
from patcher.rewrite import matches
from patcher.rewrite.edits import Edit, MoveImport

if TYPE_CHECKING:
    from patcher.analysis.project import Project
    from patcher.session.session import Session


HEADING = (
    "A draft, made from the sources of the target release. Review it before you keep it:",
    "is the new name the same thing, and is nothing lost with what is left out?",
)
_REPAIRED = ("break", "optional")


def draft_records(
    findings: Iterable[Finding],
    inputs: DraftInputs,
    taken: Iterable[str] = (),
    patched: Mapping[str, str] | None = None,
) -> tuple[Draft, ...]:
    """Drafts for the findings that a sound repair is known for and no record repairs.

    Each applies on the tree, makes its findings vanish and adds none (but optional uses of what could not be imported
    before), alone and together with the drafts before it.
    `taken` are ids that records have already, `patched` the texts of files that records have changed: where a draft
    edits their lines, it comes after them.
    """
    wanted = [one for one in findings if one.severity in _REPAIRED and one.repaired_by is None and one.is_in_tree]
    # Imports and arguments first: a repaired import may take an attribute's finding along.
    wanted.sort(key=lambda finding: finding.kind == "attribute-removed")
    inputs = replace(inputs, findings=tuple(wanted))
    groups: dict[tuple[str, str | None], list[Repair]] = {}
    for finding in wanted:
        with suppress(RecursionError):  # What would be asked of a package cannot be read, or nests too deeply.
            for repair in repairs(finding, inputs):
                groups.setdefault((repair.cause, inputs.since(finding)), []).append(repair)
    prover = Prover(inputs)
    ids = set(taken)
    drafts: list[Draft] = []
    texts: dict[str, str] = dict(patched or {})
    for group in groups.values():
        if all(_is_among(repair.finding, drafts) for repair in group):
            continue
        # All findings of one cause in one record; if that does not prove itself, each alone.
        for part in (group, *([repair] for repair in group if len(group) > 1)):
            if (draft := _drafted(part, inputs, prover, ids)) is None:
                continue
            if (draft := _ordered_after(draft, inputs, texts)) is not None:
                drafts.append(draft)
                ids.add(draft.id)
            if part is group and draft is not None:
                break
    return tuple(drafts)


def repairs(finding: Finding, inputs: DraftInputs) -> list[Repair]:
    """What could be done about a finding, as far as the sources speak for it."""
    match finding.kind:
        case "module-removed" | "module-moved" | "symbol-removed" | "symbol-moved":
            return import_repairs(finding, inputs)
        case "argument-removed" | "argument-shifted":
            return argument_repairs(finding, inputs)
        case "attribute-removed":
            return member_repairs(finding, inputs)
        case "override-mismatch":
            return override_repairs(finding, inputs)
        case "version-compared-as-text":
            return version_repairs(finding, inputs)
        case _:
            return []


def _is_among(finding: Finding, drafts: Iterable[Draft]) -> bool:
    """Whether a draft that is there already takes the finding away."""
    place = (finding.key, finding.line)
    return any((gone.key, gone.line) == place for draft in drafts for gone in draft.repairs)


def _drafted(group: Sequence[Repair], inputs: DraftInputs, prover: Prover, ids: set[str]) -> Draft | None:
    """One record of the repairs, if it proves itself."""
    name = _unused_id(_identifier(group), ids)
    record = _record(name, group, inputs)
    gone = prover.prove(record, [repair.finding for repair in group])
    if gone is None:
        return None
    texts = {file: inputs.text(file) or "" for file in record.files}
    shown = examples(record, texts, inputs.verl, inputs.word)
    if shown is None:
        return None
    return _verified(replace(record, examples=shown), gone)


def _verified(record: Record, gone: tuple[Finding, ...]) -> Draft | None:
    """The draft, if its text reads back as the record."""
    text = written(record, HEADING)
    read = parse(text, Path(f"{record.id}.toml"))
    if not isinstance(read, Record):
        # A draft that cannot be read back is a mistake of this program and not of the tree.
        raise AssertionError(f"a drafted record does not parse: {read}")
    return Draft(record.id, text, read, gone)


def _ordered_after(draft: Draft, inputs: DraftInputs, texts: dict[str, str]) -> Draft | None:
    """The draft in the company of those before it: `after` them where it edits their lines. `texts` are brought on."""
    record = draft.record
    while True:
        now = {file: texts.get(file) or inputs.text(file) or "" for file in record.files}
        made = replayed(record, now, inputs.word, frozenset(record.after))
        if made is not None:
            texts.update(made)
            return draft if record is draft.record else _verified(record, draft.repairs)
        # A record before this one has marked the line. `after` says that this record builds on its result.
        other = conflicting_record(record, now, inputs.word)
        if other is None or other in record.after:
            return None
        record = replace(record, after=(*record.after, other))


def _record(name: str, group: Sequence[Repair], inputs: DraftInputs) -> Record:
    first = group[0].finding
    package, since = first.package, inputs.since(first)
    target = inputs.release(package)
    distribution = distribution_of(package)
    edits = _without_covered(dict.fromkeys(edit for repair in group for edit in repair.edits))
    versions = {"verl": f"=={inputs.verl.partition('+')[0]}"} if inputs.verl else {}
    # Records can be limited to these distributions only.
    if distribution in DISTRIBUTIONS and (since or target):
        versions[distribution] = f">={(since or target).partition('+')[0]}"
    what = _all(repair.finding.detail for repair in group)
    change = phrase("{package} {version}: {what}", package=package, version=since or target, what=what)
    evidence = _all(repair.evidence for repair in group)
    reason = phrase("{change}. The repair rests on this: {evidence}.", change=change, evidence=evidence)
    title = _all(repair.title for repair in group)
    return Record(
        id=name,
        title=str(title),
        reason=str(reason),
        lifetime="until-upstream",
        when=When(
            versions,
            has=tuple(dict.fromkeys(symbol for repair in group for symbol in repair.has)),
            lacks=tuple(dict.fromkeys(symbol for repair in group for symbol in repair.lacks)),
        ),
        edits=edits,
        resolved=_resolved(edits, inputs),
        repairs=tuple(dict.fromkeys(repair.finding.symbol for repair in group)),
        tags=tuple(dict.fromkeys((distribution, "draft"))),
        zh=Text(title.render("zh"), reason.render("zh")),
    )


def _without_covered(edits: Collection[Edit]) -> tuple[Edit, ...]:
    """The edits but for those that one of the whole file makes as well."""
    alike = {replace(edit, count=1) for edit in edits if edit.within is None}
    return tuple(edit for edit in edits if edit.within is None or replace(edit, within=None, count=1) not in alike)


def _all(parts: Iterable[Phrase]) -> Phrases:
    return Phrases(tuple({str(part): part for part in parts}.values()))


def _resolved(edits: Sequence[Edit], inputs: DraftInputs) -> tuple[str, ...]:
    """The import that upstream would write, where that is all there is to the record."""
    moves = {(edit.old, edit.new) for edit in edits if isinstance(edit, MoveImport)}
    # Where a record only moves one import, the import that upstream will write shows that the record is no longer
    # needed.
    if len(moves) != 1 or not all(isinstance(edit, MoveImport) for edit in edits):
        return ()
    module, _, name = moves.pop()[1].rpartition(".")
    pattern = f"from {module} import {name}" if module else f"import {name}"
    texts = (inputs.text(file) or "" for file in {edit.file for edit in edits})
    return () if any(matches(text, pattern) for text in texts) else (pattern,)


def _identifier(group: Sequence[Repair]) -> str:
    """`draft-vllm-lora-models-moved`: the package, the last parts of what changed, and what became of it."""
    first = group[0]
    package, *parts = first.cause.split(".")
    words = re.findall(r"[a-z0-9]+", ".".join([package, *parts[-2:], first.verb]).lower())
    return "-".join(("draft", *words))


def _unused_id(name: str, ids: set[str]) -> str:
    number, free = 2, name
    while free in ids:
        free, number = f"{name}-{number}", number + 1
    return free


@dataclass(frozen=True, slots=True)
class Drafted:
    """Drafts that were written, and the report on the tree with the records and the drafts applied."""

    drafts: tuple[Draft, ...]
    files: Written
    texts: Mapping[str, str]
    """Of the files that records and drafts change, by path."""
    left: Report


def draft(
    report: Report,
    located: Iterable[Located],
    history: History,
    session: Session,
    folder: Path,
    patched: Mapping[str, str],
    recheck: Callable[[Project], Report],
) -> Drafted:
    """Write a draft for each finding that a sound repair is known for.

    `patched` are the texts of the files that records have changed, by path; `recheck` checks the tree with others.
    """
    names = {one.asked.module: one.asked.known_as for one in located}

    def symbols(package: str, version: str) -> Symbols | None:
        place = cached_sources(names.get(package, package), version)
        found = package_in(place, package) if place is not None else None
        return Symbols(found) if found is not None else None

    known = {
        module: [version for version in earlier_releases(name, "", fetch=False) if cached_sources(name, version)]
        for module, name in names.items()
    }
    inputs = DraftInputs(
        history.project, history.target, report.verl, Releases(known, symbols), history.baseline, session.config.marker
    )
    taken = [record.id for record in session.records]
    made = draft_records(report.findings, inputs, taken, patched)
    files = write_drafts(made, folder)
    drafts = as_written(made, files)
    # A repaired version test brings code to life that was guarded before: what is left is judged and not reckoned.
    texts = with_drafts((one.record for one in drafts), patched, inputs.text, inputs.word)
    left = recheck(history.project.rewritten(texts))
    still = {(one.key, one.line) for one in left.findings}
    # What an edited draft repairs is not known but from the tree as it then is.
    drafts = tuple(
        one if one in made else replace(one, repairs=tuple(f for f in one.repairs if (f.key, f.line) not in still))
        for one in drafts
    )
    return Drafted(drafts, files, texts, left)
