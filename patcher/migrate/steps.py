"""The steps of a migration, except the job (`debug_job`). Each returns an `Outcome`: what it found, and what to report.

A step that cannot go on returns the status "fail", or raises an error of `patcher.errors`. After a CutError or an
UnreachableError, which mean that the connection is lost, `patcher.migrate.migration` calls the step again on a new one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from patcher.checks import Check
from patcher.errors import ExitCode, HostError, UkyError, UsageError
from patcher.i18n import Phrase, Phrases, listed, phrase
from patcher.migrate import step_texts
from patcher.migrate.journal import Entry, Proven
from patcher.migrate.order import MigrationOrder, StepStatus
from patcher.migrate.payload import Groundwork, Payload, plan_payload
from patcher.migrate.sent_texts import SentTexts
from patcher.migrate.transfer import Difference, compare, send
from patcher.migrate.wording import first_paths, readable_size
from patcher.packages.releases import Progress
from patcher.profiles.rendered_file import Text, WrittenFile, write_files
from patcher.remote.connection import Connection
from patcher.remote.environment import environment_of
from patcher.remote.host import Host
from patcher.remote.survey import Survey, TreeFolder, survey_host
from patcher.session.session import Session
from patcher.worktree.hashing import digest_of
from patcher.worktree.ledger import now

# What one step alone needs is imported by it: the first steps begin sooner, and `--only` does without the rest.
if TYPE_CHECKING:
    from patcher.jobs import Job
    from patcher.logs.milestones import Milestone

T = TypeVar("T")
Confirm = Callable[[Phrase], bool]
"""Asks the person at the terminal a question; False if there is no terminal."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """The functions that are called while a step runs."""

    progress: Progress
    """How far the transfer is."""
    check: Callable[[Check], None]
    """A check of the environment has ended."""
    milestone: Callable[[Milestone], None]
    """The job has reached a milestone."""
    time: Callable[[float], None]
    """The age of the job in seconds, now and then."""
    cut: Callable[[UkyError, float], None]
    """The connection was cut; a new one is opened after this many seconds."""
    problem: Callable[[Phrase], None]
    """Why the job cannot be followed at the moment."""
    confirm: Confirm


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How a step ended."""

    value: T
    """What the step found, for the steps after it."""
    detail: Text
    """One line to report."""
    status: StepStatus = "ok"
    fix: Text = ""
    """What to do about a failure: often a command."""
    notes: tuple[Text, ...] = ()
    """Further lines."""
    exit_code: int = ExitCode.FINDINGS
    """The exit code of `migrate` if the status is "fail"."""


def failed(error: UkyError, value: T) -> Outcome[T]:
    """The outcome of a step that ended with this error."""
    notes = (error.cause,) if error.cause else ()
    return Outcome(value, error.title, "fail", error.advice, notes, error.exit_code)


# preflight ---------------------------------------------------------------------------------------------------------


def preflight(
    session: Session, order: MigrationOrder, folder: TreeFolder, before: Entry | None, confirm: Confirm
) -> Outcome[None]:
    """Check that the tree's folder on the host is the right one, and report what is odd about the order.

    `before` is the journal's entry for the last run. Raises HostError if the folder lies in another verl tree
    (`~/fork/verl/fork`: most often a wrong --path) and nobody confirms it.
    """
    host = order.host
    if folder.within is not None:
        _confirm_nesting(folder.path, folder.within, confirm=lambda question: order.yes or confirm(question))
    notes: list[Text] = []
    if before is not None and before.stopped is not None:
        last = {"at": before.at, "step": listed(before.stopped), "why": before.why}
        notes.append(phrase("the last run, of {at}, stopped at {step}: {why}", **last))
    odd = bool(folder.nested) or bool(host.unset)
    if host.unset:
        names = ", ".join(host.unset)
        notes.append(phrase("named as secrets and not set here, so the job goes without: {names}", names=names))
    if any(name in host.secrets for name in session.config.hosts.get(host.name, {}).get("env", ())):
        odd = True
        warning = "uky-patch.toml holds secrets of {host} and is sent with the tree: name them in `secrets` instead"
        notes.append(phrase(warning, host=host.name))
    if folder.nested:
        names = ", ".join(folder.nested)
        notes.append(phrase("there is another verl tree within {path}: {folders}", path=folder.path, folders=names))
    if inner := session.tree.nested():
        notes.append(phrase("there is another verl tree within this one: {folders}", folders=", ".join(inner)))
    if not folder.exists or folder.empty:
        detail = phrase("{path}, new", path=folder.path)
    elif folder.manifest:
        detail = phrase("{path}, migrated to before", path=folder.path)
    else:
        detail = phrase("{path}, there already, but not by a migration", path=folder.path)
    return Outcome(None, detail, "warn" if odd else "ok", notes=tuple(notes))


