"""Which files of a package there are, on the indexes and in the folders that pip itself is configured for.

pip's configuration files and `PIP_…` variables are read without running pip.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.errors import ReleaseError
from patcher.homes import expanded, home
from patcher.i18n import Phrase, phrase
from patcher.worktree import files

if TYPE_CHECKING:
    from unearth import PackageFinder


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
    # As pip does: `PIP_CONFIG_FILE` replaces the files in the home folder.
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


ELSEWHERE = phrase(
    "Give the release from elsewhere: a folder of wheels in PIP_FIND_LINKS (or find-links in pip.conf), "
    "or a cache filled on another machine in UKY_PATCH_CACHE."
)


@dataclass(frozen=True, slots=True)
class File:
    """A wheel or source archive of one version."""

    version: str
    url: str
    filename: str
    hashes: Mapping[str, list[str]]
    local: Path | None
    """Its path, where it lies in a folder of this machine."""
    shown: str
    """The URL without credentials."""
    yanked: str | None
    """Why it was withdrawn ("" if no reason is given); None if it was not."""

    @property
    def is_wheel(self) -> bool:
        return self.filename.endswith(".whl")

    @property
    def is_pure(self) -> bool:
        return self.filename.endswith("-none-any.whl")


class Index:
    """The indexes and folders that pip is configured for; the network is left alone when `offline`."""

    def __init__(self, config: PipConfig, *, offline: bool = False) -> None:
        self._config = config
        self._offline = offline

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.close()

    @cached_property
    def client(self) -> Any:
        """An HTTP client with pip's proxy, certificates and trusted hosts."""
        import ssl

        from unearth.fetchers import PyPIClient

        context = ssl.create_default_context(cafile=self._config.cert)
        if self._config.cert is None and importlib.util.find_spec("certifi"):
            context.load_verify_locations(importlib.import_module("certifi").where())
        if self._config.client_cert:
            context.load_cert_chain(self._config.client_cert)
        proxy: dict[str, Any] = {"proxy": self._config.proxy} if self._config.proxy else {}
        return PyPIClient(
            trusted_hosts=self._config.trusted_hosts,
            verify=context,
            timeout=self._config.timeout,
            follow_redirects=True,
            **proxy,
        )

    @cached_property
    def _finder(self) -> PackageFinder | None:
        from unearth import PackageFinder
        from unearth.auth import MultiDomainBasicAuth

        config = self._config
        default = [source["url"] for source in PackageFinder().sources]
        indexes = [] if config.no_index else [*([config.index_url] if config.index_url else default)]
        indexes += [] if config.no_index else config.extra_index_urls
        folders = [link if "://" in link else str(expanded(link)) for link in config.find_links]
        if self._offline:
            indexes = [url for url in indexes if _is_local(url)]
            folders = [link for link in folders if _is_local(link)]
        folders = [link for link in folders if "://" in link or Path(link).exists()]
        if not indexes and not folders:
            return None
        if not all(map(_is_local, (*indexes, *folders))):
            _require_plain_netrc()
        self.client.auth = MultiDomainBasicAuth(prompting=False, index_urls=indexes)
        return PackageFinder(
            self.client,
            index_urls=indexes,
            find_links=folders,
            trusted_hosts=config.trusted_hosts,
            ignore_compatibility=True,
        )

    @property
    def places(self) -> Phrase | str:
        """The indexes and folders asked, without credentials, for messages."""
        from unearth.link import Link

        sources = self._finder.sources if self._finder is not None else []
        return ", ".join(Link(str(source["url"])).redacted for source in sources) or phrase("no index and no folder")

    def files(self, name: str) -> list[File]:
        """All files of the package, newest version first. Raises `ReleaseError` if no place could be asked."""
        if self._finder is None:
            return []
        with _Warnings() as warnings:
            try:
                packages = list(self._finder.find_all_packages(name, allow_yanked=True))
            except Exception as error:
                # The class is named and not imported: the HTTP library is loaded only where something is fetched.
                if not any(base.__name__ == "HTTPError" for base in type(error).__mro__):
                    raise
                why = str(error) or type(error).__name__
                cause = phrase("{why} (asked {places})", why=why, places=self.places)
                raise ReleaseError(_unanswered(name), cause=cause, advice=ELSEWHERE) from error
        severe = [
            # One index of several may not have the package (404); a folder of links may be gone. Other errors mean that
            # an answer is missing.
            message
            for message in warnings.messages
            if "Error(404)" not in message and "FileNotFound" not in message
        ]
        if not packages and severe:
            raise ReleaseError(_unanswered(name), cause=severe[0], advice=ELSEWHERE)
        return [
            File(
                package.version,
                package.link.url_without_fragment,
                package.link.filename,
                package.link.hash_option or {},
                package.link.file_path if package.link.is_file else None,
                package.link.redacted,
                package.link.yank_reason,
            )
            for package in packages
            if package.version is not None
        ]


def _unanswered(name: str) -> Phrase:
    return phrase("cannot ask for the releases of {name}", name=name)


def _require_plain_netrc() -> None:
    """Raise `ReleaseError` if a pipe or a device stands where the client reads its credentials without any limit."""
    path = str(expanded(os.environ.get("NETRC") or "~/.netrc"))
    try:
        files.read(path, files.SETTINGS_BYTES, follow=True)
    except (files.IrregularFileError, files.TooLargeError) as error:
        cause = phrase("{path} is no file that credentials can be read from: {why}", path=path, why=str(error))
        advice = phrase("Move {path} away, or name another file in NETRC.", path=path)
        raise ReleaseError("no package index can be asked", cause=cause, advice=advice) from error
    except OSError:  # It is not there, or is for others to read; the client goes on without it.
        return


def _is_local(url: str) -> bool:
    return url.startswith("file:") or "://" not in url


class _Warnings(logging.Handler):
    """What the finder logs instead of raising: an index that answers with an error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._logger = logging.getLogger("unearth.collector")

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def __enter__(self) -> _Warnings:
        self._was = self._logger.propagate
        self._logger.propagate = False
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._was
