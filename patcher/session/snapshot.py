"""What a plan needs from the tree, read once: the files that records name, and those that the ledger knows.

Each file has a base, the text that records are applied to: its pre-image where it is patched, else what is there. Where
a patched file was changed since and still holds what the records made, its base is what is left without that
(`patcher.session.taking_over`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from patcher.errors import TreeError
from patcher.plan.applicability import SymbolLookup
from patcher.plan.inputs import PlanInputs
from patcher.plan.outcome import Applied, FileState
from patcher.plan.replay import Unused
from patcher.rewrite.edits import Edit, MoveImport
from patcher.rewrite.outcome import Unparseable
from patcher.session.pre_images import Replaced, find_replaced, release_of
from patcher.session.session import PlanTarget, Session
from patcher.tree import Ledger, Source
from patcher.tree.source import Codec, Undecodable, decode, encode, sha256_of
from patcher.worktree.hashing import ABSENT, digest_of

if TYPE_CHECKING:
    from patcher.session.taking_over import TakenOver
    from patcher.worktree.ledger import PatchedFile

Tampering = Literal["refuse", "restore", "merge"]


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """The situation that a plan is made for, and the bytes that it was read from."""

    situation: PlanInputs
    ledger: Ledger
    sources: Mapping[str, Source]
    codecs: Mapping[str, Codec]
    changed: tuple[str, ...] = ()
    """Files of the ledger that were changed since it was written."""
    merged: Mapping[str, bytes | None] = field(default_factory=dict)
    """What files would be had they never been patched, where that is no pre-image; None: they would not be there."""
    unnoted: frozenset[str] = frozenset()
    """Files of `changed` with edits of a hand that are in no commit: the ledger learns of them once they are written,
    so that the next `apply` still sees whose they are."""
    gone: tuple[str, ...] = ()
    """Files of the ledger that are not there any more, in `merge`."""
    replaced: Replaced = field(default_factory=Replaced)
    """Files that another release or commit has replaced; `ledger` is without those that are begun anew."""
    whole: Ledger = field(default_factory=Ledger)
    """The ledger with these."""
    release: str = ""
    """The verl version of the files."""

    @property
    def originals(self) -> dict[str, bytes]:
        """The merged contents by digest: they become pre-images."""
        return {digest_of(content): content for content in self.merged.values() if content is not None}

    def forgotten(self, written: Collection[str]) -> Ledger:
        """The ledger's entries of files that another release has replaced, once the files in `written` are planned."""
        begun = (path for path in self.replaced.mixed if path in written)
        return self.whole.of((*self.replaced.anew, *self.replaced.left, *begun))

    def encode(self, path: str, text: str | None) -> bytes | None:
        """The bytes of a text, as the file has them; of one that is made, in UTF-8. None stays None: no file."""
        return None if text is None else encode(text, self.codecs.get(path, Codec()), path)

    def content(self, path: str) -> bytes | None:
        """The file's bytes as they were read; None where there was none."""
        source = self.sources.get(path)
        return None if source is None else source.content

    def sha256(self, path: str) -> str:
        """The file's digest as it was read; ABSENT where there was none."""
        return sha256_of(self.sources.get(path))


