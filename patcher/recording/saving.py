"""Records into a folder of the fork that uky-patch.toml names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.data import shipped
from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.recording.proposal import Recorded
from patcher.session.config_edits import with_items
from patcher.tree.errors import tree_error
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.session.session import Session

FOLDER = "patches"
SCHEMA = "record.schema.json"
"""By it editors complete and check the records; it goes with the fork, so that it is there on every machine."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the records are, and whether uky-patch.toml names their folder only since now."""

    paths: tuple[Path, ...]
    named_now: bool


def folder_for(session: Session, given: Path | None) -> Path:
    """The folder of the fork's own records: the one given, the first that uky-patch.toml names, or `patches`.

    Raises UsageError for one outside the tree.
    """
    root = session.tree.root
    if given is None:
        return session.config.patches[0] if session.config.patches else root / FOLDER
    folder = given if given.is_absolute() else root / given
    if not files.leads_into(folder, root):
        raise UsageError(
            phrase("{folder}: not in the tree {root}", folder=given, root=root),
            advice=phrase("The fork's records go with the fork: name a folder below its root with --into."),
        )
    return folder


def save(session: Session, records: Sequence[Recorded], folder: Path) -> Saved:
    """Write the records as `save_text` does."""
    return save_text(session, {one.record.id: one.text for one in records}, folder)


def save_text(session: Session, texts: Mapping[str, str], folder: Path) -> Saved:
    """Write records, by id, with the schema beside them, and name their folder in uky-patch.toml.

    No file that is there is touched.

    Raises:
        UsageError: a file of that name is there.
        TreeError: the folder or uky-patch.toml cannot be written; then no record is there.
        RecordError: uky-patch.toml cannot be edited safely.
    """
    root = session.tree.root
    inside = folder.relative_to(root).as_posix()
    known = folder in session.config.patches
    change = None if known else with_items(root, "patches", [inside])
    there = [name for name in texts if (folder / f"{name}.toml").exists()]
    if there:
        raise UsageError(
            phrase("{folder} has a record of this name already: {names}", folder=inside, names=", ".join(there)),
            cause=phrase("nothing was written"),
            advice=phrase("Move it away, or record into another folder with --into."),
        )
    paths = [folder / f"{name}.toml" for name in texts]
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            files.create_whole(path, f"#:schema ./{SCHEMA}\n{text}".encode())
            made.append(path)
        if files.create_whole(folder / SCHEMA, (shipped("docs") / "schemas" / SCHEMA).read_bytes()):
            made.append(folder / SCHEMA)
        if change is not None:
            change.write()
    except BaseException as error:
        for path in made:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for place in absent:
                place.rmdir()
        if isinstance(error, OSError):
            title = phrase("{folder}: the records cannot be written there", folder=folder)
            raise tree_error(error, title) from error
        raise
    return Saved(tuple(paths), not known)
