"""What a fork's edits are measured against: a commit of its own, or the verl that it was made from."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import UsageError, message_of
from patcher.git.checkout import Checkout, checkout
from patcher.git.history import EXECUTABLE, Differing, changed_files, commit_of, contents, upstream_commit
from patcher.i18n import Phrase, phrase
from patcher.packages.releases import versions, wheel
from patcher.packages.releases.fetch import nearest_versions
from patcher.patching import change_record
from patcher.records.model import Record
from patcher.records.parse import parse
from patcher.session.pre_images import has_marks, release_of
from patcher.session.taking_over import taken_over, without_reverted
from patcher.terminal.progress import progress
from patcher.worktree import files, verl_tree
from patcher.worktree.hashing import ABSENT, digest_of

if TYPE_CHECKING:
    from patcher.session.session import Session
    from patcher.worktree.ledger import Ledger

UPSTREAM = "upstream"
LINK = phrase("it is a link, or was one: copy it along with the records")
"""Why a link is in no record: a record of what it leads to would be about that file once more."""
_ADD_REMOTE = phrase(
    "verl's own history is not in this checkout, so that this release is a guess, and what verl has changed since "
    "counts as the fork's; better: git remote add upstream https://github.com/volcengine/verl && git fetch upstream"
)
_CANDIDATES = 4
"""Releases of verl that are compared with a tree whose base nothing tells."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of verl itself, on a tree of an older verl."""

    commit: str
    address: str = ""
    """The pull request."""
    since: str = ""
    """The first release that has it; "" where none is known to."""
    is_newer: bool = True
    """Whether the tree is of an older release."""


@dataclass(frozen=True, slots=True)
class Base:
    """The files that differ, as they were and as they are; None for one that is not there."""

    name: Phrase
    """What they are compared with: `HEAD (869d31b)`, `verl 0.7.0`."""
    verl: str
    """The verl version of the base; "" where it states none."""
    before: Mapping[str, bytes | None]
    after: Mapping[str, bytes | None]
    subject: str = ""
    """What the author said of it, where it is one commit."""
    fix: Fix | None = None
    """Of a change that is carried here from verl: where it is from."""
    unreadable: Mapping[str, Phrase] = field(default_factory=dict)
    """Why files cannot be read: a symlink that leads out of the tree, a folder in the place of a file."""
    rights: Mapping[str, str] = field(default_factory=dict)
    """Files that may be executed as they are and not as they were, `+x`, or the other way round, `-x`."""
    of_release: bool = False
    """Whether it is a release. It does not pack all of verl's files: one that it lacks need not be the fork's own."""
    advice: Phrase | None = None
    """How to come by a better base, where this one is a guess."""


def find_base(session: Session, named: str, *, new: bool = False) -> Base:
    """`named`: a commit, a range `A..B`, `verl==VERSION`, or `upstream`, which is found.

    `new`: the fork's own new files count whatever they are called; else only code, scripts and settings do.

    Raises:
        UsageError: there is no such commit or release, or no checkout to find it in.
        ReleaseError: the release cannot be had.
        TreeError: a file cannot be read, or git refuses.
    """
    place = checkout(session.tree.root)
    if named.startswith("verl=="):
        return _of_release(session, named.removeprefix("verl=="), new=new)
    if named == UPSTREAM:
        found = upstream_commit(place) if place is not None else None
        if place is None or found is None:
            release = _of_release(session, closest_release(session), new=new)
            return release if place is None else replace(release, advice=_ADD_REMOTE)
        name = phrase("{name} ({commit})", name=found[1], commit=found[0][:9])
        return _of_commit(session, place, found[0], name, new=new)
    if place is None:
        raise UsageError(
            phrase("{root} is no git checkout, so that it has no commit to compare with", root=session.tree.root),
            advice=phrase("Compare it with a release: --from verl==VERSION, or --from upstream."),
        )
    first, separator, last = named.partition("..")
    if separator:
        return _of_range(session, place, first, last.removeprefix(".") or "HEAD", new=new)
    commit = commit_of(place, named)
    return _of_commit(session, place, commit, phrase("{name} ({commit})", name=named, commit=commit[:9]), new=new)


