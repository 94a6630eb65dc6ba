"""Which files of the tree are sent to a host: those that git lists, without what belongs to this machine alone.

What is left out is listed too, with reason and size, so that nobody misses it on the host without a word.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from patcher.errors import TreeError
from patcher.git.checkout import names
from patcher.git.head import repository
from patcher.git.running import Git, refuse_pipes
from patcher.homes import cache_folder
from patcher.i18n import phrase
from patcher.profiles.agent.write_files import is_rendered
from patcher.profiles.rendered_file import NAMES, Text
from patcher.worktree import files, hashing
from patcher.worktree.digest_cache import DigestCache
from patcher.worktree.hashing import Digest
from patcher.worktree.layout import FOLDER

HOST_OWN = frozenset(("git_ignore.py",))
"""Files in the tree's root of which each host has its own; they are never sent."""
RUN_SCRIPTS = frozenset(NAMES) - HOST_OWN
"""Files in the tree's root that are not sent if they were rendered for a host. A fork may have its own of that name."""
MEASURE_SECONDS = 0.4
"""Seconds for measuring the sizes of what is left out. A guess: they are only shown, and a person waits."""
_HEAD = 4096
"""Bytes of a run script that are read: the line that says it was rendered is among the first."""
_STATUS = (
    "--porcelain=v2",
    "--branch",
    "-z",
    "--no-renames",
    "--ignored=traditional",
    "--ignore-submodules=all",
)
_FIELDS = {"1": 8, "u": 10}
"""How many fields a line of `git status` has before the path, by its first letter; `u` is an unmerged file.

    1 .M N... 100644 100644 100644 <sha> <sha> verl/trainer/main_ppo.py
"""

