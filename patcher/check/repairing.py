"""The records in memory on a tree, for other versions than those installed: which findings they repair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patcher.analysis.conditions import severity_in_place, severity_of
from patcher.analysis.forest import Forest
from patcher.analysis.model import Report
from patcher.analysis.target import Target
from patcher.check.pair import Weigh, check_pair
from patcher.check.repairs import Repairs, Step, Texts, attribute
from patcher.packages import Environment, Installed
from patcher.plan.applicability import SymbolLookup, applicability
from patcher.plan.inputs import Request, belongs
from patcher.plan.replay import Workspace, predecessors

if TYPE_CHECKING:
    from patcher.plan.outcome import Plan
    from patcher.records.model import Record
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Repaired:
    """What the records do about a report."""

    repairs: Repairs
    plan: Plan
    off_by_default: frozenset[str] = frozenset()
    """Records named in `repaired_by` that apply makes only when asked for by id."""
    base: Texts = field(default_factory=dict)
    """The texts of the records' files before all of `steps`."""
    steps: tuple[Step, ...] = ()
    """The edits in order, with those of records that are off by default and would repair something."""


def repair(session: Session, forest: Forest, target: Target, report: Report, baseline: Target | None) -> Repaired:
    """Plan the records for the target's versions on the session's tree, and check what they make of it."""
    recheck = _rechecker(forest, target, report.verl, baseline)
    glance = _rechecker(forest, target, report.verl, baseline, severity_in_place)
    request = session.request()
    plan, now, base = planned(session, target, request)
    repairs = attribute(report, now, base, plan.steps, _texts(plan), recheck, glance)
    left = {one.file for one in repairs.before.of("break", "optional", "inert") if one.repaired_by is None}
    others = frozenset(
        record.id
        for record in session.records
        if not request.wants(record) and record.id not in request.disabled and left & set(record.files)
    )
    if not others:
        return Repaired(repairs, plan, base=base, steps=plan.steps)
    wider, now, base = planned(session, target, replace(request, enabled=request.enabled | others))
    more = attribute(report, now, base, wider.steps, _texts(wider), recheck, glance).before.findings
    named = tuple(
        replace(one, repaired_by=other.repaired_by) if one.repaired_by is None and other.repaired_by in others else one
        for one, other in zip(repairs.before.findings, more, strict=True)
    )
    used = others & {one.repaired_by for one in named}
    off = frozenset(used - {None})
    repairs = replace(repairs, before=replace(repairs.before, findings=named))
    return Repaired(repairs, plan, off, base, wider.steps if off else plan.steps)


def planned(session: Session, target: Target | None, request: Request) -> tuple[Plan, dict[str, str], dict[str, str]]:
    """The plan for the target's versions (None: those of the session), the texts as they are, and without records."""
    from patcher.plan.planning import plan_apply
    from patcher.session.snapshot import read_snapshot, record_file_names
    from patcher.session.tree_access import read_consistently

    found = read_consistently(
        session.tree, lambda reading: read_snapshot(session, reading.ledger, record_file_names(session))
    )
    situation = found.situation
    if target is not None:
        environment = around(session.environment, target)
        situation = replace(situation, environment=environment, lookup=_lookup(target, session.lookup))
    base = {path: state.base for path, state in situation.files.items() if state.base is not None}
    now = {path: state.current for path, state in situation.files.items() if state.current is not None}
    return plan_apply(session.records, request, situation), now, base


def check_with_records(
    forest: Forest, target: Target, records: Sequence[Record], verl: str, *, baseline: Target | None = None
) -> tuple[Report, Report]:
    """One tree on one target, as it is (with `repaired_by`) and once the records are applied.

    The tree has no ledger, and nothing is known of its surroundings but `target.versions`. `records` must be ordered;
    those that are off by default do not count.
    """
    report = check_pair(forest, target, verl=verl, baseline=baseline)
    files = {one.file for one in report.findings}
    steps, base = _rehearse(forest, target, _concerned(records, files), verl)
    final = {path: text for _, texts in steps for path, text in texts.items()}
    recheck = _rechecker(forest, target, verl, baseline)
    glance = _rechecker(forest, target, verl, baseline, severity_in_place)
    repairs = attribute(report, base, base, steps, final, recheck, glance)
    return repairs.before, repairs.after


def around(environment: Environment, target: Target) -> Environment:
    """The environment with the target's packages in the place of those installed."""
    packages = dict(environment.packages)
    for module in target.against:
        name = module.replace("_", "-")
        packages.pop(name, None)
        symbols = target.packages.get(module)
        if symbols is not None:
            packages[name] = Installed(name, target.versions.get(name) or "unknown")
    return replace(environment, packages=packages)


def _rechecker(
    forest: Forest, target: Target, verl: str, baseline: Target | None, weigh: Weigh = severity_of
) -> Callable[[Mapping[str, str], Iterable[str]], Report]:
    def recheck(texts: Mapping[str, str], files: Iterable[str]) -> Report:
        return check_pair(forest.with_texts(texts), target, verl=verl, baseline=baseline, files=files, weigh=weigh)

    return recheck


def _texts(plan: Plan) -> dict[str, str]:
    return {path: file.text for path, file in plan.files.items()}


def _lookup(target: Target, other: SymbolLookup) -> SymbolLookup:
    def ask(symbol: str) -> bool | None:
        module = symbol.partition(".")[0]
        if module not in target.against:
            return other(symbol)
        symbols = target.packages.get(module)
        return symbols.has(symbol) if symbols is not None else None

    return ask


def _concerned(records: Iterable[Record], files: Iterable[str]) -> tuple[Record, ...]:
    """The records that are on by default and edit one of the files, with those that they come after."""
    asked, places = [record for record in records if record.enabled], set(files)
    earlier = predecessors(asked)
    chosen = {record.id for record in asked if places & set(record.files)}
    chosen |= {name for one in chosen for name in earlier[one]}
    return tuple(record for record in asked if record.id in chosen)


def _rehearse(
    forest: Forest, target: Target, records: Sequence[Record], verl: str
) -> tuple[tuple[Step, ...], dict[str, str]]:
    """Make the records' edits on the tree's texts: each record that can be made, and the texts before all of them."""
    known = {name: Installed(name, version) for name, version in target.versions.items() if version is not None}
    environment = Environment(None, {**known, "verl": Installed("verl", verl)})
    lookup = _lookup(target, lambda _symbol: None)
    wanted = [record for record in records if applicability(record, environment, lookup).answer in ("yes", "maybe")]
    texts = {}
    for file in dict.fromkeys(file for record in wanted for file in record.files):
        content = forest.content(file)
        if content is not None:
            texts[file] = content.decode("utf-8", "replace")
    desk = Workspace.of(texts, {}, "Uky", "comment")
    earlier = predecessors(wanted)
    for record in wanted:
        desk.replay(record, belongs(verl), earlier[record.id])
    return tuple(desk.steps), texts