def _confirm_nesting(path: str, outer: str, confirm: Confirm) -> None:
    question = phrase(
        "{path} lies inside another verl tree, {outer}. Put a tree there all the same?", path=path, outer=outer
    )
    if not confirm(question):
        raise HostError(
            phrase("{path} lies inside another verl tree", path=path),
            cause=phrase("the tree that it lies in is {outer}", outer=outer),
            advice=phrase("Most likely {outer} was meant: --path {outer}. If not, say so with --yes.", outer=outer),
        )


# probe -------------------------------------------------------------------------------------------------------------


def probe(connection: Connection, host: Host) -> Outcome[Survey]:
    """Find out what the host has: versions, GPUs, disk. Without vLLM and torch the status is "warn"."""
    survey = survey_host(connection, host)
    machine: list[Text] = [
        step_texts.gpus(survey.gpus) if host.slurm is None else step_texts.asked_of_slurm(host.slurm)
    ]
    if survey.driver:
        machine.append(phrase("driver {version}", version=survey.driver))
    if survey.free is not None:
        machine.append(phrase("{size} free", size=readable_size(survey.free)))
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
    detail = Phrases((step_texts.versions(survey), Phrases(tuple(machine), ", ")), "; ")
    return Outcome(survey, detail, "warn" if lacking else "ok", notes=tuple(notes))


# plan --------------------------------------------------------------------------------------------------------------


def plan(
    session: Session, host: Host, survey: Survey, connection: Connection, groundwork: Groundwork
) -> Outcome[Payload]:
    """Plan the records for the host's versions, and apply them in memory to the files listed.

    Fails if a record cannot be applied for that host. Fails too if no environment for training was found there: a plan
    without versions needs no records, and would take them out of a tree that has them.
    """
    payload = plan_payload(session, groundwork, survey, connection)
    if not payload.environment.known:
        error = UsageError(
            phrase("it is not known which environment trains on {host}", host=host.name),
            cause=phrase("neither vllm nor torch was found there"),
            advice=phrase(
                "name the interpreter that trains there: --python, or python = in [hosts.{host}]", host=host.name
            ),
        )
        return failed(error, payload)
    outcomes, failing = payload.result.plan.outcomes, payload.result.plan.failed
    notes: list[Text] = [
        phrase("{id}: {kind}; {detail}", id=outcome.id, kind=outcome.kind, detail=outcome.detail) for outcome in failing
    ]
    if payload.result.failed:
        title = phrase("records that cannot be applied with that host's versions: {count}", count=len(notes))
        fix = f"uky-patch explain {failing[0].id}"
        return Outcome(payload, title, "fail", fix, tuple(notes), ExitCode.NOT_APPLIED)
    there = sum(outcome.kind in ("applied", "pending", "adopted") for outcome in outcomes)
    detail = phrase("records that hold there: {count}", count=there)
    notes += [*payload.notes, *step_texts.not_as_expected(payload.listing)]
    if payload.differs:
        notes.append(step_texts.differences(payload))
        count = len(payload.differs)
        detail = phrase("records that hold there: {count}, otherwise than here: {differ}", count=there, differ=count)
    without_vllm = "vllm" not in payload.environment.packages
    return Outcome(payload, detail, "warn" if without_vllm else "ok", notes=tuple(notes))