def read_snapshot(
    session: Session,
    ledger: Ledger,
    files: Iterable[str],
    *,
    tampering: Tampering = "refuse",
    target: PlanTarget | None = None,
    pre_images: Mapping[str, bytes | None] = MappingProxyType({}),
) -> TreeSnapshot:
    """Read `files` and the ledger's files, for a plan for `target` (None: this machine).

    `pre_images` are what files would be without the edits that a hand has made and records are to take over; None: they
    would not be there.

    An unreadable file becomes a state that says so. A file that was changed since it was patched, and still holds what
    the records made, has for a base what is left without that. What becomes of any other that was changed: "refuse" and
    "merge" say so in its state; "restore" takes its pre-image for a base all the same. "merge" also leaves out files
    that are gone, and takes over what is in no commit. A pre-image is never put over a file that another release or
    commit has replaced: "restore" forgets such a file where what the records made cannot be told apart. Raises
    TreeError if a file cannot be read.
    """
    target = target if target is not None else session.target
    states: dict[str, FileState] = {}
    sources: dict[str, Source] = {}
    codecs: dict[str, Codec] = {}
    gone: list[str] = []
    changed = _changed(session, ledger)
    other = find_replaced(session, ledger)
    taken: Mapping[str, TakenOver] = {}
    concerned = {
        path: content
        for path, content in changed.items()
        if path not in other.anew and (tampering != "restore" or path in other.mixed)
    }
    if concerned:
        from patcher.session.taking_over import taken_over  # The rewriting engine: seldom needed here.

        taken = taken_over(session, ledger, concerned, replaced=other.mixed)
    other = other.told_apart(taken, forget=tampering == "restore")
    whole, ledger = ledger, ledger.without((*other.anew, *other.left))
    merged: dict[str, bytes | None] = {path: one.base for path, one in taken.items()} | dict(pre_images)
    for path in dict.fromkeys((*files, *ledger.files)):
        source = session.tree.read(path)
        known = ledger.files.get(path)
        if source is None:
            lost = known is not None and known.original != ABSENT
            gone += [path] if lost and tampering == "merge" else []
            base = _original_text(session, path, known) if lost and tampering != "merge" else None
            states[path] = FileState(path, base, None, lost and tampering == "refuse")
            continue
        sources[path] = source
        refused = path in ledger.files and path in changed and path not in merged and tampering != "restore"
        original: bytes | None = source.content
        if path in merged:
            original = merged[path]
        elif known is not None and (source.sha256 == known.patched or (path in changed and tampering == "restore")):
            original = session.tree.original(known)
        now = decode(source)
        before = decode(replace(source, content=original)) if original is not None else None
        if isinstance(before, Undecodable) or (isinstance(now, Undecodable) and tampering != "restore"):
            bad = now if isinstance(now, Undecodable) else before
            assert isinstance(bad, Undecodable)
            states[path] = FileState(path, None, None, refused, Unparseable(bad.line, bad.message))
            continue
        codecs[path] = before[1] if before is not None else Codec()
        text = before[0] if before is not None else None
        if refused:  # What records made in other files stays as it is, so that they are made here as they were.
            text = _original_text(session, path, known) or text
        since = path in taken and path not in pre_images
        made = taken[path].made if since else known.made if known is not None and path not in merged else ""
        current = now[0] if not isinstance(now, Undecodable) else None
        states[path] = FileState(path, text, current, refused, since=since, made=made)
    applied = {
        name: Applied(
            name,
            entry.source,
            entry.versions.get("verl", ""),
            tuple(path for path, file in ledger.files.items() if name in file.records),
        )
        for name, entry in ledger.records.items()
    }
    situation = PlanInputs(
        target.environment,
        target.lookup,
        states,
        applied,
        session.config.marker,
        session.config.style,
        _unused_for(session, target.lookup),
        session.tree_has,
    )
    edited = [path for path, one in taken.items() if one.edited and path not in (*other.mixed, *pre_images)]
    return TreeSnapshot(
        situation,
        ledger,
        sources,
        codecs,
        tuple(path for path in changed if path in ledger.files),
        merged,
        _uncommitted(session, ledger, edited) if tampering == "refuse" else frozenset(),
        tuple(gone),
        other,
        whole,
        release_of(session),
    )


def _changed(session: Session, ledger: Ledger) -> dict[str, bytes]:
    """The files of the ledger that are there, and neither as the records left them nor as they were before."""
    found = {}
    for path, known in ledger.files.items():
        source = session.tree.read(path)
        if source is not None and source.sha256 not in (known.patched, known.original):
            found[path] = source.content
    return found


def _original_text(session: Session, path: str, known: PatchedFile | None) -> str | None:
    """The text of a pre-image; None where there is none, or it is lost."""
    try:
        original = session.tree.original(known) if known is not None else None
    except TreeError:
        return None
    read = decode(Source(path, original, "", 0)) if original is not None else None
    return read[0] if isinstance(read, tuple) else None


def _uncommitted(session: Session, ledger: Ledger, paths: Sequence[str]) -> frozenset[str]:
    from patcher.git.checkout import checkout  # Git is not asked where nobody has edited a patched file.

    place = checkout(session.tree.root) if paths else None
    return frozenset(place.foreign_changes(paths, ledger, session.tree.read) if place is not None else ())


def retargeted(found: TreeSnapshot, session: Session, target: PlanTarget) -> TreeSnapshot:
    """The same files, for a plan for another machine."""
    unused = _unused_for(session, target.lookup)
    situation = replace(found.situation, environment=target.environment, lookup=target.lookup, unused=unused)
    return replace(found, situation=situation)


def _unused_for(session: Session, lookup: SymbolLookup) -> Unused:
    return lambda text, edit, but: _unused(session, lookup, text, edit, but)


def _unused(session: Session, lookup: SymbolLookup, text: str, edit: Edit, but: Iterable[str]) -> bool:
    """Whether neither `text` nor any other file, but those named, uses what an import would be moved for.

    Only of moved imports can that be shown; what breaks in another way may look otherwise than the record expects.
    """
    if not isinstance(edit, MoveImport):
        return False
    from patcher.rewrite.absence import can_be_moved, is_unused

    module = edit.old.rpartition(".")[0]
    if not is_unused(text, edit, module_stays=lookup(module) is True):
        return False
    others = (file for file in session.tree.text_files() if file.path.endswith(".py") and file.path not in but)
    return not any(can_be_moved(file.read().decode("utf-8", "replace"), edit) for file in others)


def record_file_names(session: Session) -> tuple[str, ...]:
    """The files that the session's records name, each once."""
    return tuple(dict.fromkeys(file for record in session.records for file in record.files))
