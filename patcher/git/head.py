"""On which branch and commit a checkout stands, read from git's own files without starting git.

The files came with the tree, so they are read with limits, and what is in them is believed only where it has the form
that git gives it: `.git` may be a pipe, HEAD may say `ref: ../../.ssh/id_rsa`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from patcher.worktree import files

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$")
"""What git allows in no name of a reference (git-check-ref-format)."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Where git keeps what it knows of a checkout. Nothing says yet that git takes it for one."""

    top: Path
    """The checkout's top folder; the tree may lie below it."""
    folder: Path
    """The folder with HEAD and the index: `.git`, or what the file `.git` of a worktree or submodule names."""
    common: Path
    """The folder with objects, branches and configuration; another one than `folder` in a worktree."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a checkout stands. `branch` is None on a detached HEAD, `commit` before the first commit."""

    top: Path
    """The checkout's top folder; the tree may lie below it."""
    branch: str | None
    commit: str | None
    """The full hash; also None where git keeps its references in a form that only git reads."""

    @property
    def short(self) -> str:
        return self.commit[:9] if self.commit else ""


def head(root: Path) -> Head | None:
    """Where the git checkout that `root` lies in stands; None when it lies in none, or in an installed package."""
    if {"site-packages", "dist-packages"} & set(root.parts):
        return None
    found = repository(root)
    return None if found is None else head_of(found)


def repository(root: Path) -> Repository | None:
    """The repository of the git checkout that `root` lies in; None when it lies in none."""
    for top in (root, *root.parents):
        folder = _git_folder(top)
        if folder is not None:
            return Repository(top, folder, folder / (_line(folder / "commondir") or "."))
    return None


def head_of(found: Repository) -> Head:
    """Where the checkout stands; a HEAD that has not the form of one counts as a detached one without a commit."""
    ref = symbolic_ref(found.folder)
    if ref is None:
        return Head(found.top, None, _commit(_line(found.folder / "HEAD")))
    commit = _commit(_line(found.folder / ref)) or _commit(_line(found.common / ref)) or _packed(found.common, ref)
    branch = ref.removeprefix("refs/heads/")
    return Head(found.top, None if branch == ".invalid" else branch, commit)


def symbolic_ref(folder: Path) -> str | None:
    """The reference that HEAD in `folder` names, in a line of its own or, as git once wrote it, as a symlink."""
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
    try:
        content = b"\n" + files.read(common / "packed-refs", files.DATA_BYTES)
    except OSError:
        return None
    end = content.find(f" {ref}\n".encode())
    return None if end < 0 else _commit(content[content.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace"))


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _line(path: Path) -> str:
    """What git has written there; nothing where there is no plain file of a size that git would write."""
    try:
        return files.read_text(path, files.SETTINGS_BYTES, errors="surrogateescape").strip()
    except (OSError, ValueError):
        return ""
