"""The little that is read of a distribution's metadata and of a package's own version file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from patcher.messages import Message, phrase
from patcher.packages.agent.installed.folders import Metadata
from patcher.worktree import files

_PEP440 = re.compile(
    r"v?(\d+!)?\d+(\.\d+)*"
    r"([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?"
    r"(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?"
    r"([-_.]?dev[-_.]?\d*)?"
    r"(\+[a-z0-9]+([-_.][a-z0-9]+)*)?",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"^(?:__version__|version)\b[^=\n]*=\s*(?:\w+\s*=\s*)?[\"']([^\"'\n]+)[\"']", re.MULTILINE)
_VERSION_FILES = ("version/version", "_version.py", "version.py", "__init__.py")


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
    try:
        record = files.read_text(metadata.path / "RECORD", files.SOURCE_BYTES, errors="replace", follow=True)
    except OSError:
        record = ""
    if record.startswith(f"{module}/__init__.py,") or f"\n{module}/__init__.py," in record:
        return True
    source = editable_source(metadata)
    return source is not None and package_in(source, module) is not None


def editable_source(metadata: Metadata) -> Path | None:
    """The source folder of an editable install, by `direct_url.json`; None for any other install."""
    from urllib.parse import unquote, urlsplit

    from patcher.worktree.json_text import parse_json

    try:
        said = parse_json(files.read(metadata.path / "direct_url.json", files.SETTINGS_BYTES, follow=True))
        if not said.get("dir_info", {}).get("editable"):
            return None
        return Path(unquote(urlsplit(said["url"]).path))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def package_in(source: Path, module: str) -> Path | None:
    """The package's folder in a source tree, flat or below `src` or `python`."""
    folders = (source / below / module for below in ("", "src", "python"))
    return next((folder for folder in folders if (folder / "__init__.py").is_file()), None)


def naming(modules: Iterable[Path], module: str) -> Metadata | None:
    """The distribution of any name whose `top_level.txt` names the module."""
    for path in modules:
        stem = path.name.rpartition(".")[0].split("-")
        found = Metadata(stem[0], stem[1] if len(stem) > 1 else "", path)
        if (path / "top_level.txt").is_file() and provides(found, module):
            return found
    return None