# transfer ----------------------------------------------------------------------------------------------------------


def transfer(
    connection: Connection,
    payload: Payload,
    order: MigrationOrder,
    texts: SentTexts,
    listeners: Listeners,
    on_compared: Callable[[Difference], None],
    *,
    new: bool,
) -> Outcome[None]:
    """Send what the host lacks, and put it into the tree there. A dry run only compares.

    `on_compared` gets the difference before anything is sent. `new`: the folder there was empty, so no job runs in it.
    Raises HostError if edits on the host would be moved aside, or files replaced while a job runs, and nobody confirms
    it.
    """
    difference = compare(connection, payload, texts.pulled())
    on_compared(difference)
    if order.dry:
        return Outcome(None, step_texts.would_send(payload, difference), notes=step_texts.would_change(difference))
    if not difference.nothing and not order.yes:
        _confirm_overwriting(order.host, difference, listeners.confirm)
        if not new:
            from patcher.jobs import running

            _confirm_running_job(order.host, running(connection), listeners.confirm)
    texts.add(payload)
    sent = send(connection, payload, difference, progress=listeners.progress)
    texts.keep_only(payload)
    if difference.nothing:
        return Outcome(None, step_texts.nothing_to_send(payload))
    return Outcome(
        None,
        step_texts.sent_files(difference, sent),
        notes=(
            *sent.notes,
            *step_texts.moved_aside(sent),
            *step_texts.brought_back(difference),
            *step_texts.left_out(payload),
        ),
    )


def _confirm_overwriting(host: Host, difference: Difference, confirm: Confirm) -> None:
    if not difference.overwritten:
        return
    count, names = len(difference.overwritten), first_paths(difference.overwritten)
    question = phrase(
        "{count} {count:file|files} {count:was|were} changed on {host}: {names}. Move them aside and send ours?",
        count=count,
        host=host.name,
        names=names,
    )
    if not confirm(question):
        raise HostError(
            phrase(
                "{host}: {count} {count:file|files} there {count:holds|hold} somebody's work",
                host=host.name,
                count=count,
            ),
            cause=phrase("changed there since the last migration, or there without one: {names}", names=names),
            advice=phrase(
                "Take them over first: uky-patch pull {host}; or move them aside into .uky-patch-kept there: --yes.",
                host=host.name,
            ),
        )


def _confirm_running_job(host: Host, job: Job | None, confirm: Confirm) -> None:
    """Ask before files of a running job are replaced.

    It may still import modules: with some of them old and others new it fails late, with an error that misleads.
    """
    if job is None:
        return
    if not confirm(phrase("job {id} runs there. Replace files of its tree all the same?", id=job.id)):
        raise HostError(
            phrase("{host}: a job runs in the tree that would be changed", host=host.name),
            cause=phrase("job {id}, {script}", id=job.id, script=job.script),
            advice=phrase(
                "Wait for it: uky-patch job attach {host}. Stop it: uky-patch job stop {host}. Or go on with --yes.",
                host=host.name,
            ),
        )


# render ------------------------------------------------------------------------------------------------------------


def render(
    session: Session, host: Host, survey: Survey, payload: Payload | None, connection: Connection, *, dry: bool
) -> Outcome[tuple[WrittenFile, ...]]:
    """Write the files that each host has its own of, from templates: git_ignore.py and the run scripts.

    A file that somebody has edited there stays, with a note on how to see the difference.
    """
    from patcher.profiles.rendering import render_all

    root = session.tree.root
    environment = payload.environment if payload is not None else environment_of(survey, root)
    versions = {name: item.version for name, item in environment.packages.items()}
    files = render_all(host, survey, versions, root)
    written = write_files(connection, files, dry=dry)
    notes: list[Text] = [note for file in files for note in file.notes]
    stay = [file for file in written if file.outcome in ("kept", "foreign")]
    if stay:
        command = f"uky-patch render {stay[0].path} --host {host.name} --diff"
        notes.append(phrase("what differs is shown by: {command}", command=command))
    return Outcome(written, step_texts.rendered_files(written, dry=dry), notes=tuple(notes))


