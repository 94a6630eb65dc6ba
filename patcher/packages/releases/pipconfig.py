"""Where pip itself would look for packages: its configuration files and `PIP_…` variables, read without running pip."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patcher.homes import home
from patcher.worktree import files


@dataclass(frozen=True, slots=True)
class PipConfig:
    """The settings that decide where files come from, and how connections are made."""

    index_url: str | None = None
    """None is pip's default index."""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    timeout: float = 15.0
    """Seconds without an answer."""


def read_pip_config(environ: Mapping[str, str] = os.environ) -> PipConfig:
    """Merge the files in pip's order, then the variables; a file that cannot be read counts as empty, as with pip."""
    settings: dict[str, str] = {}
    for path in _files(environ):
        settings |= _read(path)
    for key, value in environ.items():
        if key.startswith("PIP_") and key != "PIP_CONFIG_FILE" and value:
            settings[key[4:].lower().replace("_", "-")] = value
    return PipConfig(
        index_url=settings.get("index-url") or settings.get("pypi-url"),
        extra_index_urls=tuple(settings.get("extra-index-url", "").split()),
        find_links=tuple(settings.get("find-links", "").split()),
        no_index=settings.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t"),
        cert=settings.get("cert"),
        client_cert=settings.get("client-cert"),
        proxy=settings.get("proxy"),
        trusted_hosts=tuple(settings.get("trusted-host", "").split()),
        timeout=_seconds(settings.get("timeout") or settings.get("default-timeout")),
    )


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    own = environ.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return
    own_home = Path(environ.get("HOME") or home())
    for folder in reversed((environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")
    if not (own and Path(own).exists()):
        yield own_home / ".pip" / "pip.conf"
        yield Path(environ.get("XDG_CONFIG_HOME") or own_home / ".config") / "pip" / "pip.conf"
    yield Path(environ.get("VIRTUAL_ENV") or sys.prefix) / "pip.conf"
    if own:
        yield Path(own)


def _read(path: Path) -> dict[str, str]:
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read_string(files.read_text(path, files.SETTINGS_BYTES, errors="replace", follow=True))
    except (OSError, Error):
        return {}
    found: dict[str, str] = {}
    for section in ("global", "install", "download"):
        if parser.has_section(section):
            found |= {key.lower().lstrip("-").replace("_", "-"): value for key, value in parser.items(section)}
    return found


def _seconds(text: str | None) -> float:
    try:
        return float(text) if text else 15.0
    except ValueError:
        return 15.0
