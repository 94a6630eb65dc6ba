"""On which branch and commit a checkout stands, read from git's own files without starting git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    for top in (root, *root.parents):
        folder = _git_folder(top)
        if folder is not None:
            return _head(top, folder)
    return None


def _git_folder(top: Path) -> Path | None:
    """The folder with HEAD in it: `.git`, or what the file `.git` of a worktree or submodule names."""
    git = top / ".git"
    try:
        if git.is_dir():
            return git if (git / "HEAD").exists() else None
        kind, _, target = git.read_text().partition(":")
    except (OSError, UnicodeDecodeError):
        return None
    return top / target.strip() if kind == "gitdir" else None


def _head(top: Path, folder: Path) -> Head:
    content = _line(folder / "HEAD")
    if not content.startswith("ref:"):
        return Head(top, None, content or None)
    ref = content[4:].strip()
    if "\0" in ref or ref.startswith("/") or ".." in ref.split("/"):  # No name that git gives; it would lead elsewhere.
        return Head(top, ref, None)
    common = folder / (_line(folder / "commondir") or ".")
    commit = _line(folder / ref) or _line(common / ref) or _packed(common, ref)
    branch = ref.removeprefix("refs/heads/")
    return Head(top, None if branch == ".invalid" else branch, commit or None)


def _packed(common: Path, ref: str) -> str:
    try:
        with (common / "packed-refs").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                commit, _, name = line.rstrip("\n").partition(" ")
                if name == ref:
                    return commit
    except OSError:
        pass
    return ""


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
