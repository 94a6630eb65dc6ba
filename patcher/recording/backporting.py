"""A fix of verl itself on this older tree: its changes carried here, and then recorded as edits of a hand would be.

```
commit and its parent ─┐
                       ├─▶ each change: merged, or made by symbol ─▶ this tree with the fix ─▶ records, proven
this tree's files     ─┘         └▶ told, where it finds no place
```
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from patcher.errors import ReleaseError, TreeError, UsageError, message_of
from patcher.git.checkout import Checkout, checkout
from patcher.git.history import changed_files, commit_of, contents
from patcher.i18n import Phrase, Phrases, phrase
from patcher.recording.base import Base, Fix, content_without_records
from patcher.recording.porting import Ported, bound, missing, port
from patcher.recording.proposal import Left, Proposal
from patcher.recording.recording import propose
from patcher.rewrite.marker import split
from patcher.session.pre_images import release_of
from patcher.tree.source import Source, Undecodable, decode
from patcher.worktree import verl_tree

if TYPE_CHECKING:
    from patcher.session.session import Session

_NOT_RUN = ("tests/", "docs/", "docker/", ".github/", "scripts/ci/")
"""What training does not read."""
_NUMBER = re.compile(r"\s*\(#(\d+)\)\s*$")


@dataclass(frozen=True, slots=True)
class Backport:
    """What became of each change of the commit, by upstream's file, and the records of those that were carried here."""

    proposal: Proposal
    ported: tuple[tuple[str, Ported], ...]
    skipped: tuple[str, ...]
    """Files that no training reads: tests, documents."""
    unjudged: Phrase | Phrases | str | None = None
    """Why check could not be asked about the vLLM that the tree runs on."""

    def count(self, fate: str) -> int:
        """How many changes came to that."""
        return sum(one.fate == fate for _, one in self.ported)


def backport(session: Session, named: Sequence[str], clone: Path | None, against: Collection[str]) -> Backport:
    """`named`: commits of `clone`, in whatever order, or ranges `A..B`, each as one.

    By default `clone` is the tree's own checkout, and `against` the vLLM that the tree runs on, if it can be had.

    Raises:
        UsageError: there is no checkout, or no such commit in it.
        TreeError: git refuses, or a file cannot be read.
        ReleaseError: the sources of a release in `against` cannot be had.
    """
    place = checkout(clone or session.tree.root)
    if place is None:
        raise UsageError(
            phrase("{root} is no git checkout", root=clone or session.tree.root),
            advice=phrase("Name a clone of verl with --upstream."),
        )
    tree = _TreeTexts(session)
    verl = release_of(session)
    steps = sorted((_Step(place, *_ends(place, name), verl) for name in named), key=lambda step: step.depth)
    texts: dict[str, str] = {}
    for step in steps:
        if not step.fix.is_newer or _is_in_history(session, step.until):
            step.ported = step.all_there()
            continue
        # A name that it brings to another module counts as there at first, and then only if it was brought here.
        hoped, _ = step.carried(tree, texts, step.texts_after)
        texts, step.ported = step.carried(tree, texts, texts | hoped)
    last = steps[-1]
    base = Base(
        phrase("{commit}", commit=last.until[:9]),
        verl,
        {path: None if (text := tree.text(path)) is None else text.encode() for path in texts},
        {path: text.encode() for path, text in texts.items()},
        last.subject,
        last.fix,
    )
    vllm = session.versions.get("vllm")
    unjudged: Phrase | Phrases | str | None = None
    try:
        asked = against or ((f"vllm=={vllm}",) if vllm is not None else ())
        proposal = propose(session, base, against=asked, new=True)
    except ReleaseError as error:
        if against:
            raise
        unjudged = message_of(error)
        proposal = propose(session, base, new=True)
    left = [one for step in steps for one in step.left(tree)]
    return Backport(
        replace(proposal, left=(*left, *proposal.left)),
        tuple((path, one) for step in steps for path, changes in step.ported.items() for one in changes),
        tuple(path for step in steps for path in step.skipped),
        unjudged,
    )


def _ends(place: Checkout, named: str) -> tuple[str, str]:
    """The commits before and after: of one commit its first parent and itself."""
    first, separator, last = named.partition("..")
    if separator:
        return commit_of(place, first), commit_of(place, last.removeprefix(".") or "HEAD")
    until = commit_of(place, named)
    return commit_of(place, f"{until}^"), until


