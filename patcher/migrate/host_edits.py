"""Edits made on a host since the last migration: found by comparing the files there with what was sent.

The host knows only the digests of what was sent. The texts are looked for in four places, cheapest first: the file
here, the copies that the migration has kept, the commit that was sent, and the payload as it would be planned now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from patcher.errors import TreeError, UsageError
from patcher.git.checkout import checkout
from patcher.git.history import contents
from patcher.i18n import phrase
from patcher.migrate.journal import journal_for
from patcher.migrate.listing import HOST_OWN, Item
from patcher.migrate.payload import lay_groundwork, plan_payload
from patcher.migrate.sent_texts import sent_texts
from patcher.remote.channel import understood
from patcher.remote.connection import Connection
from patcher.remote.host import Host
from patcher.remote.survey import survey_host
from patcher.session.session import Session
from patcher.worktree import files
from patcher.worktree.hashing import digest_of

Change: TypeAlias = Literal["edited", "new", "gone", "link", "large"]
"""`gone`: removed there; `link`: it is or was a symlink; `large`: more than 8 MiB."""
_AT_ONCE = 16
"""Files in one answer, of at most 8 MiB each. A guess: an answer is held in memory."""


@dataclass(frozen=True, slots=True)
class HostEdit:
    """A file that is not on the host as it was sent."""

    path: str
    """Below the tree's root."""
    change: Change
    sent: bytes | None = None
    """What was sent; None if nothing was, or if its text cannot be found."""
    there: bytes | None = None
    """What the host has; None if it is gone, a symlink or large."""
    here: bytes | None = None
    """What the tree here has; None if there is no such file."""


@dataclass(frozen=True, slots=True)
class HostEdits:
    """What was edited in the tree on a host."""

    host: Host
    edits: tuple[HostEdit, ...]
    folders: tuple[str, ...] = ()
    """New folders there, as `name/`. Their files are among the edits only if the folder was asked for by its path."""
    more: int = 0
    """The number of further new files, beyond the limit of the list."""


def find_edits(session: Session, connection: Connection, paths: Sequence[str] = (), *, new: bool = False) -> HostEdits:
    """Find what was edited on the host, in all of the tree or in the files and folders `paths`.

    New files are included with `new`, or if they are asked for by path. Files that git would ignore here, and those of
    which each host has its own, are always left out. The tree's folder must have been opened (`open_tree_folder`).

    Raises:
        RefusedError: no migration has brought the tree there, or a file cannot be read.
        UsageError: at one of `paths` nothing was edited, and nothing is new.
    """
    answer = connection.channel.ask("list_edits", within=list(paths))
    listed = understood(lambda: [_Listed(*entry) for entry in answer["edits"]])
    new_there = _not_ignored(session, [path for path in answer["new"] if path not in HOST_OWN])
    for path in paths:
        if not any(_is_within(one, (path,)) for one in (*new_there, *(one.path for one in listed))):
            raise UsageError(
                phrase("{path}: nothing was edited there on {host}", path=path, host=connection.host.name),
                advice=phrase("What was: uky-patch diff {host}", host=connection.host.words),
            )
    chosen = [one for one in listed if _is_within(one.path, paths)]
    fresh = [path for path in new_there if not path.endswith("/") and (_is_within(path, paths) if paths else new)]
    edited = {one.path: one.sha256 for one in chosen if one.change == "edited"}
    there = _read(connection, [*edited, *fresh])
    here = {path: _here(session, path) for path in (*(one.path for one in chosen), *fresh)}
    sent = _sent(session, connection, edited, here, answer["commit"])
    edits = [HostEdit(one.path, one.change, sent.get(one.path), there.get(one.path), here[one.path]) for one in chosen]
    edits += [HostEdit(path, "new", None, there[path], here[path]) for path in fresh if path in there]
    return HostEdits(
        connection.host,
        tuple(edit for edit in edits if edit.there is None or edit.there != edit.here),
        tuple(path for path in new_there if path.endswith("/") and _is_within(path, paths)),
        int(answer["more"]),
    )


class _Listed(NamedTuple):
    """An entry of the host's list of edits."""

    path: str
    change: Change
    sha256: str
    """Of what was sent."""


def _is_within(path: str, paths: Sequence[str]) -> bool:
    return not paths or any(path.rstrip("/") == one or path.startswith(one + "/") for one in paths)


def _not_ignored(session: Session, paths: Sequence[str]) -> list[str]:
    place = checkout(session.tree.root)
    ignored = place.ignored(paths) if place is not None and paths else frozenset()
    return [path for path in paths if path not in ignored]


def _read(connection: Connection, paths: Sequence[str]) -> dict[str, bytes]:
    """The bytes of files on the host, by path. Files that have vanished meanwhile are left out."""
    found: dict[str, bytes] = {}
    for start in range(0, len(paths), _AT_ONCE):
        wanted = paths[start : start + _AT_ONCE]
        answer = connection.channel.ask("read_files", paths=list(wanted))
        at = 0
        for path, size in zip(wanted, answer["sizes"], strict=True):
            if size >= 0:
                found[path] = answer.body[at : at + size]
                at += size
    return found


def _here(session: Session, path: str) -> bytes | None:
    source = session.tree.read(path)
    return source.content if source is not None else None


def _sent(
    session: Session,
    connection: Connection,
    digests: Mapping[str, str],
    here: Mapping[str, bytes | None],
    commit: str | None,
) -> dict[str, bytes]:
    """The bytes that were sent, by path, of the files whose text can be found. `digests`: what was sent, by path."""
    found: dict[str, bytes] = {}

    def offer(path: str, content: bytes | None) -> None:
        if content is not None and path not in found and digest_of(content) == digests[path]:
            found[path] = content

    kept = sent_texts(journal_for(session.tree.root, connection.host))
    for path in digests:
        offer(path, here[path])
        offer(path, kept.read(digests[path]))
    lacking = [path for path in digests if path not in found]
    place = checkout(session.tree.root)
    if lacking and place is not None and commit:
        for path, content in contents(place, commit, lacking).items():
            offer(path, content)
    lacking = [path for path in digests if path not in found]
    if lacking:
        items = _planned(session, connection)
        for path in lacking:
            if path in items and items[path].sha256 == digests[path]:
                offer(path, _content(items[path]))
    return found


def _planned(session: Session, connection: Connection) -> Mapping[str, Item]:
    """The items of a payload planned now; none if the records cannot be planned for that host."""
    host = connection.host
    try:
        groundwork = lay_groundwork(session, host.include)
        return plan_payload(session, groundwork, survey_host(connection, host), connection).items
    except TreeError:
        return {}


def _content(item: Item) -> bytes | None:
    if item.content is not None or item.source is None:
        return item.content
    try:
        return files.read(item.source, files.DATA_BYTES)
    except OSError:
        return None
