"""Which records the host's versions call for, planned here; the local tree is only read."""

from __future__ import annotations

from patcher.errors import UsageError
from patcher.i18n import Phrases, listed, phrase
from patcher.migrate.listing import listing
from patcher.migrate.model import Cargo
from patcher.migrate.planning import plan_cargo
from patcher.migrate.steps.transfer import named
from patcher.migrate.walk import Outcome, Walk, found
from patcher.profiles.model import Text


def run(walk: Walk) -> Outcome:
    """List the tree's files and replay the records on them. Fails where a record cannot be applied for that host.

    Raises UsageError where it is not known which environment trains there: the tree there would lose its records.
    """
    files = listing(walk.session.tree.root)
    walk.cargo = plan_cargo(walk.session, files, found(walk.survey), walk.connection)
    if not walk.cargo.environment.known:
        raise UsageError(
            phrase("it is not known which environment trains on {host}", host=walk.host.name),
            cause=phrase("neither vllm nor torch was found there"),
            advice=phrase(
                "name the interpreter that trains there: --python, or python = in [hosts.{host}]", host=walk.host.name
            ),
        )
    done = walk.cargo.round
    notes: list[Text] = [
        phrase("{id}: {kind}; {detail}", id=outcome.id, kind=outcome.kind, detail=outcome.detail)
        for outcome in done.plan.failed
    ]
    if done.failed:
        title = phrase("records that cannot be applied with that host's versions: {count}", count=len(notes))
        return Outcome(title, "fail", fix=f"uky-patch explain {done.plan.failed[0].id}", notes=tuple(notes))
    there = sum(outcome.kind in ("applied", "pending", "adopted") for outcome in done.plan.outcomes)
    detail = phrase("records that hold there: {count}", count=there)
    notes += walk.cargo.notes
    if walk.cargo.differs:
        notes.append(_differing(walk.cargo))
        detail = phrase(
            "records that hold there: {count}, otherwise than here: {differ}",
            count=there,
            differ=len(walk.cargo.differs),
        )
    blind = "vllm" not in walk.cargo.environment.packages
    return Outcome(detail, "warn" if blind else "ok", notes=tuple(notes))


def _differing(cargo: Cargo) -> Phrases:
    """The records by what they come to there and here, the first few of each by name."""
    kinds = {outcome.id: outcome.kind for outcome in cargo.round.plan.outcomes}
    groups: dict[tuple[str, str], list[str]] = {}
    for name in cargo.differs:
        pair = kinds[name].replace("-", " "), cargo.here.get(name, "").replace("-", " ")
        groups.setdefault(pair, []).append(name)
    parts = [
        phrase("{there}, here {here}: {records}", there=listed(there), here=listed(here), records=named(names))
        for (there, here), names in groups.items()
    ]
    return Phrases(tuple(parts))
