"""A transaction on a tree: one run makes all of its changes, or none.

It checks every file, writes the new files and pre-images to `.uky-patch/staged`, writes the journal, and then has
`patcher.worktree.journal` put everything in place. A run that dies before the journal is there has changed nothing; one
that dies later is finished or taken back by the next run.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from patcher.messages import Message, Refusal, message_of, phrase
from patcher.worktree import disk, journal, tree_lock
from patcher.worktree.account import Account, account
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.journal import ChangedMeanwhileError, Journal, Recovery, Step
from patcher.worktree.layout import LEDGER
from patcher.worktree.ledger import NOTE, Ledger, dump, dump_note, folders_above, folders_of_made, with_folders
from patcher.worktree.os_errors import cause_and_advice, refused
from patcher.worktree.path_guard import resolve
from patcher.worktree.storage import Storage

_MARGIN = 1 << 20
"""Bytes that must stay free beside what is written, for folders and the journal. A guess: both have a few kB."""


class Change(NamedTuple):
    """A new content for one file."""

    path: str
    """Below the tree's root, with forward slashes."""
    expect_sha: str
    """The SHA-256 that the file must have now; ABSENT if it must not exist."""
    content: bytes | None
    """None: the file is removed."""

    @property
    def sha256(self) -> str:
        """The digest of the new content; ABSENT where the file is removed."""
        return ABSENT if self.content is None else digest_of(self.content)


@dataclass(frozen=True)
class _Target:
    change: Change
    place: Path
    there: tuple[bytes, os.stat_result] | None
    """The file's bytes and status now; None if there is none."""
    missing: tuple[str, ...] = ()
    """The folders to make for it, outermost first, as paths below the root."""


@dataclass
class Transaction:
    """The tree while this run alone may write to it; see `transaction`."""

    storage: Storage
    purpose: str
    account: Account
    recovered: Recovery | None = None
    """The interrupted run that was finished or taken back before this transaction began."""

    @property
    def ledger(self) -> Ledger:
        return self.account.ledger

    def commit(
        self, changes: Sequence[Change], ledger: Ledger, *, originals: Mapping[str, bytes] | None = None
    ) -> tuple[str, ...]:
        """Make all changes and write `ledger`, or change nothing.

        An empty ledger means that no file is patched any more: `.uky-patch` is then removed at the end of the
        transaction. Entries of `ledger` for new files get the folders that are made for them. `originals` has, by
        digest, pre-images that are in no file of the tree. Returns the paths of the files written.

        Raises:
            Refusal: a file has not the digest `expect_sha`, or something cannot be written.
            ValueError: a bug of the caller: `ledger` gives a file another digest than its new content has.
        """
        storage = self.storage
        targets = [_check(storage, change) for change in changes]
        _refuse_same_file(targets)
        _require_matching_ledger(targets, ledger)
        work = [target for target in targets if target.change.sha256 != target.change.expect_sha]
        ledger = _with_folders(storage, ledger, self.ledger, work)
        before = None if self.account.damage is not None else storage.ledger_content()
        after = dump(ledger) if ledger else None
        if not work and before == after and not self.account.behind:
            return ()
        try:
            storage.make()
            if self.account.damage is not None:
                storage.set_ledger_aside()
            pre_images = _pre_images(storage, targets, ledger, originals or {})
            plan = self._stage(work, pre_images, _notes(storage, ledger, self.ledger), (before, after))
            plan = replace(plan, dropped=_dropped(self.ledger, ledger), folders=_folders(self.ledger, ledger, work))
            journal.write(storage, plan)
            journal.carry_out(storage, plan, "new", strict=True)
        except BaseException as error:
            self._take_back(error)
            if isinstance(error, OSError):
                raise refused(error, phrase("{path}: nothing was changed", path=storage.root)) from error
            if isinstance(error, ChangedMeanwhileError):
                raise _changed(error.path) from None
            raise
        self.account = Account(ledger)
        return tuple(target.change.path for target in work)

    def _stage(
        self,
        work: list[_Target],
        pre_images: Mapping[str, _Origin],
        notes: Mapping[str, bytes],
        ledgers: tuple[bytes | None, bytes | None],
    ) -> Journal:
        """Write everything that is new to `staged`, and return the journal for it. No file of the tree changes.

        `ledgers`: the bytes of the ledger before and after; None if there is none.
        """
        storage, fresh = self.storage, []
        before, after = ledgers
        named = {**notes, "ledger.old": before, "ledger.new": after}
        made: dict[str, _Origin] = {name: (content, None) for name, content in named.items() if content is not None}
        made.update(pre_images)
        contents = [*(target.change.content or b"" for target in work), *(content for content, _ in made.values())]
        _require_space(storage, sum(map(len, contents)))
        for number, target in enumerate(work):
            if target.change.content is not None:
                new = storage.staged / f"{number}.new"
                disk.create(new, target.change.content, like=target.there[1] if target.there is not None else None)
                if target.there is not None:
                    disk.copy_attributes(target.place, new)
                fresh.append(new)
            if target.there is not None:
                disk.link(target.place, storage.staged / f"{number}.old")
        for name, (content, like) in made.items():
            disk.create(storage.staged / name, content, like=like)
            fresh.append(storage.staged / name)
        for path in fresh:
            disk.sync(path)
        disk.sync(storage.root)
        return Journal(
            self.purpose,
            tuple(Step(target.change.path, target.change.expect_sha, target.change.sha256) for target in work),
            None if before is None else digest_of(before),
            None if after is None else digest_of(after),
            (*notes, *pre_images),
            tuple(_fresh(storage, pre_images, notes)),
        )

    def _take_back(self, error: BaseException) -> None:
        """Restore the old files after `error`, if the journal was written already."""
        plan = journal.read(self.storage)
        if plan is None:
            return
        try:
            untouched = error.path if isinstance(error, ChangedMeanwhileError) else None
            journal.carry_out(self.storage, plan, "old", strict=False, untouched=untouched)
        except OSError as second:
            why, _ = cause_and_advice(second)
            raise Refusal(
                "unfinished",
                phrase("{path}: stopped half-way", path=self.storage.root),
                phrase("{why}; before that: {error}", why=why, error=message_of(error)),
                phrase("No file is damaged. Remove the cause; the next command finishes this run or takes it back."),
            ) from error


