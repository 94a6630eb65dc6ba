"""The tree as it will be on a host: its files, with the records planned here for the versions there.

The tree here is only read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from patcher import __version__
from patcher.check.plan_cache import PlanCache
from patcher.check.planning import kept_plan
from patcher.errors import TreeError
from patcher.i18n import Phrase, phrase
from patcher.migrate.host_symbols import HostLookup
from patcher.migrate.listing import Item, Listing, list_tree
from patcher.migrate.wording import first_few
from patcher.packages import Environment, probe
from patcher.patching.applying import apply_result, changes, next_ledger, planned_bytes
from patcher.patching.result import ApplyResult
from patcher.plan.outcome import FileState, Plan, RecordOutcome
from patcher.plan.planning import marked_spots
from patcher.profiles.rendered_file import Text
from patcher.remote.connection import Connection
from patcher.remote.environment import environment_of
from patcher.remote.survey import Survey
from patcher.session.session import PlanTarget, Session
from patcher.session.snapshot import TreeSnapshot, read_snapshot, record_file_names, retargeted
from patcher.session.tree_access import read_consistently
from patcher.worktree.hashing import digest_of
from patcher.worktree.layout import FOLDER, LEDGER, ORIGINALS
from patcher.worktree.ledger import (
    NOTE,
    AppliedRecord,
    Ledger,
    dump,
    dump_note,
    folders_of_made,
    now,
    with_folders,
)
from patcher.worktree.manifest import Entry as ManifestEntry
from patcher.worktree.manifest import Manifest

_LINKS = 16
"""The most symlinks that one path may lead through; more are a loop (a -> b -> a). A guess: the kernel follows 40."""


_Stamp: TypeAlias = "tuple[int, int, int] | None"
"""Inode, time and size of a file; None: there was none."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The tree as it will be on the host: the listed files, with the records applied for the host's versions.

    The ledger and the pre-images are among the items, so that `revert` works there.
    """

    listing: Listing
    items: Mapping[str, Item]
    """The files to be there, by path below the root."""
    result: ApplyResult
    """The outcomes of the records with the host's versions."""
    environment: Environment
    """The host's packages."""
    differs: tuple[str, ...] = ()
    """The ids of records whose outcome there is not that here."""
    notes: tuple[Text, ...] = ()
    """What the step plan reports: no vLLM there, uncommitted changes, problems with the host's packages."""
    here: Mapping[str, str] = field(default_factory=dict)
    """The outcome of each record on the tree here, by id."""
    marker: str = "Uky"
    """The word in the comments that mark changed lines."""

    @property
    def manifest(self) -> Manifest:
        """The files with their digests, as they are sent to the agent, and where they come from."""
        files = {
            path: ManifestEntry(item.sha256, item.mode & 0o777, item.size, item.link)
            for path, item in self.items.items()
        }
        return Manifest(files, self.listing.commit, self.listing.dirty, __version__, now())

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is saved with a job that worked: commit, versions, and the digests of each record's files."""
        return {
            "commit": self.listing.commit,
            "versions": {name: item.version for name, item in self.environment.packages.items()},
            "records": {
                outcome.id: {
                    "outcome": outcome.kind,
                    "files": {path: self.items[path].sha256 for path in outcome.files if path in self.items},
                }
                for outcome in self.result.plan.outcomes
                if outcome.kind in ("applied", "pending", "adopted")
            },
        }


@dataclass(frozen=True, slots=True)
class Groundwork:
    """What the plan for any host is made from, all of one moment."""

    listing: Listing
    environment: Environment
    """This machine's packages."""
    lookup: HostLookup
    """What they have."""
    found: TreeSnapshot
    """The files that records name, as far as they are listed, for a plan for this machine."""
    stamps: Mapping[str, _Stamp]
    """Those files as the disk had them."""
    plans: PlanCache


