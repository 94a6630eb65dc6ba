"""What a check finds: the uses of the tree are judged, the records tried, and earlier releases asked since when."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.findings import Finding, Report
from patcher.check.enclosing import Enclosing, enclosing, shown
from patcher.check.entries import open_project
from patcher.check.history import History, with_since
from patcher.check.pair import check_pair
from patcher.check.repairs import repair
from patcher.check.result import Accepted, Check, CheckRequest, Repaired, Unreadable, unread_records
from patcher.check.scripts.files import uses_of_scripts
from patcher.check.targets import Against, AsInstalled, Located, as_installed, locate, target_of
from patcher.errors import ReleaseError, UsageError
from patcher.i18n import Phrase, phrase
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from patcher.analysis.project import Project
    from patcher.analysis.target import Target
    from patcher.session.config import Acceptance
    from patcher.session.session import Session

_AT_LINE = re.compile(r" \(line (\d+)\)$")


def compute(session: Session, request: CheckRequest) -> tuple[Check, bool]:
    """The check, and whether the same would come of it later: not where a release could not be fetched.

    Raises:
        ReleaseError: a release cannot be fetched.
        UsageError: what to check against cannot be read, or is not installed.
    """
    if request.drafts is not None:
        from patcher.check.drafts.writing import require_folder

        require_folder(request.drafts)
    located = tuple(locate(one, session) for one in request.against or as_installed(session))
    unreachable: list[str] = []
    target = target_of(located, session, unreachable)
    baseline = _baseline(request, located, session, unreachable)
    project_around = enclosing(session.tree.root)
    project, around = open_project(session.tree.root, target.against, target.words, around=project_around)
    further, misread = uses_of_scripts(session.tree.root, request.scripts)
    verl = session.environment.version("verl") or ""
    history = History(project, target, baseline, session.tree.root, unreachable=unreachable)
    report = check_pair(project, target, verl=verl, baseline=baseline, further=further, tell=_tell)
    progress("")
    repaired = repair(session, project, target, report, baseline)
    project.keep()
    for symbols in target.packages.values():
        symbols.modules.keep()
    unreadable = _unreadable(report)
    before, after = repaired.repairs.before, repaired.repairs.after
    in_baseline: tuple[Finding, ...] = ()
    today = before
    if request.baseline and baseline is not None:
        today = check_pair(project, baseline, verl=verl, further=further)
        before, in_baseline = _without_baseline(before, today)
        after, _ = _without_baseline(after, today)
    if request.since:
        before, after = _both_with_since(before, after, located, history)
    before, accepted, unused = _accept(before, session.config.accept)
    after, _, _ = _accept(after, session.config.accept)
    copies = (_about_copy(session.tree.root, copy) for copy in around.copies)
    text = "{folder}: a verl tree of its own, not checked. To check it: --root {place}"
    trees = (phrase(text, folder=folder, place=session.tree.root / folder) for folder in around.trees)
    beyond = (_about_project(project_around),) if project_around is not None else ()
    empty = None if verl or report.uses or project.has_code() else _about_empty(session.tree.root, project.top)
    notes = (
        *((session.merged_verl.text,) if session.merged_verl is not None else ()),
        *((empty,) if empty is not None else () if report.uses else (_about_no_use(report),)),
        *misread,
        *beyond,
        *copies,
        *trees,
        *(_unmatched(one) for one in unused),
        *_about_records(repaired, unread_records(repaired.plan, unreadable)),
    )
    drafted = None
    if request.drafts is not None:
        from patcher.check.drafts.drafting import draft

        def recheck(other: Project) -> Report:
            found = check_pair(other, target, verl=verl, baseline=baseline, further=further)
            if request.baseline and baseline is not None:
                found, _ = _without_baseline(found, today)
            return replace(_accept(found, session.config.accept)[0], broken=())

        drafted = draft(before, located, history, session, request.drafts, repaired.plan.texts, recheck)
    # Uses are there to be judged on other releases, which nobody does with what is told or kept.
    before, after = replace(before, broken=()), replace(after, broken=())
    repaired = replace(repaired, repairs=replace(repaired.repairs, before=before, after=after))
    done = Check(before, after, session, repaired, in_baseline, accepted, unreadable, notes, drafted, empty)
    return done, not unreachable


def _tell(done: int, total: int) -> None:
    """Show progress after every 20 files: drawing a line takes as long as judging a small file."""
    if done % 20 == 0:
        progress(phrase("checking: {done} of {total} {total:file|files}", done=done, total=total))


def _baseline(
    request: CheckRequest, located: Sequence[Located], session: Session, unreachable: list[str]
) -> Target | None:
    """The releases that the tree works with: those asked for, else those installed, where they are not the target.

    Names of packages whose installed release cannot be fetched are added to `unreachable`."""
    asked = {one.module: one for one in request.baseline}
    for module in asked.keys() - {one.asked.module for one in located}:
        raise UsageError(
            phrase("--baseline names {name}, which is not checked against", name=asked[module].known_as),
            advice=phrase("Name it with --against too."),
        )
    known = []
    for one in located:
        name, installed = one.asked.known_as, session.environment.packages.get(one.asked.known_as)
        if one.asked.module in asked:
            known.append(locate(asked[one.asked.module], session))
        # The release that is installed is one that the tree most likely works with.
        elif installed is not None and one.version and installed.version != one.version:
            try:
                known.append(locate(Against(name, AsInstalled()), session))
            # A baseline only sharpens the findings; without its sources the check goes on.
            except ReleaseError:
                unreachable.append(name)
    found = {one.asked.module: one for one in known}
    return target_of([found.get(one.asked.module, one) for one in located], session) if found else None


def _without_baseline(report: Report, today: Report) -> tuple[Report, tuple[Finding, ...]]:
    """The report without the findings that today's releases show as well, and those findings.

    A finding that is guarded today and is not guarded on the target stays in the report.
    """
    known = {(one.key, one.severity == "guarded") for one in today.findings}
    left: list[Finding] = []
    in_baseline: list[Finding] = []
    for one in report.findings:
        # A finding that was guarded on the baseline and is not any more is the upgrade's doing.
        matters = one.severity != "guarded"
        there = (one.key, False) in known or (not matters and (one.key, True) in known)
        (in_baseline if there else left).append(one)
    return replace(report, findings=tuple(left)), tuple(in_baseline)


def _both_with_since(
    before: Report, after: Report, located: Sequence[Located], history: History
) -> tuple[Report, Report]:
    """Both reports with `since`. What is left after the records takes it from the report before them."""
    with_history = with_since(before, located, history)
    known = {then.key: now for then, now in zip(before.findings, with_history.findings, strict=True)}
    left = [(one, known.get(one.key)) for one in after.findings]
    return with_history, replace(
        after, findings=tuple(replace(one, since=now.since, kind=now.kind) if now else one for one, now in left)
    )


def _unreadable(report: Report) -> tuple[Unreadable, ...]:
    found = []
    for file, why in report.unreadable:
        line = _AT_LINE.search(why)
        found.append(Unreadable(file, int(line[1]) if line else 0, _AT_LINE.sub("", why)))
    return tuple(found)


def _accept(
    report: Report, acceptances: Sequence[Acceptance]
) -> tuple[Report, tuple[Accepted, ...], tuple[Acceptance, ...]]:
    """The report without what the fork accepts, what that is, and the acceptances that match nothing."""
    left, accepted, used = [], [], set()
    for finding in report.findings:
        # The first acceptance that matches decides.
        match = next((one for one in acceptances if _matches(one, finding)), None)
        if match is None:
            left.append(finding)
        else:
            used.add(match)
            accepted.append(Accepted(finding, match.reason))
    # An acceptance for a package that is not checked this time is not unused.
    asked = [one for one in acceptances if one.symbol.partition(".")[0] in report.against]
    unused = tuple(one for one in asked if one not in used)
    return replace(report, findings=tuple(left)), tuple(accepted), unused


def _matches(acceptance: Acceptance, finding: Finding) -> bool:
    return fnmatchcase(finding.symbol, acceptance.symbol) and fnmatchcase(finding.file, acceptance.file)


def _unmatched(acceptance: Acceptance) -> Phrase:
    text = "uky-patch.toml accepts {symbol} in {file}, and no finding is about it: take the entry out"
    return phrase(text, symbol=acceptance.symbol, file=acceptance.file)


def _about_copy(root: Path, copy: str) -> Phrase:
    """The note about a folder that is a copy of another package, as `vllm` or `third_party/vllm`."""
    # Python looks into the folder that a job starts in before it looks for what is installed.
    if "/" not in copy and (root / copy / "__init__.py").is_file():
        return phrase("{folder}: this copy is imported in place of the installed package, and not checked", folder=copy)
    return phrase("{folder}: a copy of another package, not checked", folder=copy)


def _about_empty(root: Path, package: str) -> Phrase:
    text = (
        "nothing was checked: {folder} holds no Python file but __init__.py. "
        "Complete the checkout, or name another --root"
    )
    return phrase(text, folder=root / package)


def _about_no_use(report: Report) -> Phrase:
    return phrase("the tree uses nothing of {names}", names=", ".join(report.against))


def _about_project(around: Enclosing) -> Phrase:
    if not around.python:
        text = "{folder}, the project around the tree, has too many Python files and is not checked"
        return phrase(text, folder=around.folder)
    text = "the project around the tree is checked too, no record changes it: {places}"
    return phrase(text, places=shown(around))


def _about_records(repaired: Repaired, unread: Collection[str]) -> list[Phrase]:
    """Notes about records that cannot be applied, and about records that would bring in a finding.

    Of `unread`, records of a file that is no Python, the report tells with that file.
    """
    failed = [
        phrase("the record {id} cannot be applied here: {why}", id=outcome.id, why=outcome.detail)
        for outcome in repaired.plan.failed
        if outcome.id not in unread
    ]
    new = "the record {id} would bring in a finding: {file}:{line}, {symbol}"
    return failed + [
        phrase(new, id=record, file=one.file, line=one.line, symbol=one.symbol)
        for record, one in repaired.repairs.introduced
        if one.severity != "guarded"
    ]
