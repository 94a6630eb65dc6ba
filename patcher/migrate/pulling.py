"""Take over edits made on a host into the tree here: merged line by line with what has changed here meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from patcher.errors import TreeError, UsageError
from patcher.git.checkout import checkout
from patcher.i18n import phrase
from patcher.migrate.host_edits import HostEdit, HostEdits
from patcher.migrate.journal import journal_for
from patcher.migrate.sent_texts import sent_texts
from patcher.rewrite.merging import three_way
from patcher.session.session import Session
from patcher.session.tree_access import lock_timeout, report_lock_owner
from patcher.tree.errors import tree_error
from patcher.worktree import files
from patcher.worktree.hashing import digest_of

PullOutcome: TypeAlias = Literal["pulled", "created", "same", "conflict", "unknown", "missing", "gone", "link", "large"]
"""`same`: the edit is in the file here; `conflict`: both sides changed the same lines, or a file that is no text;
`unknown`: what was sent is not known any more; `missing`: there is no such file here."""
TAKEN = ("pulled", "created", "same")


@dataclass(frozen=True, slots=True)
class Pulled:
    """What became of one file, or would become of it. `content` is what it holds with the edit."""

    edit: HostEdit
    outcome: PullOutcome
    content: bytes | None = None
    kept: str | None = None
    """Where the content is kept that was replaced and is in no commit, below the root."""


def merge(edit: HostEdit) -> Pulled:
    """What the file here holds with the edit. Nothing is read or written."""
    here, there, sent = edit.here, edit.there, edit.sent
    if edit.change in ("gone", "link", "large"):
        return Pulled(edit, edit.change)
    assert there is not None
    if here == there:
        return Pulled(edit, "same", here)
    if edit.change == "new":
        return Pulled(edit, "created", there) if here is None else Pulled(edit, "conflict")
    if here is None:
        return Pulled(edit, "missing")
    if sent is None:
        return Pulled(edit, "unknown")
    if here == sent:
        return Pulled(edit, "pulled", there)
    if b"\0" in here + there + sent:
        return Pulled(edit, "conflict")
    lines = three_way(_lines(sent), _lines(here), _lines(there))
    if lines is None:
        return Pulled(edit, "conflict")
    content = "\n".join(lines).encode("latin-1")
    return Pulled(edit, "same" if content == here else "pulled", content)


def not_here(found: HostEdits) -> HostEdits:
    """The edits without those that the files here have already, among other changes."""
    return replace(found, edits=tuple(edit for edit in found.edits if merge(edit).outcome != "same"))


def _lines(content: bytes) -> list[str]:
    """Lines of bytes in any encoding, without their ends: each byte is one character."""
    return content.decode("latin-1").split("\n")


def pull(session: Session, found: HostEdits) -> tuple[Pulled, ...]:
    """Merge each edit and write the files that it is taken over into, one after another; the others stay.

    What is replaced and in no commit is kept first. Raises TreeError where a file cannot be written; those before it
    are done, and the same command goes on with the rest.
    """
    with session.tree.transaction("pull", wait=lock_timeout(), on_wait=report_lock_owner):
        merged = [merge(edit) for edit in found.edits]
        uncommitted = _uncommitted(session, [one.edit.path for one in merged if one.outcome == "pulled"])
        done: list[Pulled] = []
        try:
            done.extend(_written(session, merged, uncommitted))
        finally:
            _note(session, found, done)
        return tuple(done)


def _note(session: Session, found: HostEdits, done: list[Pulled]) -> None:
    """So that the next migration replaces what is taken over without a question."""
    taken = ((one.edit.path, one.edit.there) for one in done if one.outcome in TAKEN)
    digests = {path: digest_of(there) for path, there in taken if there is not None}
    if digests:
        sent_texts(journal_for(session.tree.root, found.host.name)).note_pulled(digests)


def _uncommitted(session: Session, paths: list[str]) -> frozenset[str]:
    """Those whose content is in no commit."""
    place = checkout(session.tree.root) if paths else None
    return frozenset(paths if place is None else place.changed_files(paths))


def _written(session: Session, merged: list[Pulled], uncommitted: frozenset[str]) -> Iterator[Pulled]:
    for one in merged:
        path, content = one.edit.path, one.content
        if one.outcome not in ("pulled", "created"):
            yield one
            continue
        assert content is not None
        now = session.tree.read(path)
        if (now.content if now is not None else None) != one.edit.here:
            raise TreeError(
                phrase("{path}: changed while it was read", path=path), advice=phrase("Run the command again.")
            )
        kept = session.tree.keep(path, one.edit.here) if path in uncommitted and one.edit.here is not None else None
        place = session.tree.resolve(path)
        try:
            if now is None:
                place.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole_file(place, content, mode=None if now is None else now.mode)
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be written", path=path)) from error
        yield Pulled(one.edit, one.outcome, content, kept)


def save_beside(found: HostEdits, folder: Path) -> tuple[str, ...]:
    """Write the host's own version of each file below `folder`, which must be new or empty. Returns their paths.

    Raises:
        UsageError: something is in the folder.
        TreeError: a file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            phrase("{path}: is not empty", path=folder), advice=phrase("Name a folder that is not there yet.")
        )
    written = []
    for edit in found.edits:
        if edit.there is None:
            continue
        place = folder / edit.path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole_file(place, edit.there)
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be written", path=place)) from error
        written.append(edit.path)
    return tuple(written)