def lay_groundwork(session: Session, include: Sequence[str] = ()) -> Groundwork:
    """Look at this machine, and load the records, which the session keeps. Raises what `list_tree` and `read_snapshot`
    raise, and others of `patcher.errors` for what is wrong with records or settings.
    """
    root, own = session.tree.root, _environment_here(session)
    lookup = HostLookup(own, own, None)

    def work(ledger: Ledger) -> Groundwork:
        listing, names = list_tree(root, include), record_file_names(session)
        stamps = {path: _stamp(root / path) for path in dict.fromkeys((*names, *ledger.files))}
        found = read_snapshot(session, ledger, names, target=PlanTarget(own, lookup))
        found = _as_listed(found, listing)
        return Groundwork(listing, own, lookup, found, stamps, PlanCache(session, found.situation))

    return read_consistently(session.tree, lambda reading: work(reading.ledger))


def plan_payload(session: Session, groundwork: Groundwork, survey: Survey, connection: Connection) -> Payload:
    """Plan the records for the host's versions on the original texts of the tree here, and return the result.

    If a record cannot be applied, `result.failed` is set, and the items are the files as they are here. The options
    `--python` and `--assume` of the session are about the host, not this machine.

    Raises:
        TreeError: a pre-image cannot be read, or the tree has changed since the groundwork.
        CutError: the connection was cut while the host was asked for a package's sources.
    """
    root = session.tree.root
    there = environment_of(survey, root, session.assume)
    listing, own, plans, here = groundwork.listing, groundwork.environment, groundwork.plans, groundwork.found
    _require_unchanged(root, groundwork)
    lookup = HostLookup(there, own, connection)
    found = retargeted(here, session, PlanTarget(there, lookup))
    planned = kept_plan(plans, found.situation, lambda: lookup.lasting, elsewhere=True)
    kinds: dict[str, str] = {}
    if own.known:  # Without packages here there is nothing to compare with.
        local = kept_plan(plans, here.situation, lambda: groundwork.lookup.lasting, elsewhere=False)
        kinds = {outcome.id: outcome.kind for outcome in local.outcomes}
    done = apply_result(planned, found, changes(planned, found))
    items: Mapping[str, Item] = listing.items
    if not done.failed:
        done = replace(done, plan=_as_there(planned, session.config.marker))
        items = _with_plan(session, listing, planned, found, there, survey.applied)
    known = done.plan.outcomes if own.known else ()
    differs = tuple(outcome.id for outcome in known if kinds.get(outcome.id) != outcome.kind)
    notes = (*_about(survey, there), *_uncommitted(listing, found.ledger))
    return Payload(listing, items, done, there, differs, notes, kinds, session.config.marker)


def _environment_here(session: Session) -> Environment:
    """What is installed on this machine, without the options `--python` and `--assume`, which are about the host."""
    if session.python is None and not session.assume:
        return session.environment
    return probe(None, session.tree.root, {}, named=session.config.python)


def _as_there(planned: Plan, word: str) -> Plan:
    """The plan with the outcomes after the transfer: a pending record is applied then, or taken out."""
    within = {name for file in planned.files.values() for name in file.records}

    def after(outcome: RecordOutcome) -> RecordOutcome:
        if outcome.kind != "pending":
            return outcome
        if outcome.id in within:
            return replace(outcome, kind="applied", spots=marked_spots(outcome, planned.files, word) or outcome.spots)
        detail = outcome.detail
        reason = detail.fields.get("reason", detail) if isinstance(detail, Phrase) else detail
        return replace(outcome, kind="not-needed", detail=reason)

    return replace(planned, outcomes=tuple(map(after, planned.outcomes)))


def _about(survey: Survey, there: Environment) -> Iterator[Text]:
    """Notes about the host's packages."""
    if "vllm" not in there.packages:
        yield phrase(
            "no vllm was found on {host}: records for it are left out; name the environment that trains with --python",
            host=survey.hostname,
        )
    yield from there.problems


def _uncommitted(listing: Listing, ledger: Ledger) -> Iterator[Text]:
    """A note with the files that have uncommitted changes which records have not made."""
    theirs = [
        path
        for path in sorted(listing.uncommitted)
        if path not in ledger.files or listing.items[path].sha256 not in (ledger.files[path].patched, "")
    ]
    if theirs:
        yield phrase("sent with changes that are in no commit: {names}", names=first_few(theirs))


