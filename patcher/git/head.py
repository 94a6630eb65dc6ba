"""Which branch and commit are checked out, read from git's own files without starting git.

The files may come from somebody else, so they are read with limits, and a content counts only in the form that git
writes: `.git` may be a pipe, and HEAD may say `ref: ../../.ssh/id_rsa`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from patcher.worktree import files

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$")
"""What git forbids in the name of a reference (git-check-ref-format)."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The folders of a checkout and its repository, as `.git` names them. Git itself may still refuse them."""

    top: Path
    """The checkout's top folder; the tree may lie below it."""
    folder: Path
    """The folder with HEAD and the index: `.git`, or what the file `.git` of a worktree or submodule names."""
    common: Path
    """The folder with objects, branches and configuration. In a worktree it is not `folder`."""


@dataclass(frozen=True, slots=True)
class Head:
    """What is checked out."""

    top: Path
    """The checkout's top folder; the tree may lie below it."""
    branch: str | None
    """None for a detached HEAD."""
    commit: str | None
    """The full hash. None before the first commit, and where only git can read the references (reftable)."""

    @property
    def short(self) -> str:
        """The first nine digits of the commit; "" without one."""
        return self.commit[:9] if self.commit else ""


def head(root: Path) -> Head | None:
    """What is checked out where `root` lies; None outside of a checkout, and in an installed package.

    An environment within a checkout (`fork/.venv/lib/python3.12/site-packages`) does not belong to its commits.
    """
    if {"site-packages", "dist-packages"} & set(root.parts):
        return None
    found = repository(root)
    return None if found is None else _head_of(found)


def repository(root: Path) -> Repository | None:
    """The repository of the checkout that `root` lies in; None if it lies in none."""
    for top in (root, *root.parents):
        folder = _git_folder(top)
        if folder is not None:
            return Repository(top, folder, folder / (_line(folder / "commondir") or "."))
    return None


def _head_of(found: Repository) -> Head:
    """What is checked out. A HEAD in no known form counts as detached, without a commit."""
    ref = symbolic_ref(found.folder)
    if ref is None:
        return Head(found.top, None, _commit(_line(found.folder / "HEAD")))
    commit = _commit(_line(found.folder / ref)) or _commit(_line(found.common / ref)) or _packed(found.common, ref)
    branch = ref.removeprefix("refs/heads/")  # ".invalid" is what git writes into HEAD for other programs (reftable).
    return Head(found.top, None if branch == ".invalid" else branch, commit)


def symbolic_ref(folder: Path) -> str | None:
    """The reference that HEAD in `folder` names, such as `refs/heads/main`; None for a detached HEAD.

    HEAD is a file with the line `ref: refs/heads/main`, or, as old versions of git wrote it, a symlink.
    """
    path = folder / "HEAD"
    try:
        content = f"ref:{path.readlink()}"
    except OSError:
        content = _line(path)
    ref = content[4:].strip()
    if not content.startswith("ref:") or not ref.startswith("refs/") or not ref.isprintable():
        return None
    return ref if ref == "refs/heads/.invalid" or not _NO_REF.search(ref) else None


def _git_folder(top: Path) -> Path | None:
    git = top / ".git"
    try:
        if git.is_dir():
            return git if os.path.lexists(git / "HEAD") else None
    except OSError:
        return None
    kind, _, target = _line(git).partition(":")
    return top / target.strip() if kind == "gitdir" and "\0" not in target else None


def _packed(common: Path, ref: str) -> str | None:
    """The commit of `ref` in the file `packed-refs`, which has lines such as `<hash> refs/heads/main`."""
    try:
        content = b"\n" + files.read(common / "packed-refs", files.DATA_BYTES)
    except OSError:
        return None
    end = content.find(f" {ref}\n".encode())
    return None if end < 0 else _commit(content[content.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace"))


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _line(path: Path) -> str:
    """The text of one of git's small files; "" if it is no plain file, or larger than git would write."""
    try:
        return files.read_text(path, files.SETTINGS_BYTES, errors="surrogateescape").strip()
    except (OSError, ValueError):
        return ""