def _is_in_history(session: Session, commit: str) -> bool:
    """Whether the tree's own branch has the commit."""
    mine = checkout(session.tree.root)
    if mine is None:
        return False
    try:
        mine.git.run("merge-base", "--is-ancestor", commit, "HEAD")
    except TreeError:  # It is not, or this checkout has never heard of it.
        return False
    return True


class _Step:
    """One commit or range of upstream's: the files that it changes, and what became of each change here."""

    def __init__(self, place: Checkout, since: str, until: str, verl: str) -> None:
        self.place, self.since, self.until = place, since, until
        self.fix = _fix(place, until, verl)
        changed = changed_files(place, since, until)
        self._wanted = {path: one.status for path, one in changed.items() if _is_read(path)}
        before, after = (_texts(contents(place, commit, self._wanted)) for commit in (since, until))
        self.both = {path: (before[path], after[path]) for path in self._wanted if path in before and path in after}
        self._after = after
        self.skipped = [path for path in changed if path not in self._wanted]
        self.ported: dict[str, tuple[Ported, ...]] = {}
        log = place.git.run("log", "--format=%s", "--reverse", "--no-show-signature", f"{since}..{until}")
        subjects = log.decode("utf-8", "replace").splitlines()
        self.depth = int(place.git.run("rev-list", "--count", until))
        """How many commits it has below it: fewer than any that builds on it."""
        self.subject = _NUMBER.sub("", subjects[0]) if subjects else ""

    @property
    def texts_after(self) -> Mapping[str, str]:
        """Upstream's texts of the files that it changes or adds."""
        return {path: text for path, text in self._after.items() if path in self.both or self._wanted[path] == "A"}

    def all_there(self) -> dict[str, tuple[Ported, ...]]:
        """Of one that the tree's history has: later commits may have written it anew, so no lines are compared."""
        return {path: (Ported(1, "there", path),) for path in self.both}

    def carried(
        self, tree: _TreeTexts, texts: Mapping[str, str], made: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, tuple[Ported, ...]]]:
        """The tree's files that the steps so far change, and what became of each change of this one.

        `made`: modules with more names than the tree's have."""
        offers = partial(tree.offers, {_module(path): text for path, text in made.items() if path.endswith(".py")})
        current = dict(texts)
        ported: dict[str, tuple[Ported, ...]] = {}
        for path, (before, after) in self.both.items():
            here = {place: current.get(place, text) for place, text in tree.places(path, before).items()}
            if not here and path in current:  # A commit before this one has added it.
                here = {path: current[path]}
            if not here:
                ported[path] = (Ported(1, "left", path, phrase("this tree has no such file")),)
                continue
            file, text, changes = port(path, before, after, here, offers)
            ported[path] = tuple(changes)
            if any(one.fate == "carried" for one in changes):
                current[file] = text
        added = (path for path, status in self._wanted.items() if status == "A" and path in self._after)
        for path in (path for path in added if not tree.has(path)):
            lacking = missing("", self._after[path], offers) if path.endswith(".py") else set[str]()
            if lacking:
                why = phrase("it uses {name}, which is not here", name=", ".join(sorted(lacking)))
                ported[path] = (Ported(1, "left", path, why),)
            else:
                current[path] = self._after[path]
                ported[path] = (Ported(1, "carried", path),)
        return current, ported

    def left(self, tree: _TreeTexts) -> Iterator[Left]:
        """What of it is not here now."""
        for path, status in self._wanted.items():
            if status == "A" and path not in self._after:
                yield Left(path, 0, phrase("a new file that is no text: copy it from {name}", name=self.until[:9]))
            elif status == "A" and tree.has(path) and tree.text(path) != self._after[path]:
                yield Left(path, 0, phrase("a new file there, and here another one has its name"))
            elif status == "D" and tree.text(path) is not None:
                yield Left(path, 0, phrase("verl has taken this file away"))
            elif status not in ("A", "D") and path not in self.both:
                yield Left(path, 0, phrase("it is no text"))
        for path, changes in self.ported.items():
            for one in changes:
                if one.why is not None:
                    yield Left(path, one.line, self._why(path, one, tree))

    def _why(self, path: str, one: Ported, tree: _TreeTexts) -> Phrase:
        """With the commit that the lines came with which it changes, where this tree does not have them."""
        assert one.why is not None
        text = tree.text(one.file)
        if not one.lines or text is None:
            return one.why
        first, last = one.lines
        area = ("-L", f"{first},{last}")
        try:
            blame = self.place.git.run("blame", "--porcelain", *area, self.since, "--", f"{self.place.prefix}{path}")
        except TreeError:  # Of an empty file no line came with any commit.
            return one.why
        here = set(split(text))
        commit, found = "", dict[str, int]()
        for line in blame.decode("utf-8", "replace").splitlines():
            if line.startswith("\t"):
                if line[1:].strip() and line[1:] not in here:
                    found[commit] = found.get(commit, 0) + 1
            elif re.match(r"[0-9a-f]{40} ", line):
                commit = line[:40]
        if not found:
            return one.why
        names = " ".join(name[:9] for name in found)
        return phrase("{why}; its lines came with {names}: name these commits too", why=one.why, names=names)