def _as_listed(found: TreeSnapshot, listing: Listing) -> TreeSnapshot:
    """The snapshot of the tree without the files that are not sent, as they will not exist on the host.

    Raises TreeError if a file is no longer as it was listed.
    """
    hidden = []
    for path, source in found.sources.items():
        item = listing.items.get(link_target(path, listing.items))
        if item is None:
            hidden.append(path)
        elif item.sha256 and item.sha256 != source.sha256:
            raise _changed(path)
    states = dict(found.situation.files) | {path: FileState(path, None, None) for path in hidden}
    sources = {path: source for path, source in found.sources.items() if path not in hidden}
    situation = replace(found.situation, files=states)
    gone = (*found.gone, *(path for path in hidden if path in found.ledger.files))
    return replace(found, situation=situation, sources=sources, gone=gone)


def _require_unchanged(root: Path, groundwork: Groundwork) -> None:
    """Raise TreeError if a file that records name is no longer the one that the groundwork has read."""
    for path, before in groundwork.stamps.items():
        if _stamp(root / path) != before:
            raise _changed(path)


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _changed(path: str) -> TreeError:
    return TreeError(
        phrase("{path}: changed while it was read", path=path),
        cause=phrase("its content is no longer the one that was listed; nothing was sent"),
        advice=phrase("Run the command again."),
    )


def _with_plan(
    session: Session,
    listing: Listing,
    planned: Plan,
    found: TreeSnapshot,
    there: Environment,
    applied: Mapping[str, Any],
) -> dict[str, Item]:
    """The items with the texts of the plan, the ledger and the pre-images.

    `applied` has the entries of the host's own ledger. Raises TreeError if a pre-image is missing or damaged.
    """
    items = dict(listing.items)
    for path in planned.files:
        content = planned_bytes(path, planned, found)
        place = link_target(path, items)
        if content is None:
            items.pop(place, None)
        elif content != found.content(path):
            items[place] = _item_of(place, content, items[place].mode if place in items else 0o644)
    versions = {name: item.version for name, item in there.packages.items()}
    originals = found.originals
    ledger = next_ledger(planned, found, {record.id: record for record in session.records}, versions)
    if not ledger:
        return items
    ledger = replace(ledger, records=_entries(ledger, versions, applied), basis={})
    ledger = with_folders(ledger, folders_of_made(ledger, items))
    own = {f"{FOLDER}/.gitignore": b"*\n", LEDGER: dump(ledger)}
    for path, file in ledger.files.items():
        original = originals.get(file.original)
        if original is None:
            original = found.content(path) if found.sha256(path) == file.original else session.tree.original(file)
        if original is not None:
            own[f"{ORIGINALS}/{file.original}"] = original
        own[f"{ORIGINALS}/{file.original}{NOTE}"] = dump_note(file.original, ledger, Ledger())
    return items | {path: _item_of(path, content, 0o644) for path, content in own.items()}


def link_target(path: str, items: Mapping[str, Item]) -> str:
    """The path that `path` leads to through the symlinks among the items: `a/x` for `b/x` with a link b -> a."""
    for _ in range(_LINKS):
        parts = path.split("/")
        prefixes = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        link = next((items[prefix] for prefix in prefixes if prefix in items and items[prefix].link), None)
        if link is None:
            break
        rest = path[len(link.path) :]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), str(link.link)) + rest)
    return path


def _item_of(path: str, content: bytes, mode: int) -> Item:
    return Item(path, len(content), mode, digest_of(content), content=content)


def _entries(ledger: Ledger, versions: Mapping[str, str], applied: Mapping[str, Any]) -> dict[str, AppliedRecord]:
    """The ledger's entries of records, for the host's versions. One that the host has already keeps its time.

    Without that the ledger would differ at each migration. `applied` has a list for each record: its digest, versions
    and time.
    """
    entries = {}
    for name, entry in ledger.records.items():
        known = applied.get(name)
        same = isinstance(known, list) and known[:2] == [entry.digest, versions] and isinstance(known[2], str)
        entries[name] = AppliedRecord(entry.source, dict(versions), known[2] if same and known else now())
    return entries
