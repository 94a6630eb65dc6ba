"""Take edits made on a host over into the tree here, merged line by line with what has changed here meanwhile."""

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
"""`same`: the file here has the edit already; `conflict`: both sides have changed the same lines, or a file that is no
text; `unknown`: the text that was sent is not known any more; `missing`: there is no such file here. For `gone`, `link`
and `large` see `Change` of `patcher.migrate.host_edits`."""
TAKEN = ("pulled", "created", "same")
"""After these outcomes the file here has the edit."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """What has become, or would become, of one file."""

    edit: HostEdit
    outcome: PullOutcome
    content: bytes | None = None
    """The file's content with the edit."""
    kept: str | None = None
    """The path, below the root, of a copy of the content before, if that was in no commit."""


def merge(edit: HostEdit) -> Pulled:
    """Merge the edit with the file here. Nothing is read or written."""
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
    """The edits without those that the files here have already."""
    return replace(found, edits=tuple(edit for edit in found.edits if merge(edit).outcome != "same"))


def _lines(content: bytes) -> list[str]:
    """Lines without their ends, for any encoding: each byte becomes one character."""
    return content.decode("latin-1").split("\n")


def pull(session: Session, found: HostEdits) -> tuple[Pulled, ...]:
    """Merge the edits and write the files one after another. Files with a conflict are left as they are.

    A content that is replaced and in no commit is copied first. Raises TreeError if a file cannot be written: those
    before it are done, and the same command continues with the rest.
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
    """Note what was taken over, so that the next migration replaces it on the host without asking."""
    taken = ((one.edit.path, one.edit.there) for one in done if one.outcome in TAKEN)
    digests = {path: digest_of(there) for path, there in taken if there is not None}
    if digests:
        sent_texts(journal_for(session.tree.root, found.host)).note_pulled(digests)


def _uncommitted(session: Session, paths: list[str]) -> frozenset[str]:
    """Those of `paths` whose content is in no commit."""
    place = checkout(session.tree.root) if paths else None
    return frozenset(paths if place is None else place.changed_files(paths))


def _written(session: Session, merged: list[Pulled], uncommitted: frozenset[str]) -> Iterator[Pulled]:
    """Write each file and yield what has become of it. Raises TreeError."""
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
    """Write the host's version of each file below `folder`, which must be new or empty. Returns the files' paths.

    Raises:
        UsageError: the folder is not empty, or a file.
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
