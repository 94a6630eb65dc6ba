"""What may be removed from a tree to make room, and what was, for people and for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from patcher.i18n import language, listed, phrase, show
from patcher.migrate.wording import printable, readable_size
from patcher.terminal.document import Json, Lines, Output, Part, Table
from patcher.terminal.table import Cell

if TYPE_CHECKING:
    from patcher.migrate.pruning import Pruned, Stored
    from patcher.remote.host import Host

_KINDS = {"kept": phrase("kept copy"), "job": phrase("job")}


def stored_report(things: Sequence[Stored]) -> Iterator[Part]:
    """Each thing that may go, with its size and its time."""
    tongue = language()
    rows = []
    for one in things:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.time))
        state = show(listed(one.state), tongue) if one.state else ""
        cells = (show(_KINDS[one.kind], tongue), printable(one.name), state, readable_size(one.size), when)
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
        yield Lines(phrase("{size} would be free; nothing was removed (--dry-run)", size=_size(things)))
    elif not done.removed and not done.left:
        yield Lines(phrase("nothing was removed; --yes does"), err=True)
    else:
        text = phrase(
            "{count} of {all} removed, {size}", count=len(done.removed), all=len(things), size=_size(done.removed)
        )
        yield Lines(text)


def _size(things: Sequence[Stored]) -> str:
    return readable_size(sum(one.size for one in things))
