"""What lies in the folders that Python imports from: one directory scan each, file names before file contents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from patcher.packages.agent.installed.model import MODULES
from patcher.worktree import files

# Distributions that provide one of the modules under a name that does not begin with the module's.
_OTHER_NAMES = {
    "pytorch-triton": "triton",
    "pytorch-triton-rocm": "triton",
    "pytorch-triton-xpu": "triton",
    "flagtree": "triton",
    "ant-ray": "ray",
}
_DISTRIBUTION_OF = {module: name for name, module in MODULES.items()}


@dataclass(frozen=True)
class Metadata:
    """A `.dist-info`, `.egg-info` or `EGG-INFO`: the distribution and version that its name tells ("" if not)."""

    distribution: str
    version: str
    path: Path


@dataclass(frozen=True)
class Folder:
    """One import folder: the modules and metadata of interest in it."""

    path: Path
    modules: frozenset[str]
    metadata: tuple[tuple[str, Metadata], ...]
    """Candidates by one of `MODULES`' names."""
    others: tuple[Path, ...]
    """Metadata of all other distributions, looked into only where a module has none of its own."""
    pth: tuple[Path, ...]
    finders: tuple[Path, ...]
    """Modules that setuptools writes for editable installs, with a mapping of module to folder."""
    broken: tuple[str, ...]
    """Names that pip gives to what it could not remove (`~llm`)."""
    via: Path | None = None
    """The site folder whose `.pth` file added this one."""


def search_path(site: Iterable[Path], extra: Iterable[Path] = ()) -> list[Folder]:
    """The folders in import order, with those that `.pth` files and egg-links add."""
    found: dict[str, Folder] = {}

    def add(path: Path, via: Path | None) -> Folder | None:
        key = os.path.realpath(path)
        if key in found or (folder := _scan(path, via)) is None:
            return None
        found[key] = folder
        return folder

    for path in extra:
        add(path, None)
    for path in site:
        if (folder := add(path, None)) is not None:
            for added in _added_by(folder.pth):
                add(added, folder.path)
    return list(found.values())


def normalise(name: str) -> str:
    """The name that indexes compare by: `flash_attn` and `Flash.Attn` are `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _scan(path: Path, via: Path | None) -> Folder | None:
    modules: set[str] = set()
    metadata: list[tuple[str, Metadata]] = []
    others: list[Path] = []
    pth: list[Path] = []
    finders: list[Path] = []
    broken: list[str] = []
    try:
        names = sorted(entry.name for entry in os.scandir(path))
    except OSError:
        return None
    for name in names:
        if name in _DISTRIBUTION_OF:
            if (path / name / "__init__.py").is_file():
                modules.add(name)
        elif name.endswith((".dist-info", ".egg-info")) or name == "EGG-INFO":
            stem = re.sub(r"\.egg$", "", path.name) if name == "EGG-INFO" else name.rpartition(".")[0]
            parts = stem.split("-")
            found = Metadata(parts[0], parts[1] if len(parts) > 1 else "", path / name)
            if (wanted := _wanted(normalise(parts[0]))) is not None:
                metadata.append((wanted, found))
            else:
                others.append(path / name)
        elif name.endswith(".pth") and not name.startswith("."):
            pth.append(path / name)
        elif name.startswith("__editable__") and name.endswith("_finder.py"):
            finders.append(path / name)
        if name.startswith("~"):
            broken.append(name)
    return Folder(
        path, frozenset(modules), tuple(metadata), tuple(others), tuple(pth), tuple(finders), tuple(broken), via
    )


def _wanted(distribution: str) -> str | None:
    if distribution in MODULES:
        return distribution
    if distribution in _OTHER_NAMES:
        return _OTHER_NAMES[distribution]
    return next((name for name in MODULES if distribution.startswith(name + "-")), None)


def _added_by(listed: Iterable[Path]) -> Iterator[Path]:
    for file in listed:
        try:
            text = files.read_text(file, files.SETTINGS_BYTES, encoding="utf-8-sig", errors="replace", follow=True)
        except OSError:
            continue
        for line in text.splitlines():
            entry = line.strip()
            if entry and not entry.startswith(("#", "import ", "import\t")):
                folder = file.parent / entry
                if folder.is_dir():
                    yield folder


def editable_mappings(folder: Folder) -> dict[str, Path]:
    """Module to package folder, of the editable installs that a finder in this folder serves."""
    import ast

    from patcher.worktree.python import UnreadableError, parse

    found: dict[str, Path] = {}
    for finder in folder.finders:
        try:
            tree = parse(files.read(finder, files.SETTINGS_BYTES, follow=True))
        except (OSError, UnreadableError):
            continue
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if len(targets) != 1 or not isinstance(targets[0], ast.Name) or targets[0].id != "MAPPING":
                continue
            try:
                mapping = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (AttributeError, TypeError, ValueError):
                continue
            if isinstance(mapping, dict):
                found.update((str(module), Path(str(place))) for module, place in mapping.items())
    return found
