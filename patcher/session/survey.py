"""Read what a plan needs from the tree, once: the files that records name, and those that the ledger knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from patcher.plan.inputs import PlanInputs
from patcher.plan.outcome import Applied, FileState
from patcher.rewrite.edits import Edit, MoveImport
from patcher.rewrite.outcome import Unparseable
from patcher.session.merging import without_ours
from patcher.session.pre_images import Replaced, release_of, replaced
from patcher.session.session import Session
from patcher.tree import Ledger, Source
from patcher.tree.source import Codec, Undecodable, decode, digest, encode

Tampering = Literal["refuse", "restore", "merge"]


@dataclass(frozen=True, slots=True)
class Survey:
    """The situation that a plan is made for, and the bytes that it was read from."""

    situation: PlanInputs
    ledger: Ledger
    sources: Mapping[str, Source]
    codecs: Mapping[str, Codec]
    tampered: tuple[str, ...] = ()
    """Files of the ledger that were changed since it was written."""
    merged: Mapping[str, bytes] = field(default_factory=dict)
    """For those, in `merge`, what they would be had they never been patched."""
    gone: tuple[str, ...] = ()
    """Files of the ledger that are not there any more, in `merge`."""
    replaced: Replaced = field(default_factory=Replaced)
    """Files that another release or commit has replaced; `ledger` is without those that are begun anew."""
    forgotten: Ledger = field(default_factory=Ledger)
    """What the ledger said of these files."""
    release: str = ""
    """The verl version of the files."""

    @property
    def originals(self) -> dict[str, bytes]:
        """The merged contents by digest: they become pre-images."""
        return {digest(content): content for content in self.merged.values()}

    def encode(self, path: str, text: str) -> bytes:
        return encode(text, self.codecs[path], path)


def survey(session: Session, ledger: Ledger, files: Iterable[str], *, tampering: Tampering = "refuse") -> Survey:
    """Read `files` and the ledger's files. Unreadable ones become states that say so.

    What becomes of a file that was changed since it was patched: "refuse" says so in its state; "restore" takes its
    pre-image for a base all the same; "merge" takes the change over into the base. A file that another release or
    commit has replaced is a base itself, and its pre-image is never put over it. Raises TreeError where it cannot be
    read or merged.
    """
    states: dict[str, FileState] = {}
    sources: dict[str, Source] = {}
    codecs: dict[str, Codec] = {}
    tampered: list[str] = []
    gone: list[str] = []
    other = replaced(session, ledger)
    whole, ledger = ledger, ledger.without(other.anew)
    merged = {}
    if tampering == "merge":
        merged = without_ours(session, whole, _changed(session, ledger), replaced=other.mixed)
    for path in dict.fromkeys((*files, *ledger.files)):
        source = session.tree.read(path)
        if source is None:
            lost = path in ledger.files
            gone += [path] if lost and tampering == "merge" else []
            states[path] = FileState(path, None, None, lost and tampering != "merge")
            continue
        sources[path] = source
        known = ledger.files.get(path)
        ours = known is not None and source.sha256 == known.patched
        changed = known is not None and source.sha256 not in (known.patched, known.original)
        if changed:
            tampered.append(path)
        refused = changed and (tampering == "refuse" or (tampering == "restore" and path in other.mixed))
        base = source
        if path in merged:
            base = replace(source, content=merged[path])
        elif known is not None and (ours or (changed and tampering == "restore")):
            base = replace(source, content=session.tree.pre_image(known.original), sha256=known.original)
        before, now = decode(base), decode(source)
        if isinstance(before, Undecodable) or isinstance(now, Undecodable):
            bad = now if isinstance(now, Undecodable) else before
            assert isinstance(bad, Undecodable)
            states[path] = FileState(path, None, None, refused, Unparseable(bad.line, bad.message))
            continue
        codecs[path] = before[1]
        states[path] = FileState(path, before[0], now[0], refused)
    applied = {
        name: Applied(name, entry.source, entry.versions.get("verl", ""), _files_of(name, ledger))
        for name, entry in ledger.records.items()
    }
    situation = PlanInputs(
        session.environment,
        session.lookup,
        states,
        applied,
        session.config.marker,
        session.config.style,
        lambda text, edit, but: _unused(session, text, edit, but),
    )
    forgotten = whole.of((*other.anew, *(path for path in other.mixed if path in merged)))
    return Survey(
        situation,
        ledger,
        sources,
        codecs,
        tuple(tampered),
        merged,
        tuple(gone),
        other,
        forgotten,
        release_of(session),
    )


def _unused(session: Session, text: str, edit: Edit, but: Iterable[str]) -> bool:
    """Whether neither `text` nor any other file, but those named, uses what an import would be moved for.

    Only of moved imports can that be shown; what breaks in another way may look otherwise than the record expects.
    """
    if not isinstance(edit, MoveImport):
        return False
    from patcher.rewrite.absence import can_be_moved, is_unused

    module = edit.old.rpartition(".")[0]
    if not is_unused(text, edit, module_stays=session.lookup(module) is True):
        return False
    others = (file for file in session.tree.text_files() if file.path.endswith(".py") and file.path not in but)
    return not any(can_be_moved(file.read().decode("utf-8", "replace"), edit) for file in others)


def _changed(session: Session, ledger: Ledger) -> tuple[str, ...]:
    return tuple(path for path, state in session.tree.state(ledger).items() if state == "tampered")


def _files_of(name: str, ledger: Ledger) -> tuple[str, ...]:
    return tuple(path for path, file in ledger.files.items() if name in file.records)


def record_file_names(session: Session) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for record in session.records for file in record.files))
