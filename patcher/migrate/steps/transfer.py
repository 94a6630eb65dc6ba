"""Send what the host does not have, and change its tree in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patcher.errors import HostError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.jobs import running
from patcher.migrate.comparing import compare
from patcher.migrate.model import Cargo, Difference, Sent
from patcher.migrate.sending import send
from patcher.migrate.steps.probe import size
from patcher.migrate.walk import Outcome, Walk, found
from patcher.profiles.model import Text

_NAMED = 5


def run(walk: Walk) -> Outcome:
    """Compare, and send the difference; on a dry run only compare.

    Raises HostError where work on the host would be moved aside and nobody agrees.
    """
    cargo: Cargo = found(walk.cargo)
    difference = walk.difference = compare(walk.connection, cargo)
    if walk.order.dry:
        return Outcome(_would(cargo, difference), notes=_notes(difference))
    if not difference.nothing:
        _agree(walk, difference)
        _spare(walk)
    sent = send(walk.connection, cargo, difference, progress=walk.listeners.progress)
    walk.place = replace(found(walk.place), exists=True, empty=False, manifest=True)
    if difference.nothing:
        return Outcome(phrase("{files} {files:file|files}, nothing to send", files=len(cargo.items)))
    return Outcome(_done(difference, sent), notes=(*sent.notes, *_aside(sent), *_left_out(cargo)))


def _agree(walk: Walk, difference: Difference) -> None:
    if not difference.overwritten or walk.order.yes:
        return
    count, names = len(difference.overwritten), named(difference.overwritten)
    question = phrase(
        "{count} {count:file|files} {count:was|were} changed on {host}: {names}. Move them aside and send ours?",
        count=count,
        host=walk.host.name,
        names=names,
    )
    if not walk.listeners.confirm(question):
        raise HostError(
            phrase(
                "{host}: {count} {count:file|files} there {count:holds|hold} somebody's work",
                host=walk.host.name,
                count=count,
            ),
            cause=phrase("changed there since the last migration, or there without one: {names}", names=names),
            advice="Take the changes over into this tree first; or move them aside into .uky-patch-kept there: --yes.",
        )


def _spare(walk: Walk) -> None:
    """No file is replaced under a job that runs, unless somebody says so."""
    job = running(walk.connection)
    if job is None or walk.order.yes:
        return
    question = phrase("job {id} runs there. Replace files of its tree all the same?", id=job.id)
    if not walk.listeners.confirm(question):
        raise HostError(
            phrase("{host}: a job runs in the tree that would be changed", host=walk.host.name),
            cause=phrase("job {id}, {script}", id=job.id, script=job.script),
            advice=phrase(
                "Wait for it: uky-patch job attach {host}. Stop it: uky-patch job stop {host}. Or go on with --yes.",
                host=walk.host.name,
            ),
        )


def _would(cargo: Cargo, difference: Difference) -> Phrase:
    if difference.nothing:
        return phrase("{files} {files:file|files}, nothing to send", files=len(cargo.items))
    amount = size(sum(cargo.items[path].size for path in difference.send))
    return phrase(
        "{files} {files:file|files}, {size} would be sent; {same} are there",
        files=len(difference.send),
        size=amount,
        same=difference.same,
    )


def _done(difference: Difference, sent: Sent) -> Phrases:
    parts: list[Text] = [
        phrase("{files} {files:file|files}, {size} sent ({way})", files=sent.files, size=size(sent.bytes), way=sent.way)
        if sent.files
        else phrase("no file sent")
    ]
    if difference.same:
        parts.append(phrase("{same} were there", same=difference.same))
    if sent.retries:
        parts.append(phrase("resumed {count} {count:time|times}", count=sent.retries))
    return Phrases(tuple(parts), ", ")


def _notes(difference: Difference) -> tuple[Text, ...]:
    notes: list[Text] = []
    if difference.retire:
        notes.append(phrase("no longer sent, would be moved aside: {names}", names=named(difference.retire)))
    if difference.overwritten:
        notes.append(phrase("changed on the host, needs --yes: {names}", names=named(difference.overwritten)))
    return tuple(notes)


def _aside(sent: Sent) -> tuple[Text, ...]:
    if sent.aside is None:
        return ()
    return (phrase("moved aside into {folder}: {names}", folder=sent.aside, names=named(sent.moved)),)


def _left_out(cargo: Cargo) -> tuple[Text, ...]:
    left = cargo.listing.left_out
    if not left:
        return ()
    parts = [
        phrase("{path} ({reason}, {size})", path=item.path, reason=item.reason, size=size(item.size))
        if item.size is not None
        else phrase("{path} ({reason})", path=item.path, reason=item.reason)
        for item in left[:_NAMED]
    ]
    more = [phrase("and {count} more", count=len(left) - _NAMED)] if len(left) > _NAMED else []
    return (phrase("left out: {items}", items=Phrases((*parts, *more), ", ")),)


def named(paths: Sequence[str]) -> Phrases:
    """The first few paths, and how many more."""
    more = [phrase("and {count} more", count=len(paths) - _NAMED)] if len(paths) > _NAMED else []
    return Phrases((*map(printable, paths[:_NAMED]), *more), ", ")


def printable(path: str) -> str:
    """A path as it can be shown on a terminal."""
    return path if path.isprintable() else ascii(path)[1:-1]
