"""The import folders of an interpreter whose layout is known, read off the files without running anything."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from patcher.messages import Message, english, phrase, why
from patcher.worktree import files


class Unusable(Exception):  # noqa: N818
    """What is named is no interpreter that can be used, and why."""

    def __init__(self, title: Message, cause: Message) -> None:
        super().__init__(english(title))
        self.title = title
        self.cause = cause


@dataclass(frozen=True)
class Interpreter:
    """An interpreter, its version (`3.11`, with the patch level where a file tells it) and its import folders."""

    python: Path | None
    version: str
    site: tuple[Path, ...]
    """Site folders in import order; their `.pth` files are still to be followed."""
    extra: tuple[Path, ...] = ()
    """Folders before the site folders, without `.pth` files (PYTHONPATH of the running interpreter)."""
    problems: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()


def from_files(python: Path) -> Interpreter | None:
    """Read the layout of a virtual environment, conda, a build in a prefix, or the system; None for any other."""
    broken = phrase("{path} is a broken link: the interpreter it stood for is gone", path=python)
    problems = () if python.exists() else (broken,)
    prefix = python.parent.parent
    config = _pyvenv(prefix)
    if config is None:
        if not python.exists() or not _is_binary(python):
            return None
        real = Path(os.path.realpath(python))
        prefix, series = real.parent.parent, _series(real.name, real.parent.parent)
        if series is None or not (site := _site_folders(prefix, series)):
            return None
        return Interpreter(python, _patch_level(prefix, series), (*_user_site(series), *site))
    version = config.get("version_info") or config.get("version", "")
    version = ".".join(version.split(".")[:3])
    series = _series(python.name, prefix, ".".join(version.split(".")[:2]))
    if series is None or not (site := _site_folders(prefix, series)):
        return None
    if config.get("include-system-site-packages", "false").lower() == "true" and "home" in config:
        home = Path(os.path.realpath(Path(config["home"]) / "python3"))
        base = home.parent.parent if home.exists() else Path(config["home"]).parent
        site = (*site, *_user_site(series), *_site_folders(base, series))
    return Interpreter(python, version if version.startswith(series) else series, site, (), problems)


def _pyvenv(prefix: Path) -> dict[str, str] | None:
    try:
        text = files.read_text(prefix / "pyvenv.cfg", files.SETTINGS_BYTES, errors="replace", follow=True)
    except OSError:
        return None
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _is_binary(python: Path) -> bool:
    """False for a wrapper script (a pyenv shim): what it starts is not known from its place."""
    try:
        with files.open_binary(python) as file:
            return file.read(2) != b"#!"
    except OSError as error:
        raise Unusable(phrase("cannot read {path}", path=python), why(error)) from error


def _series(name: str, prefix: Path, hint: str = "") -> str | None:
    """`3.11`, from the executable's name, the hint, or the only library folder there is."""
    found = re.fullmatch(r"python(\d+\.\d+t?)", name)
    folders = sorted(path.name[len("python") :] for path in (prefix / "lib").glob("python*.*") if path.is_dir())
    if found and found[1] in folders:
        return found[1]
    if hint and hint in folders:
        return hint
    return folders[0] if len(folders) == 1 else None


def _site_folders(prefix: Path, series: str) -> tuple[Path, ...]:
    lib, major = f"python{series}", "python" + series.partition(".")[0]
    candidates = [
        *((prefix / "local" / "lib" / lib / "dist-packages",) if prefix == Path("/usr") else ()),
        *((prefix / "local" / "lib" / lib / "site-packages",) if prefix == Path("/usr") else ()),
        prefix / "lib64" / lib / "site-packages",
        prefix / "lib" / lib / "site-packages",
        *((prefix / "lib" / major / "dist-packages",) if prefix == Path("/usr") else ()),
        prefix / "lib" / lib / "dist-packages",
    ]
    folders = {os.path.realpath(path): path for path in reversed(candidates) if path.is_dir()}
    return tuple(reversed(folders.values()))


def _user_site(series: str) -> tuple[Path, ...]:
    if os.environ.get("PYTHONNOUSERSITE"):
        return ()
    base = Path(os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local"))
    folder = base / "lib" / f"python{series}" / "site-packages"
    return (folder,) if folder.is_dir() else ()


def _patch_level(prefix: Path, series: str) -> str:
    try:
        path = prefix / "include" / f"python{series}" / "patchlevel.h"
        header = files.read_text(path, files.SETTINGS_BYTES, errors="replace", follow=True)
    except OSError:
        return series
    found = re.search(r'#define PY_VERSION\s+"(\d+\.\d+\.\d+)', header)
    return found[1] if found else series
