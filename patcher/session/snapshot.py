"""What a plan needs from the tree, read once: the files that records name, and those that the ledger knows.

Each file has a base, the text that records are applied to: its pre-image where it is patched, else what is there. If
people changed a patched file since, a three-way merge can take their change over into the base (`apply --merge`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from patcher.errors import TreeError
from patcher.git.running import start_outside
from patcher.i18n import Phrase, phrase
from patcher.plan.applicability import SymbolLookup
from patcher.plan.inputs import PlanInputs, belongs
from patcher.plan.outcome import Applied, FileState
from patcher.plan.replay import Unused, Workspace, predecessors
from patcher.records.load import as_applied, in_order
from patcher.rewrite.edits import Edit, MoveImport
from patcher.rewrite.outcome import Unparseable
from patcher.session.pre_images import Replaced, find_replaced, release_of
from patcher.session.session import PlanTarget, Session
from patcher.tree import Ledger, Source
from patcher.tree.source import Codec, Undecodable, decode, encode, sha256_of
from patcher.worktree.hashing import ABSENT, digest_of

Tampering = Literal["refuse", "restore", "merge"]


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """The situation that a plan is made for, and the bytes that it was read from."""

    situation: PlanInputs
    ledger: Ledger
    sources: Mapping[str, Source]
    codecs: Mapping[str, Codec]
    tampered: tuple[str, ...] = ()
    """Files of the ledger that were changed since it was written."""
    merged: Mapping[str, bytes | None] = field(default_factory=dict)
    """For those, in `merge`, what they would be had they never been patched; None: they would not be there."""
    gone: tuple[str, ...] = ()
    """Files of the ledger that are not there any more, in `merge`."""
    replaced: Replaced = field(default_factory=Replaced)
    """Files that another release or commit has replaced; `ledger` is without those that are begun anew."""
    forgotten: Ledger = field(default_factory=Ledger)
    """The ledger's entries of these files."""
    release: str = ""
    """The verl version of the files."""

    @property
    def originals(self) -> dict[str, bytes]:
        """The merged contents by digest: they become pre-images."""
        return {digest_of(content): content for content in self.merged.values() if content is not None}

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

    An unreadable file becomes a state that says so. What becomes of a file that was changed since it was patched:
    "refuse" says so in its state; "restore" takes its pre-image for a base all the same; "merge" takes the change over
    into the base. A file that another release or commit has replaced is a base itself, and its pre-image is never put
    over it. Raises TreeError if a file cannot be read or merged.
    """
    target = target if target is not None else session.target
    states: dict[str, FileState] = {}
    sources: dict[str, Source] = {}
    codecs: dict[str, Codec] = {}
    tampered: list[str] = []
    gone: list[str] = []
    other = find_replaced(session, ledger)
    whole, ledger = ledger, ledger.without(other.anew)
    merged: dict[str, bytes | None] = dict(pre_images)
    if tampering == "merge":
        changed_files = [path for path, state in session.tree.state(ledger).items() if state == "tampered"]
        merged |= merge_without_records(session, whole, changed_files, replaced=other.mixed)
    for path in dict.fromkeys((*files, *ledger.files)):
        source = session.tree.read(path)
        known = ledger.files.get(path)
        if source is None:
            lost = known is not None and known.original != ABSENT
            gone += [path] if lost and tampering == "merge" else []
            states[path] = FileState(path, None, None, lost and tampering != "merge")
            continue
        sources[path] = source
        # `ours`: as the records left it. Neither that nor the original: somebody changed it since (tampered).
        ours = known is not None and source.sha256 == known.patched
        changed = known is not None and source.sha256 not in (known.patched, known.original)
        if changed:
            tampered.append(path)
        refused = changed and (tampering == "refuse" or (tampering == "restore" and path in other.mixed))
        original: bytes | None = source.content
        if path in merged:
            original = merged[path]
        elif known is not None and (ours or (changed and tampering == "restore")):
            original = session.tree.original(known)
        now = decode(source)
        before = decode(replace(source, content=original)) if original is not None else None
        if isinstance(before, Undecodable) or isinstance(now, Undecodable):
            bad = now if isinstance(now, Undecodable) else before
            assert isinstance(bad, Undecodable)
            states[path] = FileState(path, None, None, refused, Unparseable(bad.line, bad.message))
            continue
        codecs[path] = before[1] if before is not None else Codec()
        states[path] = FileState(path, before[0] if before is not None else None, now[0], refused)
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
    forgotten = whole.of((*other.anew, *(path for path in other.mixed if path in merged)))
    return TreeSnapshot(
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


def merge_without_records(
    session: Session, ledger: Ledger, paths: Sequence[str], *, replaced: Collection[str] = ()
) -> dict[str, bytes]:
    """For each patched file that people changed since: its content with their changes and without the records'.

    The pre-images of the files in `replaced` are of another release, so the advice there is not to put them back.

    Raises TreeError if people and records changed the same lines, and if this version of the tool makes other edits
    than those that the ledger knows by hash.
    """
    patched = _as_patched(session, ledger) if paths else {}
    merged = {}
    for path in paths:
        source = session.tree.read(path)
        known = ledger.files[path]
        original = session.tree.original(known)
        if original is None:
            raise TreeError(
                phrase("{file}: cannot be merged; nothing was written", file=path),
                cause=phrase(
                    "{names} has made the whole file, and it was changed since", names=", ".join(known.records)
                ),
                advice=phrase(
                    "Put the change into that record's content, and the file back with uky-patch revert --force."
                ),
            )
        if source is None or digest_of(patched.get(path, b"")) != known.patched:
            raise TreeError(
                phrase("{file}: cannot be merged; nothing was written", file=path),
                cause=phrase("what the records made of it cannot be made again from its pre-image"),
                advice=_merge_advice(path in replaced),
            )
        contents = (source.content, patched[path], original)
        merged[path] = _merge_file(session.tree.root, path, contents, _merge_advice(path in replaced))
    return merged


def _as_patched(session: Session, ledger: Ledger) -> Mapping[str, bytes]:
    """Every file of the ledger as its records made it."""
    texts: dict[str, str] = {}
    codecs: dict[str, Codec] = {}
    for path, known in ledger.files.items():
        original = session.tree.original(known)
        read = decode(Source(path, original, known.original, 0)) if original is not None else None
        if read is not None and not isinstance(read, Undecodable):
            texts[path], codecs[path] = read
    records = in_order(as_applied(name, entry.source) for name, entry in ledger.records.items())
    workspace = Workspace(texts, session.config.marker, session.config.style)
    earlier = predecessors(records)
    for record in records:
        workspace.replay(record, belongs(ledger.records[record.id].versions.get("verl", "")), earlier[record.id])
    return {path: encode(text, codecs.get(path, Codec()), path) for path, text in workspace.texts.items()}


def _merge_advice(replaced: bool) -> Phrase:
    if replaced:
        return phrase("Put the file of that release or branch there with git or pip, and run uky-patch apply again.")
    return phrase("Put it back with uky-patch revert --force, which keeps a copy, and edit it anew.")


def _merge_file(root: Path, path: str, contents: tuple[bytes, bytes, bytes], advice: Phrase) -> bytes:
    """`contents` are the current, the patched and the original content: the current one with patched -> original."""
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