# verify ------------------------------------------------------------------------------------------------------------


def verify(connection: Connection, payload: Payload, *, stamps: bool) -> Outcome[None]:
    """Check that the tree on the host is the planned one: hashes, marked lines and ledger. One failed check fails it.

    With `stamps` the host does not read files whose size and times are as when it last read them.
    """
    from patcher.migrate.verify import verify_payload

    checks = verify_payload(connection, payload, stamps=stamps)
    failing = [check for check in checks if check.status == "fail"]
    if failing:
        notes = tuple(phrase("{name}: {detail}", name=check.name, detail=check.detail) for check in failing)
        fix = f"uky-patch migrate {connection.host.name} --from transfer"
        return Outcome(None, phrase("{count} {count:check|checks} failed", count=len(failing)), "fail", fix, notes)
    records = sum(check.status == "ok" and not check.name.startswith("file") for check in checks)
    detail = phrase(
        "{records} {records:check|checks} {records:holds|hold}, "
        "{files} of {files} {files:hash|hashes} {files:matches|match}",
        records=records,
        files=len(payload.items),
    )
    return Outcome(None, detail)


# environment -------------------------------------------------------------------------------------------------------

_BUILT_ON = ("interpreter", "gpus", "driver", "cuda", "libcuda", "shm", "kernel")
"""The fields of a survey that the checks of the environment depend on."""


def environment(
    connection: Connection,
    order: MigrationOrder,
    survey: Survey,
    fingerprint: str,
    before: Proven | None,
    on_check: Callable[[Check], None],
) -> Outcome[Proven | None]:
    """Check that the environment works: the preflight up to the level "data", in the interpreter that will train.

    It is skipped if `fingerprint` is that of `before`, the environment that passed last, unless the user has ordered
    this step by its name.
    """
    host = order.host
    again = f"uky-patch verify --level data --host {host.name}"
    if before is not None and fingerprint == before.key and not order.names("environment"):
        detail = phrase("nothing has changed since {at}: {found}", at=before.at, found=before.found)
        return Outcome(before, detail, notes=(phrase("to look again all the same: {command}", command=again),))
    from patcher.preflight.preflight import run_preflight

    checks = run_preflight(connection, host, survey, "data", on_check=on_check)
    notes = tuple(
        phrase("{name}: {detail}  ->  {fix}", name=check.name, detail=check.detail, fix=check.fix)
        if check.fix
        else phrase("{name}: {detail}", name=check.name, detail=check.detail)
        for check in checks
        if check.status in ("fail", "warn")
    )
    failing = sum(check.status == "fail" for check in checks)
    if failing:
        detail = phrase("{failed} of {all} {all:check|checks} failed", failed=failing, all=len(checks))
        return Outcome(None, detail, "fail", again, notes)
    names = Phrases(tuple(check.name for check in checks if check.status == "ok"), ", ")
    proven = Proven(fingerprint, now(), str(names)) if all(map(has_verdict, checks)) else None
    warned = any(check.status == "warn" for check in checks)
    return Outcome(proven, names, "warn" if warned else "ok", notes=notes)


def has_verdict(check: Check) -> bool:
    """Whether the check came to an end. One that ran into its time limit proves nothing; its detail says so."""
    return not str(check.detail).startswith(("slow: ", "not reached"))


def fingerprint_of(host: Host, survey: Survey, payload: Payload | None, rendered: tuple[WrittenFile, ...]) -> str:
    """A digest of what the checks depend on: the host, its interpreter, the tree there, and the rendered files."""
    parts = [
        [str(getattr(survey, name)) for name in _BUILT_ON],
        sorted((path, item.sha256) for path, item in payload.items.items()) if payload is not None else None,
        [
            (file.path, file.outcome in ("kept", "foreign") and file.there, file.rendered and file.rendered.text)
            for file in rendered
        ],
        [
            *(host.python, host.data, host.models, host.output, sorted(host.env.items())),
            *(host.slurm.options if host.slurm is not None else ()),
        ],
    ]
    return digest_of(json.dumps(parts).encode())