LeftOutKind: TypeAlias = Literal["expected", "repository", "unreadable"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in the tree's folder that is not sent."""

    path: str
    """Below the root; a folder with a slash at its end. `**/NAME/`: all folders of this name."""
    reason: Text
    size: int | None = None
    """Bytes; None if it was not measured."""
    kind: LeftOutKind = "expected"
    """`repository`: a git repository of its own, which may be missed on the host."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file or symlink to be on the host. It has either a source, a content or a link."""

    path: str
    """Below the tree's root, with forward slashes. Bytes that are no UTF-8 are surrogates (`os.fsdecode`)."""
    size: int
    """Bytes."""
    mode: int
    """Permission bits."""
    sha256: str = ""
    """Of the content; of a symlink's target."""
    source: Path | None = None
    """The file here to read the content from."""
    content: bytes | None = None
    """The content, if records have changed it or the tool has made it."""
    link: str | None = None
    """A symlink's target: relative, and inside the tree."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files to send with their digests, and what is left out."""

    items: Mapping[str, Item]
    """By path, sorted."""
    left_out: tuple[LeftOut, ...] = ()
    """Largest first."""
    commit: str | None = None
    """The hash of the commit that is checked out; None before the first commit."""
    dirty: bool = False
    """Whether files differ from that commit."""
    untracked: frozenset[str] = frozenset()
    """The paths of items that git neither tracks nor ignores."""
    uncommitted: frozenset[str] = frozenset()
    """The paths of items that differ from the commit, the untracked ones included."""
    included: frozenset[str] = frozenset()
    """The paths of items that are sent although git ignores them."""


def list_tree(root: Path, include: Sequence[str] = ()) -> Listing:
    """List the files of the tree at `root`, a git checkout or a folder in one, with their digests.

    `include`: paths below the root that are listed although git ignores them, and repositories of their own, such as
    submodules, of which the files that git lists there are taken.

    Raises:
        TreeError: it is no checkout; git fails or lists no file; or there is no file at a path of `include`.
    """
    top = Path(os.path.realpath(root))
    with _GitQuestions(top, include) as git:
        selection = _Selection(top)
        for path in git.paths():
            selection.take(path)
        for path in git.included():
            selection.take(path)
        for path in _below(include, selection.repositories):
            selection.enter(path)
        known = DigestCache(str(top), _digests_of(top))
        digests, failed = known.digests(selection.files)
        known.save()
        state = git.state()
    items = {path: _item(top, path, digest) for path, digest in digests.items()} | selection.links
    if not items:
        raise TreeError(
            phrase("{root}: git lists no file here", root=root),
            cause="nothing is tracked in this folder, and what there is is ignored",
            advice="Name the root of the fork with --root. If an outer checkout ignores it, run git init in it.",
        )
    left_out = [*selection.left_out, *(_unreadable(path, error) for path, error in failed.items())]
    ignored = _ignored(top, state.ignored)
    left_out += [left for left in ignored if left.path not in items and not _below(include, (left.path,))]
    for path in include:
        if not _below((path,), items):
            raise TreeError(
                phrase("include: there is no file to send at {path}", path=path),
                cause=phrase("no file is at {place}", place=top / path),
                advice="Correct include in uky-patch.toml; a submodule is filled by: git submodule update --init",
            )
    untracked = frozenset(_below(state.untracked, items) if state.untracked else ())
    return Listing(
        items=dict(sorted(items.items())),
        left_out=tuple(sorted(left_out, key=lambda left: (-(left.size or 0), left.path))),
        commit=state.commit,
        dirty=state.dirty,
        untracked=untracked,
        uncommitted=untracked | {path for path in state.modified if path in items},
        included=frozenset(_below(include, items)),
    )


def _digests_of(top: Path) -> str:
    """The file with the digests of this tree. It is outside of the tree, which a migration only reads."""
    return str(cache_folder() / "digests" / (hashing.digest_of(os.fsencode(top))[:32] + ".json"))


def _below(names: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Those of `paths` that are one of `names` or below it: both `data` and `data/` are above `data/x.json`."""
    wanted = {name.rstrip("/") for name in names}
    return [path for path in paths if wanted & {path.rstrip("/"), *map(str, PurePosixPath(path).parents)}]


class _Selection:
    """Sorts the paths that git lists into files and symlinks to send, and what is left out."""

    def __init__(self, top: Path) -> None:
        self._top = str(top)
        self._plain: dict[str, bool] = {"": True}
        self.files: list[str] = []
        self.links: dict[str, Item] = {}
        self.left_out: list[LeftOut] = []
        self.repositories: list[str] = []
        """Folders that hold a repository of their own, each with a slash at its end."""

    def enter(self, folder: str) -> None:
        """Take the files of the repository in `folder` (ends in a slash), which was left out. Raises TreeError."""
        with _GitQuestions(Path(self._top, folder)) as git:
            for path in git.paths():
                self.take(folder + path)
        self.left_out = [left for left in self.left_out if left.path != folder]

    def take(self, path: str) -> None:
        """Sort one path of git's list."""
        if path.endswith("/"):
            self._leave_repository(path)
            return
        place = os.path.join(self._top, path)
        if not self._is_plain(os.path.dirname(path)):
            return  # A folder was replaced by a symlink: for git its files are deleted.
        try:
            there = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.left_out.append(_unreadable(path, error))
            return
        if path in HOST_OWN or (path in RUN_SCRIPTS and _is_rendered(place)):
            self._leave(path, phrase("each host has its own"), there.st_size)
        elif any(part.startswith(FOLDER) for part in path.split("/")):
            self._leave(path, phrase("notes of uky-patch"), there.st_size)
        elif stat.S_ISDIR(there.st_mode):
            self._leave_repository(path + "/")
        elif stat.S_ISLNK(there.st_mode):
            self._take_link(path, os.readlink(place))
        elif stat.S_ISREG(there.st_mode):
            self.files.append(path)
        else:
            self._leave(path, phrase("neither a file nor a folder"))

    def _take_link(self, path: str, target: str) -> None:
        """Send a link whose target is sent too. `/data/model` or `../outside` mean nothing on another machine."""
        if target.startswith("/"):
            self._leave(path, phrase("a symlink with an absolute target: {target}", target=target))
        elif not self._lands_inside(path, target):
            self._leave(path, phrase("a symlink that leads out of the tree: {target}", target=target))
        else:
            size = len(os.fsencode(target))
            self.links[path] = Item(path, size, 0o777, hashing.of_link(target), link=target)

    def _lands_inside(self, path: str, target: str) -> bool:
        lexical = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if lexical == ".." or lexical.startswith("../"):
            return False
        real = os.path.realpath(os.path.join(self._top, path))
        return real == self._top or real.startswith(self._top.rstrip("/") + "/")

    def _is_plain(self, folder: str) -> bool:
        """Whether neither `folder` nor one above it, below the top, is a symlink."""
        known = self._plain.get(folder)
        if known is None:
            above = self._is_plain(os.path.dirname(folder))
            known = self._plain[folder] = above and not os.path.islink(os.path.join(self._top, folder))
        return known

    def _leave_repository(self, folder: str) -> None:
        self.repositories.append(folder)
        self.left_out.append(LeftOut(folder, phrase("a git repository of its own"), kind="repository"))

    def _leave(self, path: str, reason: Text, size: int | None = None) -> None:
        self.left_out.append(LeftOut(path, reason, size))


def _item(top: Path, path: str, digest: Digest) -> Item:
    return Item(path, digest.size, digest.mode & 0o777, digest.sha256, source=top / path)


def _is_rendered(place: str) -> bool:
    try:
        with files.open_binary(place, follow=False) as file:
            return is_rendered(file.read(_HEAD).decode("utf-8", "surrogateescape"))
    except OSError:
        return False


def _unreadable(path: str, error: OSError) -> LeftOut:
    return LeftOut(path, phrase("cannot be read: {reason}", reason=error.strerror or str(error)), kind="unreadable")


def _ignored(top: Path, ignored: tuple[str, ...]) -> Iterator[LeftOut]:
    """What git ignores, and `.git`. Ignored folders with the same name (`**/__pycache__/`) are one entry."""
    deadline = time.monotonic() + MEASURE_SECONDS
    grouped: dict[str, list[str]] = {}
    for path in ignored:
        inner, name = os.path.split(path.rstrip("/"))
        if not (path.startswith(FOLDER) or path in HOST_OWN):
            grouped.setdefault(f"**/{name}/" if inner and path.endswith("/") else path, []).append(path)
    if (top / ".git").exists():
        yield LeftOut(".git", phrase("the history stays here"), _size(top / ".git", deadline))
    for path in HOST_OWN:
        if path in ignored:
            yield LeftOut(path, phrase("each host has its own"), _size(top / path, deadline))
    for name, paths in sorted(grouped.items(), key=lambda group: (group[0].startswith("**"), group[0])):
        sizes = [_size(top / path, deadline) for path in paths]
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        if len(paths) == 1:
            yield LeftOut(paths[0], phrase("git ignores it"), total)
        else:
            yield LeftOut(name, phrase("git ignores it, in {count} {count:place|places}", count=len(paths)), total)


def _size(path: Path, deadline: float) -> int | None:
    """The bytes of a file, or of all files in a folder; None if it cannot be read, or not before the deadline."""
    total, folders = 0, [str(path)]
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return os.lstat(path).st_size
        while folders:
            if time.monotonic() > deadline:
                return None
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None
    return total


@dataclass(frozen=True, slots=True)
class _GitState:
    """What `git status` says about a tree. Paths are below its root; folders end in a slash."""

    ignored: tuple[str, ...]
    commit: str | None
    dirty: bool
    untracked: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    """Tracked files that differ from the commit."""


class _GitQuestions:
    """The git commands that a listing needs. They run at the same time."""

    def __init__(self, root: Path, include: Sequence[str] = ()) -> None:
        """Start git. `include`: the paths whose ignored files are listed too.

        Raises TreeError if `root` is in no checkout, or git is not installed.
        """
        found = repository(root)
        if found is None:
            if not root.is_dir():
                title = phrase("{root}: no such folder", root=root)
                raise TreeError(title, advice="Name the fork with --root.")
            raise TreeError(
                phrase("{root}: not a git checkout", root=root),
                cause="which files belong to the fork, and which are data or results, is known from git alone",
                advice="Make it one: git init, a .gitignore, git add. Nothing needs to be committed.",
            )
        refuse_pipes(found.top, [root.relative_to(found.top).as_posix()])
        self._git = git = Git(found, root)  # Kept, because its temporary folder lives as long as the object.
        self._listed = git.start("ls-files", "-co", "--exclude-standard", "-z", folder=root)
        ignored = ("ls-files", "-oi", "--exclude-standard", "-z", "--", *include)
        self._included = git.start(*ignored, folder=root) if include else None
        self._state = git.start("status", *_STATUS, "--", ".", folder=root)
        self._prefix = git.start("rev-parse", "--show-prefix", folder=root)

    def __enter__(self) -> _GitQuestions:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._listed, self._included, self._state, self._prefix):
            if process is not None:
                process.stop()

    def paths(self) -> tuple[str, ...]:
        """The tracked and untracked files, each once; `name/` for a repository of its own. Raises TreeError."""
        return tuple(dict.fromkeys(names(self._listed.end())))

    def included(self) -> tuple[str, ...]:
        """The ignored files at the paths to include. Raises TreeError."""
        return tuple(names(self._included.end())) if self._included is not None else ()

    def state(self) -> _GitState:
        """The commit, how files differ from it, and what git ignores. Raises TreeError."""
        entries = names(self._state.end())
        below = os.fsdecode(self._prefix.end().removesuffix(b"\n"))
        ignored = [entry[2:] for entry in entries if entry.startswith("! ")]
        commits = [entry.removeprefix("# branch.oid ") for entry in entries if entry.startswith("# branch.oid ")]
        modified = [entry.split(" ", _FIELDS[entry[0]])[-1] for entry in entries if entry[:2] in ("1 ", "u ")]
        untracked = [entry[2:] for entry in entries if entry.startswith("? ")]

        def inside(paths: list[str]) -> tuple[str, ...]:
            """Git's paths start at the checkout's top, and the tree may lie below it."""
            return tuple(path.removeprefix(below) for path in paths if path.startswith(below))

        return _GitState(
            ignored=tuple(path for path in inside(ignored) if path),
            commit=commits[0] if commits and commits[0] != "(initial)" else None,
            untracked=inside(untracked),
            modified=inside(modified),
            dirty=any(entry[:2] in ("1 ", "2 ", "u ", "? ") for entry in entries),
        )