@contextlib.contextmanager
def transaction(storage: Storage, purpose: str, *, wait: float, on_wait: tree_lock.OnWait) -> Iterator[Transaction]:
    """Take the writer's lock, and finish or take back what an interrupted run has left.

    Raises:
        Refusal: another run holds the lock for longer than `wait` seconds; the tree cannot be written to; the ledger
            or the journal of an interrupted run cannot be understood.
    """
    held = tree_lock.exclusive(storage, purpose, wait=wait, on_wait=on_wait)
    try:
        recovered = journal.recover(storage)
        found = account(storage)
        try:
            yield Transaction(storage, purpose, found, recovered)
        except BaseException:
            with contextlib.suppress(Refusal, OSError):
                storage.tidy()
            raise
        try:
            storage.tidy()
        except OSError as error:
            title = phrase("{path}: all is done, but this folder cannot be tidied up", path=storage.folder)
            raise refused(error, title) from error
    finally:
        held.release()


def commit(
    root: str,
    purpose: str,
    changes: Sequence[Change],
    ledger: Ledger,
    *,
    expect_ledger: str | None,
    originals: Mapping[str, bytes] | None = None,
    wait: float = 0.0,
) -> tuple[str, ...]:
    """Make changes that were planned elsewhere, for example on the machine that asks a Ray node: all, or none.

    `expect_ledger`: the SHA-256 of the ledger that the plan is based on (`digest_of(dump(ledger))`); None if nothing
    was patched. `originals` has, by digest, pre-images that are in no file of the tree. `wait`: for how many seconds
    the tree's lock is waited for. Returns the paths of the files written; none if all are as planned already.

    Raises:
        Refusal: of kind `changed`: a file or the ledger is no longer what the plan is based on. Any other kind: the
            tree cannot be locked or written. Nothing has changed, unless the kind is `unfinished`: the next run ends
            that.
    """
    tree = Storage(Path(os.path.realpath(root)))
    with transaction(tree, purpose, wait=wait, on_wait=lambda _: None) as under_way:
        found = under_way.ledger
        if (digest_of(dump(found)) if found else None) != expect_ledger:
            raise _changed(LEDGER)
        return under_way.commit(changes, ledger, originals=originals)


def _notes(storage: Storage, after: Ledger, before: Ledger) -> dict[str, bytes]:
    """The notes to write, by their file names: those that are not on the disk in this form."""
    found = {}
    for sha256 in {file.original for file in after.files.values()}:
        note = dump_note(sha256, after, before)
        if storage.note_content(sha256) != note:
            found[sha256 + NOTE] = note
    return found


def _fresh(storage: Storage, pre_images: Iterable[str], notes: Iterable[str]) -> Iterator[str]:
    """The digests whose pre-image is new in `originals`; ABSENT, which has a note alone, if its note is."""
    for sha256 in pre_images:
        if disk.status(storage.originals / sha256) is None:
            yield sha256
    if ABSENT + NOTE in notes and disk.status(storage.originals / (ABSENT + NOTE)) is None:
        yield ABSENT


def _with_folders(storage: Storage, after: Ledger, before: Ledger, work: Iterable[_Target]) -> Ledger:
    """The ledger `after`, in which each file that a record has made names the folders that were made for it.

    `verl/flags/log.py` made `verl/flags`; a later `verl/flags/trace.py` names it too, so that the folder goes with the
    last of them. A file that was made by hand, and that a record takes over, names the folders with nothing else in.
    """
    made = {folder for file in before.files.values() for folder in file.folders}
    made.update(folder for target in work for folder in target.missing)
    taken_over = {path for path, file in after.files.items() if file.original == ABSENT and path not in before.files}
    if taken_over - {target.change.path for target in work if target.there is None}:
        tops = {path.split("/")[0] for path in taken_over if "/" in path}
        found = (path for top in tops for path in disk.files_below(str(storage.root), top))
        there = {path for path in found if "__pycache__/" not in path}
        made.update(folders_of_made(after, there))
    return with_folders(after, made)


