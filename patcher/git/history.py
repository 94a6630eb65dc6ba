"""A checkout's commits: which files differ between two, the bytes of files in one, and where the fork left verl."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patcher.errors import TreeError, UsageError
from patcher.git.checkout import listed, names
from patcher.git.running import refuse_pipes
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.git.checkout import Checkout

_UPSTREAM = re.compile(r"[:/](?:volcengine|verl-project)/verl(?:\.git)?/?$")
"""The URL of verl's own repository: `git@github.com:volcengine/verl.git`, `https://github.com/verl-project/verl`."""


_LINK, EXECUTABLE = "120000", "100755"


class Differing(NamedTuple):
    """How a file differs between two commits."""

    status: str
    """`A`: added, `D`: deleted, `T`: another kind of file, such as a link; `M`: changed."""
    before: str = ""
    after: str = ""
    """The modes as git has them, `100755`; "" of a file that git does not have yet."""

    @property
    def is_link(self) -> bool:
        """Whether it is a link on one of the two sides."""
        return _LINK in (self.before, self.after)


def commit_of(place: Checkout, name: str) -> str:
    """The full hash of the commit that `name` means: a branch, a tag, a hash, `HEAD~2`.

    Raises UsageError if there is none, TreeError if git cannot be asked.
    """
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    code, out = place.git.start(*words).outcome()
    if code == 0:
        return os.fsdecode(out).strip()
    # Git fails alike where it takes no name at all: the checkout is another user's, say. Then this fails as well.
    place.git.run("rev-parse", "--git-dir")
    raise UsageError(
        phrase("{name!r} is no commit of this checkout", name=name),
        advice=phrase("Name a commit, a tag or a branch; git log shows them."),
    )


def changed_files(place: Checkout, since: str, until: str | None = None) -> dict[str, Differing]:
    """The files below the tree's root that differ between two commits, by path.

    Without `until` the commit is compared with the files on the disk, untracked ones included. Raises TreeError if git
    fails.
    """
    if until is None:
        refuse_pipes(place.head.top, [place.prefix])
    form = ("--raw", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    commits = [since] if until is None else [since, until]
    parts = names(place.git.run("diff", *form, *commits, "--", place.prefix or "."))
    found = {path: _differing(words) for words, path in zip(parts[::2], parts[1::2], strict=True)}
    if until is None:
        others = names(place.git.run("ls-files", "-o", "-z", "--exclude-standard", "--", place.prefix or "."))
        told = dict(place.git.settings()).get("core.filemode", "true") == "true"
        found |= {path: Differing("A", after=_mode(place.head.top / path) if told else "") for path in others}
    return {path.removeprefix(place.prefix): one for path, one in sorted(found.items())}


def _mode(place: Path) -> str:
    """The mode that git would give a file."""
    try:
        found = place.lstat().st_mode
    except OSError:
        return ""
    return _LINK if stat.S_ISLNK(found) else EXECUTABLE if found & stat.S_IXUSR else ""


def _differing(words: str) -> Differing:
    """`:100644 100755 <hash> <hash> M`"""
    before, after, _, _, status = words.removeprefix(":").split(" ")
    return Differing(status[:1], before, after)


def contents(place: Checkout, commit: str, paths: Iterable[str]) -> Mapping[str, bytes]:
    """The bytes of files in a commit, by path below the tree's root. Paths that it does not have are left out.

    Raises TreeError if git fails. `git cat-file --batch` takes a path a line, so one with a line break is left out too.
    """
    wanted = [path for path in paths if "\n" not in path]
    found = blobs(place, [f"{commit}:{place.prefix}{path}" for path in wanted])
    return {path: content for path, content in zip(wanted, found, strict=True) if content is not None}


def blobs(place: Checkout, asked: Sequence[str]) -> list[bytes | None]:
    """The bytes of each file `<commit>:<path below the checkout's top>`, in their order; None where there is none.

    Raises TreeError if git fails.
    """
    answer = place.git.run("cat-file", "--batch", given=listed(asked).replace(b"\0", b"\n"))
    found: list[bytes | None] = []
    at = 0
    for _ in asked:
        end = answer.index(b"\n", at)
        words = answer[at:end].split(b" ")  # `<hash> blob <size>`, or `<what was asked> missing`
        at = end + 1
        if words[-1] == b"missing" or len(words) != 3:
            found.append(None)
            continue
        size = int(words[2])
        found.append(answer[at : at + size] if words[1] == b"blob" else None)
        at += size + 1
    return found


def upstream_commit(place: Checkout) -> tuple[str, str] | None:
    """The commit of verl that the fork is based on, and its name; None if it cannot be found.

    It is the merge base with a remote that is verl's own repository (`upstream/main`), else the latest release tag
    that HEAD contains (`v0.7.0`).
    """
    for name, address in place.remotes().items():
        if not _UPSTREAM.search(address):
            continue
        for branch in ("main", "master"):
            try:
                return place.git.word("merge-base", "HEAD", f"refs/remotes/{name}/{branch}"), f"{name}/{branch}"
            except TreeError:
                continue
    try:
        tag = place.git.word("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD")
    except TreeError:
        return None
    return commit_of(place, tag), tag
