"""The tree as it is to be on a host: the records planned here for the versions there. The tree here is only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.git.checkout import checkout
from patcher.i18n import Phrase, Phrases, phrase
from patcher.migrate.loading import listed, loaded
from patcher.migrate.model import Cargo, Item, Listing
from patcher.migrate.symbols import host_lookup
from patcher.packages.environment import probe
from patcher.patching.applying import changes, round_of
from patcher.plan.outcome import Plan, RecordOutcome
from patcher.plan.planning import marked_spots, plan_apply
from patcher.profiles.model import Text
from patcher.remote.environment import environment_of
from patcher.session.consistent_read import look
from patcher.session.session import Session
from patcher.session.survey import record_file_names
from patcher.session.survey import survey as read_tree

if TYPE_CHECKING:
    from patcher.packages.environment import Environment
    from patcher.plan.applicability import SymbolLookup
    from patcher.remote.connection import Connection
    from patcher.remote.survey import Survey
    from patcher.tree.ledger import Ledger

_NAMED = 5


def plan_cargo(session: Session, listing: Listing, survey: Survey, connection: Connection) -> Cargo:
    """Replay the records for the host's versions on the tree's own texts, and put the result in the files' place.

    Where a record cannot be applied the cargo's round has failed, and its items are the files as they are here. The
    session's `python` is the host's, and its assumed versions count for the host.

    Raises:
        TreeError: the tree cannot be read, or changes while it is.
        CutError: the connection ended while the host was asked for a package's sources.
    """
    root = session.tree.root
    there = environment_of(survey, root, session.assume)
    own = _environment_here(session)
    lookup_here = host_lookup(own, own, None)
    away = _at(session, there, host_lookup(there, own, connection))

    def work(ledger: Ledger) -> Cargo:
        found = listed(read_tree(away, ledger, record_file_names(session)), listing)
        planned = plan_apply(session.records, session.request(), found.situation)
        local = replace(found.situation, environment=own, lookup=lookup_here)
        kinds = {outcome.id: outcome.kind for outcome in plan_apply(session.records, session.request(), local).outcomes}
        done = round_of(planned, found, changes(planned, found))
        items: Mapping[str, Item] = listing.items
        if not done.failed:
            done = replace(done, plan=_as_there(planned, session.config.marker))
            items = loaded(session, listing, planned, found, there, survey.applied)
        # Where nobody knows what trains here, there is nothing to compare with.
        known = done.plan.outcomes if own.known else ()
        differs = tuple(outcome.id for outcome in known if kinds.get(outcome.id) != outcome.kind)
        notes = (*_about(survey, there), *_uncommitted(session, listing, ledger))
        return Cargo(listing, items, done, there, differs, notes, kinds, session.config.marker)

    return look(session.tree, lambda reading: work(reading.ledger))


def _environment_here(session: Session) -> Environment:
    """What is installed on this machine: `--python` and `--assume` speak of the host."""
    if session.python is None and not session.assume:
        return session.environment
    return probe(None, session.tree.root, {}, named=session.config.python)


def _at(session: Session, environment: Environment, lookup: SymbolLookup) -> Session:
    """The session as it would be where `environment` is."""
    other = Session(session.root_option, None, {}, session.folders, session.output)
    other.tree = session.tree
    other.config = session.config
    other.record_files = session.record_files
    other.records = session.records
    other.environment = environment
    other.lookup = lookup
    return other


def _as_there(planned: Plan, word: str) -> Plan:
    """The outcomes as they are once the cargo is there: what is to be put in is in, what is to come out is out."""
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
    if "vllm" not in there.packages:
        yield phrase(
            "no vllm was found on {host}: records for it are left out; name the environment that trains with --python",
            host=survey.hostname,
        )
    yield from there.problems


def _uncommitted(session: Session, listing: Listing, ledger: Ledger) -> Iterator[Text]:
    """Changes that are in no commit, other than what the records did."""
    place = checkout(session.tree.root) if listing.dirty else None
    if place is None:
        return
    changed = [path for path in place.changed_files() if path in listing.items]
    theirs = [
        path
        for path in changed
        if path not in ledger.files or listing.items[path].sha256 not in (ledger.files[path].patched, "")
    ]
    if theirs:
        more = [phrase("and {count} more", count=len(theirs) - _NAMED)] if len(theirs) > _NAMED else []
        names = Phrases((*theirs[:_NAMED], *more), ", ")
        yield phrase("sent with changes that are in no commit: {names}", names=names)
