"""The reports of `clean` and `prune`: what a job has left behind, or what only takes room, and which of it is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from patcher.i18n import Language, Phrases, language, listed, phrase, show
from patcher.migrate.wording import printable, readable_size
from patcher.terminal.document import Json, Lines, Output, Part, Table
from patcher.terminal.live import clock
from patcher.terminal.table import Cell, Row

if TYPE_CHECKING:
    from patcher.jobs.cleaning import Cleaned, Leftovers, Thing
    from patcher.migrate.pruning import Pruned, Stored
    from patcher.remote.host import Host


_AT_WORK = "the job is at work"
_SHOWN = 80
"""Characters of a command line that are shown."""
_KINDS = {
    "process": phrase("process"),
    "port": phrase("port"),
    "shm": phrase("shared memory"),
    "socket": phrase("socket"),
    "session": phrase("session of Ray"),
    "cache": phrase("cache"),
    "lock": phrase("lock"),
}


def leftovers_report(found: Leftovers) -> Iterator[Part]:
    """Each thing with its owner, age, memory, and why it is thought to be the job's; then what is left alone."""
    tongue = language()
    if found.things:
        yield Lines(phrase("left by job {id} ({state}):", id=found.job, state=listed(found.state)))
        yield Table([_row(thing, tongue) for thing in found.things])
    if found.alone:
        yield Lines(phrase("left alone:"))
        yield Table([_row(thing, tongue) for thing in found.alone])


def cleaned_report(host: Host, found: Leftovers, done: Cleaned, output: Output, *, dry: bool) -> Iterator[Part]:
    """What is gone, and what is not."""
    if output == "json":
        things = [
            {
                **thing.as_json(),
                "done": thing.key in done.done,
                "how": done.done.get(thing.key),
                "left": str(done.left.get(thing.key, "")),
            }
            for thing in found.things
        ]
        alone = [thing.as_json() for thing in found.alone]
        report = {"host": host.name, "job": found.job, "state": found.state, "things": things, "alone": alone}
        yield Json(report)
        return
    language()
    if not found.things and any(str(thing.why) == _AT_WORK for thing in found.alone):
        message = phrase("job {id} is at work: uky-patch job stop {host}, or --running", id=found.job, host=host.name)
        yield Lines(message)
        return
    if not found.things:
        yield Lines(phrase("job {id} ({state}) has left nothing", id=found.job, state=listed(found.state)))
        return
    for thing in found.things:
        if thing.key in done.left:
            message = phrase("{what}: left, {why}", what=thing.what, why=done.left[thing.key])
            yield Lines(message, err=True)
    if dry:
        yield Lines(phrase("nothing was taken away (--dry-run)"))
    elif not done.done and not done.left:
        yield Lines(phrase("nothing was taken away; --yes does"), err=True)
    else:
        killed = sum(how == "KILL" for how in done.done.values())
        message = phrase(
            "{count} of {all} taken away, {killed} {killed:process|processes} killed",
            count=len(done.done),
            all=len(found.things),
            killed=killed,
        )
        yield Lines(message)


def _row(thing: Thing, tongue: Language) -> Row:
    cells = [show(_KINDS[thing.kind], tongue), thing.what, thing.owner]
    cells += ["" if thing.age is None else clock(thing.age), _memory(thing, tongue)]
    command = thing.command if len(thing.command) <= _SHOWN else f"{thing.command[:_SHOWN]} …"
    named = f"[{command}]" if command else ""
    return [*map(Cell, cells), Cell("", reason=Phrases((thing.why, named), " "))]


def _memory(thing: Thing, tongue: Language) -> str:
    sizes = [f"{(thing.memory or thing.size) / (1 << 20):.1f} MiB"]
    if thing.gpu:
        sizes.append(show(phrase("GPU {memory} GiB", memory=f"{thing.gpu / (1 << 30):.1f}"), tongue))
    if thing.ports:
        sizes.append(show(phrase("port {ports}", ports=", ".join(map(str, thing.ports))), tongue))
    return ", ".join(sizes)


_STORED = {"kept": phrase("kept copy"), "job": phrase("job")}


def stored_report(things: Sequence[Stored]) -> Iterator[Part]:
    """Each thing that may go, with its size and its time."""
    tongue = language()
    rows = []
    for one in things:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.time))
        state = show(listed(one.state), tongue) if one.state else ""
        cells = (show(_STORED[one.kind], tongue), printable(one.name), state, readable_size(one.size), when)
        rows.append([*map(Cell, cells)])
    if rows:
        yield Table(rows)


def pruned_report(host: Host, things: Sequence[Stored], done: Pruned, output: Output, *, dry: bool) -> Iterator[Part]:
    """What is gone, and what is not."""
    if output == "json":
        removed = set(done.removed)
        left = {one: str(why) for one, why in done.left}
        items = [{**one.as_json(), "removed": one in removed, "left": left.get(one, "")} for one in things]
        yield Json({"host": host.name, "things": items})
        return
    language()
    for one, why in done.left:
        yield Lines(phrase("{what}: left, {why}", what=printable(one.name), why=why), err=True)
    if not things:
        yield Lines(phrase("nothing to remove"))
    elif dry:
        yield Lines(phrase("{size} would be free; nothing was removed (--dry-run)", size=_total(things)))
    elif not done.removed and not done.left:
        yield Lines(phrase("nothing was removed; --yes does"), err=True)
    else:
        text = phrase(
            "{count} of {all} removed, {size}", count=len(done.removed), all=len(things), size=_total(done.removed)
        )
        yield Lines(text)


def _total(things: Sequence[Stored]) -> str:
    return readable_size(sum(one.size for one in things))