def _folders(before: Ledger, after: Ledger, work: Iterable[_Target]) -> tuple[str, ...]:
    """The folders that this change makes, and those that were made for the files that it removes."""
    gone = (file for path, file in before.files.items() if path not in after.files)
    found = {folder for file in gone for folder in file.folders}
    return tuple(sorted(found.union(*(target.missing for target in work))))


def _dropped(before: Ledger, after: Ledger) -> tuple[str, ...]:
    """The digests of the pre-images that no file needs any more."""
    needed = {file.original for file in after.files.values()}
    return tuple({file.original: None for file in before.files.values() if file.original not in needed})


def _check(storage: Storage, change: Change) -> _Target:
    """The file to change, as it is now. Raises Refusal if it is not as expected, or may not be written."""
    place = resolve(storage.root, change.path)
    if change.expect_sha == ABSENT:
        return _check_absent(storage, change, place)
    try:
        content, found = disk.read(place)
    except OSError as error:
        title = phrase("{path}: cannot be read, so nothing was changed", path=change.path)
        raise refused(error, title) from error
    if digest_of(content) != change.expect_sha:
        raise _changed(change.path)
    if not disk.may_write(place.parent):
        cause = phrase("this user may not write to the folder {folder}", folder=place.parent)
        raise _not_allowed(change.path, cause)
    if found.st_uid != os.geteuid() and not disk.may_write(place):
        cause = phrase("it belongs to user {owner}, and this is user {user}", owner=found.st_uid, user=os.geteuid())
        raise _not_allowed(change.path, cause)
    return _Target(change, place, (content, found))


def _check_absent(storage: Storage, change: Change, place: Path) -> _Target:
    if disk.status(place) is not None:
        raise _changed(change.path)
    missing = [folder for folder in folders_above(change.path) if disk.status(resolve(storage.root, folder)) is None]
    folder = place.parent
    while (found := disk.status(folder)) is None:
        folder = folder.parent
    if not stat.S_ISDIR(found.st_mode):
        title = phrase("{path}: cannot be made, so nothing was changed", path=change.path)
        advice = phrase("Move it away, or correct the path in the record.")
        raise Refusal("path", title, phrase("{folder} is no folder", folder=folder), advice)
    if not disk.may_write(folder):
        raise _not_allowed(change.path, phrase("this user may not write to the folder {folder}", folder=folder))
    return _Target(change, place, None, tuple(missing))


def _refuse_same_file(targets: list[_Target]) -> None:
    seen: dict[Path, str] = {}
    for target in targets:
        if target.place in seen:
            raise Refusal(
                "path",
                phrase("{path}: named twice in one change, so nothing was changed", path=target.change.path),
                phrase("{path} is the same file", path=seen[target.place]),
                phrase("Name the file by one path in all records."),
            )
        seen[target.place] = target.change.path


def _require_matching_ledger(targets: list[_Target], ledger: Ledger) -> None:
    for target in targets:
        entry = ledger.files.get(target.change.path)
        if entry is not None and entry.patched != target.change.sha256:
            raise ValueError(f"the ledger gives {target.change.path} another digest than its new content has")


_Origin = Tuple[bytes, Optional[os.stat_result]]
"""A pre-image's bytes, and the status of the file whose mode and owner it gets."""


def _pre_images(
    storage: Storage, targets: list[_Target], ledger: Ledger, given: Mapping[str, bytes]
) -> dict[str, _Origin]:
    """The pre-images to write, by digest: those that `ledger` needs and `originals` lacks.

    Their bytes are those of a target before the change, or `given`. Raises Refusal for one that is nowhere.
    """
    at_hand: dict[str, _Origin] = {
        target.change.expect_sha: target.there for target in targets if target.there is not None
    }
    for sha256, content in given.items():
        at_hand.setdefault(sha256, (content, None))
    missing = {}
    for file in ledger.files.values():
        if file.original == ABSENT:
            continue
        if file.original in at_hand and not storage.has_original(file.original):
            missing[file.original] = at_hand[file.original]
        elif file.original not in at_hand:
            storage.pre_image(file.original)
    return missing


def _require_space(storage: Storage, needed: int) -> None:
    free = disk.free_bytes(storage.folder)
    if free is not None and free < needed + _MARGIN:
        raise Refusal(
            "disk-full",
            phrase("{path}: nothing was changed", path=storage.root),
            phrase(
                "the disk is full: {free} KiB are free, {needed} KiB are needed",
                free=free // 1024,
                needed=(needed + _MARGIN) // 1024,
            ),
            phrase("Free some space and run the command again."),
        )


def _changed(path: str) -> Refusal:
    return Refusal(
        "changed",
        phrase("{path}: changed meanwhile, so nothing was changed", path=path),
        phrase("its content is no longer what this run was planned on"),
        phrase("Run the command again."),
    )


def _not_allowed(path: str, cause: Message) -> Refusal:
    title = phrase("{path}: cannot be replaced, so nothing was changed", path=path)
    advice = phrase("Run as its owner, or change the rights of the file and its folder.")
    return Refusal("permission", title, cause, advice)