def _is_read(path: str) -> bool:
    return path.endswith(verl_tree.TEXT) and not path.startswith(_NOT_RUN)


def _texts(found: Mapping[str, bytes]) -> dict[str, str]:
    read = {path: decode(Source(path, content, "", 0)) for path, content in found.items()}
    return {path: one[0].replace("\r\n", "\n") for path, one in read.items() if not isinstance(one, Undecodable)}


class _TreeTexts:
    """This tree's files without what records made in them, and what their modules bind."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._package = session.tree.package
        self._ledger = session.tree.ledger()
        self._texts: dict[str, str | None] = {}
        self._paths = [found.path for found in session.tree.text_files() if not found.path.startswith(_NOT_RUN)]

    def text(self, path: str) -> str | None:
        """A file's text; None where there is none."""
        if path not in self._texts:
            content = None
            with suppress(OSError, ValueError):
                content = content_without_records(self._session, self._ledger, path)
            self._texts[path] = _texts({path: content}).get(path) if content is not None else None
        return self._texts[path]

    def has(self, path: str) -> bool:
        """Whether there is a file of that path, a text or not."""
        return self.text(path) is not None or os.path.lexists(self._session.tree.root / path)

    def places(self, path: str, before: str) -> dict[str, str]:
        """The file of that path, or else those of its name that bind most of the names that it binds."""
        text = self.text(path)
        if text is not None:
            return {path: text}
        names = bound(before)
        found: dict[str, str] = {}
        for other in self._paths:
            text = self.text(other) if PurePosixPath(other).name == PurePosixPath(path).name else None
            if text is not None and len(names & bound(text)) * 2 > len(names):
                found[other] = text
        return found

    def offers(self, made: Mapping[str, str], module: str, name: str) -> bool:
        """Whether a module of verl's has a name; of other packages check knows it."""
        if module.split(".")[0] != self._package:
            return True
        if f"{module}.{name}" in made:
            return True
        path = module.replace(".", "/")
        inner = f"{path}/{name}"
        if any(other.startswith((f"{inner}.py", f"{inner}/")) for other in self._paths):
            return True
        texts = [made.get(module), self.text(f"{path}.py"), self.text(f"{path}/__init__.py")]
        return any({name, "*", "__getattr__"} & bound(text) for text in texts if text is not None)


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _fix(place: Checkout, commit: str, verl: str) -> Fix:
    """Where verl has it: the pull request that its subject names, and the first release that the clone has a tag of."""
    subject = place.git.run("log", "-1", "--format=%s", "--no-show-signature", commit).decode("utf-8", "replace")
    number = _NUMBER.search(subject.strip())
    tags = place.git.run("tag", "--contains", commit).decode("utf-8", "replace").split()
    releases: list[Version] = []
    for tag in tags:
        with suppress(InvalidVersion):
            releases.append(Version(tag))
    final = [one for one in releases if not one.is_prerelease]
    address = f"https://github.com/volcengine/verl/pull/{number[1]}" if number else ""
    since = min(final, default=None)
    with suppress(InvalidVersion):
        return Fix(commit, address, str(since or ""), since is None or Version(verl) < since)
    return Fix(commit, address, str(since))
