"""Whether the ledger and the kept originals of patched files (pre-images) are damaged, stale, or of another verl
release.

Stale means that pip or git has put other files in place since: an upgrade of verl, or a switch of branches. Then an old
original is never put over the new file: `apply` begins anew, or `apply --merge` takes the old edits out first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from patcher.errors import TreeError
from patcher.i18n import Phrase, phrase
from patcher.i18n.codec import decode
from patcher.messages import english
from patcher.packages.environment import verl_tree
from patcher.tree.source import sha256_of
from patcher.worktree.account import Account
from patcher.worktree.layout import FOLDER

if TYPE_CHECKING:
    from patcher.session.session import Session
    from patcher.tree import Ledger
    from patcher.worktree.ledger import PatchedFile

_NAMED = 5
"""Files that are named in a sentence; the others are counted. Set by hand."""
BEGIN_ANEW = "uky-patch apply"
MERGE = "uky-patch apply --merge"
FORGET = "uky-patch revert --force"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Files of the ledger that pip or git has replaced since: their pre-images are of another state of verl."""

    anew: tuple[str, ...] = ()
    """Nothing of the records is in them, or they are gone: they are begun anew."""
    mixed: tuple[str, ...] = ()
    """What the records made is still in them, and can be told apart from the rest: a merge begins them anew."""
    stuck: tuple[str, ...] = ()
    """What the records made is still in them, and cannot be told apart."""
    left: tuple[str, ...] = ()
    """The same, where a forced revert leaves them as they are and forgets them."""
    before: str = ""
    """The verl version that the pre-images are of."""
    now: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.anew, *self.mixed, *self.stuck, *self.left)

    def __bool__(self) -> bool:
        return bool(self.paths)

    def told_apart(self, told: Collection[str], *, forget: bool) -> Replaced:
        """The same, once it is known in which of `mixed` the two can be told apart. `forget`: the others are left."""
        stuck = tuple(path for path in self.mixed if path not in told)
        mixed = tuple(path for path in self.mixed if path in told)
        return replace(self, mixed=mixed, stuck=() if forget else stuck, left=stuck if forget else ())


@dataclass(frozen=True)
class PreImages:
    """Remarks about them. Falsy where all is well."""

    account: Account = field(default_factory=Account)
    replaced: Replaced = field(default_factory=Replaced)

    def __bool__(self) -> bool:
        return bool(self.findings)

    @property
    def stale(self) -> bool:
        """Whether the ledger is to be written though no file changes."""
        return self.account.behind or bool(self.replaced.anew or self.replaced.left)

    @cached_property
    def findings(self) -> tuple[tuple[Phrase, str], ...]:
        """Each with the command that mends it; "" where there is none."""
        return (*_of_account(self.account), *_of_replaced(self.replaced))

    def as_json(self) -> dict[str, Any]:
        """As the key `ledger` of the JSON of `status` and `apply`."""
        account, other = self.account, self.replaced
        return {
            "state": english(account.damage) if account.damage else "behind" if account.restored else "ok",
            "restored": list(account.restored),
            "strays": list(account.strays),
            "unknown": list(account.unknown),
            "missing": list(account.missing),
            "replaced": {
                "begin_anew": list(other.anew),
                "merge": list(other.mixed),
                "stuck": list(other.stuck),
                "from": other.before,
                "to": other.now,
            },
            "problems": [{"text": str(text), "fix": fix} for text, fix in self.findings],
        }


def find_replaced(session: Session, ledger: Ledger) -> Replaced:
    """Hold the ledger's versions, and the files that are neither patched nor original, against what is there now.

    Raises TreeError where a file cannot be read.
    """
    there = {path: session.tree.read(path) for path in ledger.files}
    odd = {
        path: source
        for path, source in there.items()
        if sha256_of(source) not in (ledger.files[path].patched, ledger.files[path].original)
    }
    if not odd:
        return Replaced()
    # A file that is neither patched nor original was edited by hand, or is of another release or commit. Git and pip
    # tell which: what they have delivered is no edit.
    from patcher.git.delivered import delivered, gone_on  # Not for `status` from its note.

    now = release_of(session)
    releases = {path: _release(ledger.files[path], ledger) for path in odd}
    other = {path for path, release in releases.items() if now and release and release != now}
    committed = session.given_delivered
    if committed is None:
        committed = delivered(session.tree.root, {path: source for path, source in odd.items() if path not in other})
        rest = [path for path in odd if path not in other and path not in committed]
        committed |= gone_on(session.tree.root, _before(session, ledger, rest))
    anew: list[str] = []
    mixed: list[str] = []
    for path in (path for path in odd if path in other or path in committed):
        source = odd[path]
        ours = source is not None and has_marks(session, source.content, ledger.files[path])
        (mixed if ours else anew).append(path)
    known = sorted({releases[path] for path in (*anew, *mixed)} - {""})
    return Replaced(tuple(anew), tuple(mixed), before=", ".join(known), now=now)