def _of_commit(session: Session, place: Checkout, commit: str, name: Phrase, *, new: bool) -> Base:
    paths = _wanted(changed_files(place, commit), session, new=new)
    before = contents(place, commit, (path for path, one in paths.items() if one.status != "A"))
    committed = _records_in(session, place, commit)
    found = _without_records(session, name, {path: before.get(path) for path in paths}, _links(paths), committed)
    return replace(found, rights=_rights(paths))


def _records_in(session: Session, place: Checkout, commit: str) -> list[Record]:
    """The fork's own records as a commit has them: what they made of its files is no edit of a hand."""
    folders = [folder.relative_to(session.tree.root).as_posix() for folder in session.config.patches]
    names = {*session.tree.ledger().records, *(record.id for record in session.records)}
    texts = contents(place, commit, (f"{folder}/{name}.toml" for folder in folders for name in names))
    read = [parse(text.decode("utf-8", "replace"), Path(path)) for path, text in texts.items()]
    return [record for record in read if isinstance(record, Record)]


def _of_range(session: Session, place: Checkout, first: str, last: str, *, new: bool) -> Base:
    since, until = commit_of(place, first), commit_of(place, last)
    paths = _wanted(changed_files(place, since, until), session, new=new)
    links = _links(paths)
    read = [path for path in paths if path not in links]
    before, after = contents(place, since, read), contents(place, until, read)
    log = place.git.run("log", "--format=%s", "--no-show-signature", f"{since}..{until}").decode("utf-8", "replace")
    subjects = log.splitlines()
    return Base(
        phrase("{name} ({commit})", name=first, commit=since[:9]),
        release_of(session),
        {path: before.get(path) for path in read},
        {path: after.get(path) for path in read},
        subjects[0] if len(subjects) == 1 else "",
        unreadable=dict.fromkeys(links, LINK),
        rights=_rights(paths),
    )


def _of_release(session: Session, version: str, *, new: bool) -> Base:
    """Against a release of verl: the package alone is in it, and nothing that lies beside it."""
    folder = wheel("verl", version, progress=progress)
    root = session.tree.root
    before: dict[str, bytes | None] = {}
    for path in sorted({*package_files(root), *package_files(folder)}):
        there = _content(folder, path)
        if not _is_wanted(path, session, any_name=new and there is None):
            continue
        with suppress(OSError, ValueError):  # Then the file is told as one that cannot be read.
            if _content(root, path) == there:
                continue
        before[path] = there
    found = _without_records(session, phrase("verl {version}", version=version), before, verl=version)
    return replace(found, of_release=True)


def closest_release(session: Session) -> str:
    """The release that has the most files just as the tree has them."""
    stated = release_of(session)
    known = versions("verl")
    if not known:
        raise UsageError(
            phrase("it is not known which verl this fork was made from"),
            advice=phrase("Name it: --from verl==VERSION, or --from COMMIT."),
        )
    root = session.tree.root
    alike: dict[str, int] = {}
    for version in dict.fromkeys(
        [*(one for one in known if one == stated), *nearest_versions(stated or known[-1], known)]
    ):
        if len(alike) == _CANDIDATES:
            break
        folder = wheel("verl", version, progress=progress)
        alike[version] = sum(_same(folder, root, path) for path in package_files(folder))
    return max(alike, key=lambda version: alike[version])


def _links(paths: Mapping[str, Differing]) -> set[str]:
    return {path for path, one in paths.items() if one.is_link and one.status != "D"}


def _rights(paths: Mapping[str, Differing]) -> dict[str, str]:
    """Which files may be executed on one side alone."""
    return {
        path: "+x" if one.after == EXECUTABLE else "-x"
        for path, one in paths.items()
        if one.status in ("A", "M") and (one.before == EXECUTABLE) != (one.after == EXECUTABLE)
    }


