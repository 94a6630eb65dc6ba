"""A patched file that people have changed since: their changes without ours, by a three-way merge."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.git.running import start_outside
from patcher.i18n import Phrase, phrase
from patcher.plan.inputs import belongs
from patcher.plan.replay import Workspace, predecessors
from patcher.records.load import as_applied, in_order
from patcher.tree.source import Codec, Source, Undecodable, decode, digest, encode

if TYPE_CHECKING:
    from patcher.session.session import Session
    from patcher.tree import Ledger


def without_ours(
    session: Session, ledger: Ledger, paths: tuple[str, ...], *, replaced: Collection[str] = ()
) -> dict[str, bytes]:
    """For each patched file that was changed since, what it would be had it never been patched.

    The pre-images of those in `replaced` are of another release: putting them back is no advice there.

    Raises TreeError where both changed the same lines, and where this version makes other edits than the ledger's did.
    """
    patched = _as_patched(session, ledger) if paths else {}
    merged = {}
    for path in paths:
        source = session.tree.read(path)
        known = ledger.files[path]
        if source is None or digest(patched.get(path, b"")) != known.patched:
            raise TreeError(
                phrase("{file}: cannot be merged; nothing was written", file=path),
                cause=phrase("what the records made of it cannot be made again from its pre-image"),
                advice=_advice(path in replaced),
            )
        contents = (source.content, patched[path], session.tree.pre_image(known.original))
        merged[path] = _merge(session.tree.root, path, contents, _advice(path in replaced))
    return merged


def _as_patched(session: Session, ledger: Ledger) -> Mapping[str, bytes]:
    """Every file of the ledger as its records made it."""
    texts: dict[str, str] = {}
    codecs: dict[str, Codec] = {}
    for path, known in ledger.files.items():
        read = decode(Source(path, session.tree.pre_image(known.original), known.original, 0))
        if not isinstance(read, Undecodable):
            texts[path], codecs[path] = read
    records = in_order(as_applied(name, entry.source) for name, entry in ledger.records.items())
    desk = Workspace.of(texts, {}, session.config.marker, session.config.style)
    earlier = predecessors(records)
    for record in records:
        desk.replay(record, belongs(ledger.records[record.id].versions.get("verl", "")), earlier[record.id])
    return {path: encode(text, codecs[path], path) for path, text in desk.texts.items()}


def _advice(replaced: bool) -> Phrase:
    if replaced:
        return phrase("Put the file of that release or branch there with git or pip, and run uky-patch apply again.")
    return phrase("Put it back with uky-patch revert --force, which keeps a copy, and edit it anew.")


def _merge(root: Path, path: str, contents: tuple[bytes, bytes, bytes], advice: Phrase) -> bytes:
    """What is there now, without what lies between the patched and the original content."""
    with tempfile.TemporaryDirectory(prefix="uky-patch-") as folder:
        names = [Path(folder) / name for name in ("current", "patched", "original")]
        for name, content in zip(names, contents, strict=True):
            name.write_bytes(content)
        code, merged = start_outside("merge-file", "-p", "--quiet", *map(str, names), root=root).outcome()
    if code == 0:
        return merged
    raise TreeError(
        phrase("{file}: cannot be merged; nothing was written", file=path),
        cause=phrase("lines that the records changed were changed by hand too"),
        advice=advice,
    )