def _before(session: Session, ledger: Ledger, paths: Collection[str]) -> dict[str, tuple[bytes, Collection[str]]]:
    """What files were before their records, as far as that is kept, and the digests of that and of what they became."""
    found: dict[str, tuple[bytes, Collection[str]]] = {}
    for path in paths:
        entry = ledger.files[path]
        with suppress(TreeError):
            if (before := session.tree.original(entry)) is not None:
                found[path] = before, (entry.original, entry.patched)
    return found


def release_of(session: Session) -> str:
    """The verl version that the tree itself states, whatever is assumed; "" where it states none."""
    found, _ = verl_tree(session.tree.root)
    return found.version if found is not None else ""


def _release(file: PatchedFile, ledger: Ledger) -> str:
    """Of a ledger that does not say it: the version that its oldest record in the file was applied for."""
    records = [ledger.records[name] for name in file.records if name in ledger.records]
    oldest = min(records, key=lambda record: record.at, default=None)
    return file.release or (oldest.versions.get("verl", "") if oldest is not None else "")


def has_marks(session: Session, content: bytes, file: PatchedFile) -> bool:
    """Whether lines are marked for records that are in the file."""
    from patcher.rewrite import markers  # The rewriting engine: seldom needed here.

    found = markers(content.decode("utf-8", "replace"), session.config.marker)
    return any(marker.record in file.records for marker in found)


def _of_account(account: Account) -> Iterator[tuple[Phrase, str]]:
    ledger, originals = f"{FOLDER}/ledger.json", f"{FOLDER}/originals"
    if account.behind:
        text = phrase(
            "{path} is {damage}: {count} patched "
            "{count:file|files} {count:is known from its pre-image|are known from their pre-images} ({files}); "
            "uky-patch apply writes it anew, uky-patch revert puts the files back",
            path=ledger,
            damage=decode(account.damage) if account.damage else phrase("behind"),
            count=len(account.restored),
            files=_named(account.restored),
        )
        yield text, BEGIN_ANEW
    if account.missing:
        text = phrase(
            "{files}: no pre-image in {folder}, so a revert is not possible; restore that folder from a copy, "
            "or take the files back with git or pip",
            files=_named(account.missing),
            folder=originals,
        )
        yield text, ""
    if account.strays:
        text = phrase(
            "{files}: a pre-image is in {folder} that the ledger does not name, and the file is another; "
            "it stays there, compare the two",
            files=_named(account.strays),
            folder=originals,
        )
        yield text, ""
    if account.unknown:
        text = phrase(
            "{count} {count:pre-image|pre-images} in {folder} "
            "{count:is of a file that nothing names and stays|are of files that nothing names and stay} there",
            count=len(account.unknown),
            folder=originals,
        )
        yield text, ""


def _of_replaced(found: Replaced) -> Iterator[tuple[Phrase, str]]:
    then = phrase("verl {version}", version=found.before) if found.before != found.now else phrase("another commit")
    if found.anew:
        text = phrase(
            "{files}: replaced by verl {now} since, and the pre-images are of {before}; "
            "uky-patch apply begins anew on them and keeps the old pre-images in {kept}",
            files=_named(found.anew),
            now=found.now,
            before=then,
            kept=".uky-patch-kept",
        )
        yield text, BEGIN_ANEW
    if found.mixed:
        text = phrase(
            "{files}: of verl {now} since, with what the records made of {before} still in them; "
            "uky-patch apply --merge takes that out and begins anew",
            files=_named(found.mixed),
            now=found.now,
            before=then,
        )
        yield text, MERGE
    if found.stuck:
        text = phrase(
            "{files}: of verl {now} since, with what the records made of {before} still in them, and lines of that "
            "changed; uky-patch revert --force leaves the files as they are and forgets that records made it",
            files=_named(found.stuck),
            now=found.now,
            before=then,
        )
        yield text, FORGET


def _named(paths: tuple[str, ...]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" (+{more})" if more > 0 else "")