def _without_records(
    session: Session,
    name: Phrase,
    before: Mapping[str, bytes | None],
    links: Collection[str] = (),
    committed: Sequence[Record] = (),
    *,
    verl: str = "",
) -> Base:
    """Both sides without what uky-patch has made: that is recorded already. `committed`: the base's own records."""
    ledger = session.tree.ledger()
    after: dict[str, bytes | None] = {}
    kept: dict[str, bytes | None] = {}
    unreadable: dict[str, Phrase] = {}
    for path, content in before.items():
        place = session.tree.root / path
        try:
            if path in links or place.is_symlink():
                files.inside(session.tree.root, place)
                unreadable[path] = LINK
                continue
            found = content_without_records(session, ledger, path)
        except ChangedLinesError as error:
            unreadable[path] = error.why
            continue
        except (OSError, ValueError) as error:
            unreadable[path] = phrase("it cannot be read: {why}", why=message_of(error))
            continue
        # The base may be a commit that has the records' edits in it: they are taken out of it as well.
        known = ledger.files.get(path)
        if known is not None and found is not None and content is not None:
            try:
                content = _without(session, ledger, path, content, committed)
            except ChangedLinesError:
                if session.config.style == "comment":
                    text = "{base} has other lines of its records ({names}): compare it with --from upstream"
                    unreadable[path] = phrase(text, base=name, names=", ".join(known.records))
                    continue
                # Without comments nothing tells whether the records made any of it: it is compared as it is.
        elif found is not None and content is not None:
            content = without_reverted(session, committed, path, content, found)
        if found != content:
            kept[path], after[path] = content, found
    return Base(name, verl or release_of(session), kept, after, unreadable=unreadable)


def content_without_records(session: Session, ledger: Ledger, path: str) -> bytes | None:
    """A file as it would be had uky-patch made nothing in it; None where there is none.

    Raises OSError, ValueError for a path that leads out of the tree, and ChangedLinesError.
    """
    found = _content(session.tree.root, path)
    return found if found is None or path not in ledger.files else _without(session, ledger, path, found)


def without_records(session: Session, path: str, content: bytes) -> bytes | None:
    """What a commit has of a file, without what the ledger's records made; None where the two cannot be told apart."""
    ledger = session.tree.ledger()
    with suppress(ChangedLinesError):
        return _without(session, ledger, path, content) if path in ledger.files else None
    return None


class ChangedLinesError(ValueError):
    """In a patched file lines that records made were changed, so that what a hand did there cannot be told apart."""

    def __init__(self, why: Phrase) -> None:
        super().__init__(why)
        self.why = why


def _without(
    session: Session, ledger: Ledger, path: str, content: bytes, committed: Sequence[Record] = ()
) -> bytes | None:
    """A patched file's content without what the records made. Raises ChangedLinesError."""
    known = ledger.files[path]
    sha = digest_of(content)
    if sha in (known.original, known.patched):
        return content if sha == known.original else session.tree.original(known)
    found = taken_over(session, ledger, {path: content}, replaced=(path,), committed=committed).get(path)
    if found is not None:
        return found.base
    if known.original == ABSENT:
        text = "the record {id} has made it, and it was changed since: put the change into that record"
        raise ChangedLinesError(phrase(text, id=", ".join(known.records)))
    if session.config.style == "comment" and not has_marks(session, content, known):
        return content  # Another release, or another commit.
    text = (
        "lines that records made in it were changed ({names}): put the change into the record, "
        "then uky-patch apply --merge"
    )
    raise ChangedLinesError(phrase(text, names=", ".join(known.records)))


def _wanted(paths: Mapping[str, Differing], session: Session, *, new: bool) -> dict[str, Differing]:
    """The files that are compared, of those that differ."""
    return {path: one for path, one in paths.items() if _is_wanted(path, session, any_name=new and one.status == "A")}


def _is_wanted(path: str, session: Session, *, any_name: bool) -> bool:
    """Whether a path is one of code, a script or settings, and none of the tool's own, such as a record.

    `any_name`: what the file is called does not count.
    """
    own = [folder.relative_to(session.tree.root).as_posix() for folder in session.config.patches]
    if any_name and path in change_record.NAMES:
        return False
    if path.startswith((".uky-patch", "uky-patch.toml", *(f"{folder}/" for folder in own))):
        return False
    return any_name or path.endswith(verl_tree.TEXT)


def package_files(root: Path) -> Iterable[str]:
    """The files of the package in a folder."""
    for folder, folders, names in os.walk(root / verl_tree.PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        below = Path(folder).relative_to(root).as_posix()
        yield from sorted(f"{below}/{name}" for name in names)


def _content(root: Path, path: str) -> bytes | None:
    """A file's bytes; None where there is none. Raises OSError, or ValueError for a path that leads out of the tree."""
    try:
        return files.read(files.inside(root, root / path), verl_tree.MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _same(one: Path, two: Path, path: str) -> bool:
    with suppress(OSError, ValueError):
        return _content(one, path) == _content(two, path)
    return False
