"""Which folder is a verl tree, and which of its files may hold marked lines, found and read fast."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from patcher.messages import Refusal, phrase
from patcher.worktree import disk
from patcher.worktree.files import SOURCE_BYTES, read

FOLDERS = ("verl", "recipe", "examples", "scripts")
"""The folders of a checkout that are looked through; of the root itself, only the files."""
PYTHON = (".py",)
TEXT = (".py", ".pyi", ".sh", ".bash", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".env", ".txt", ".json")
MAX_BYTES = 4 << 20
"""A larger file is data, not source, and is passed over."""

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env"})


@dataclass(frozen=True)
class Found:
    """A file, by its path below the root; nothing is read before `read`."""

    path: str
    place: str

    def read(self) -> bytes:
        """The file's bytes; none when it has gone or may not be read."""
        try:
            return read(self.place, SOURCE_BYTES)
        except OSError:
            return b""


def root_of(folder: Path) -> Path:
    """The real path of `folder`, which holds `verl/`. Raises Refusal where it does not."""
    place = Path(os.path.realpath(folder))
    if holds_verl(place):
        return place
    advice = phrase("Name a fork's checkout, or the folder above the package verl, with --root.")
    if place.name == "verl" and holds_verl(place.parent):
        itself = "{folder} is the package itself: name the folder above it, --root {above}"
        advice = phrase(itself, folder=place, above=place.parent)
    else:
        within = inner(place)
        if within:
            advice = phrase("There is one further down: --root {folder}", folder=place / within[0])
    raise Refusal(
        "no-tree",
        phrase("{path}: no verl tree", path=folder),
        phrase("it has no folder verl with __init__.py or version/version in it")
        if place.is_dir()
        else phrase("no folder"),
        advice,
    )


def holds_verl(folder: Path) -> bool:
    """Whether `folder` is a verl tree's root."""
    package = folder / "verl"
    return (package / "__init__.py").is_file() or (package / "version" / "version").is_file()


def inner(root: Path) -> tuple[str, ...]:
    """Folders in `root` that are verl trees of their own."""
    names = [name for name in disk.names(root) if not name.startswith(".") and name != "verl"]
    found = [name for name in names if holds_verl(root / name)]
    return (*found, *(["verl"] if (root / "verl" / "verl").is_dir() and holds_verl(root / "verl") else []))


def files(root: Path, suffixes: tuple[str, ...], folders: tuple[str, ...] = FOLDERS) -> Iterator[Found]:
    """Files by suffix, in a fixed order: those in the root, then folder by folder.

    Symlinks, hidden folders, bytecode and virtual environments are passed over.
    """
    yield from (file for file in _folder(str(root), "", suffixes) if isinstance(file, Found))
    for folder in folders:
        if not os.path.islink(root / folder):
            yield from _walk(str(root / folder), f"{folder}/", suffixes)


def _walk(place: str, prefix: str, suffixes: tuple[str, ...]) -> Iterator[Found]:
    for item in _folder(place, prefix, suffixes):
        if isinstance(item, Found):
            yield item
        else:
            yield from _walk(f"{place}/{item}", f"{prefix}{item}/", suffixes)


def _folder(place: str, prefix: str, suffixes: tuple[str, ...]) -> list[Found | str]:
    """The wanted files of one folder, and the names of its folders."""
    try:
        with os.scandir(place) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
    if any(entry.name == "pyvenv.cfg" for entry in found):
        return []
    wanted: list[Found | str] = []
    for entry in found:
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            if name not in _SKIPPED and not name.startswith("."):
                wanted.append(name)
        elif name.endswith(suffixes) and entry.is_file(follow_symlinks=False) and _is_source(entry):
            wanted.append(Found(f"{prefix}{name}", f"{place}/{name}"))
    return wanted


def _is_source(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") or entry.stat(follow_symlinks=False).st_size <= MAX_BYTES
