"""Whether the packages of a host have a symbol, such as `vllm.lora.models.LoRAModel`.

The answer comes from the sources of the release that is installed there, else from the installed files. It stays true
as long as these do not change, so answers are cached from one run to the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import ReleaseError
from patcher.packages.agent.folders import distribution_of
from patcher.packages.agent.installed import Installed
from patcher.packages.environment import Environment, is_release, stamp_of
from patcher.packages.releases import sources
from patcher.packages.releases.cache import cache_root, stamps
from patcher.remote.connection import Connection
from patcher.remote.sources import package_sources
from patcher.terminal.progress import progress
from patcher.worktree import files
from patcher.worktree.hashing import digest_of
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.analysis.symbols import Symbols


class HostLookup:
    """A function that tells whether a host's packages have a symbol; None if that cannot be known.

    A release is looked up in its published sources, a nightly or an editable install in the files on the host. Each
    package is fetched at the first question that needs it. Without a connection, `there` is this machine.
    """

    def __init__(self, there: Environment, here: Environment, connection: Connection | None) -> None:
        self._there, self._here, self._connection = there, here, connection
        self._known: dict[str, _Package] = {}
        self._knew_all = True

    def __call__(self, symbol: str) -> bool | None:
        module = symbol.partition(".")[0]
        if module not in self._known:
            self._known[module] = _package(module, self._there, self._here, self._connection)
        answer = self._known[module].has(symbol)
        self._knew_all = self._knew_all and answer is not None
        return answer

    @property
    def lasting(self) -> bool:
        """Whether all answers so far stay true as long as the versions there and the packages here do not change."""
        return self._knew_all and all(package.lasting for package in self._known.values())


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the sources of a package are."""

    folder: Path
    stamp: str = ""
    """Identifies their content: another content has another stamp. "" if nothing does."""


class _Package:
    """The symbols of one package. Its sources are found at the first question without a cached answer."""

    def __init__(self, find: Callable[[], _Sources | None], stamp: str = "") -> None:
        """`stamp`: the stamp that the sources will have; answers are cached under it. "": answers are not cached."""
        self._find = find
        self._answers = _KeptAnswers(stamp) if stamp else None
        self._stamp = stamp

    @property
    def lasting(self) -> bool:
        """Whether its answers stay true: for a release they do, for files on the host that may change they do not."""
        return self._answers is not None

    def has(self, symbol: str) -> bool | None:
        if self._answers is not None and symbol in self._answers:
            return self._answers[symbol]
        if self._symbols is None:
            return None
        answer = self._symbols.has(symbol)
        if self._answers is not None:
            self._answers.learn(symbol, answer)
        return answer

    @cached_property
    def _symbols(self) -> Symbols | None:
        sources = self._find()
        if sources is not None and sources.stamp != self._stamp:
            self._answers = None  # Other sources than expected: the release could not be fetched.
        if sources is None:
            return None
        from patcher.analysis.symbols import Symbols  # Most questions are answered from the cache.

        return Symbols(sources.folder)


def _package(module: str, there: Environment, here: Environment, connection: Connection | None) -> _Package:
    """The package that has the module: from the release's sources, from the same release here, or from the host."""
    name = distribution_of(module)
    installed = there.packages.get(name)
    if installed is None:
        return _Package(lambda: None)
    if connection is None:
        stamp = stamp_of(installed)
        return _Package(lambda: _Sources(installed.location, stamp) if installed.location is not None else None, stamp)
    if not is_release(installed):
        found = _on_host(installed, connection)
        return _Package(lambda: found, found.stamp if found is not None else "")
    release = installed.version.partition("+")[0]
    own = here.packages.get(name)
    same = own is not None and own.version == installed.version and is_release(own)

    def find() -> _Sources | None:
        if (folder := _of_release(name, release, module)) is not None:
            return _Sources(folder, f"{name}=={release}")
        if own is not None and own.location is not None and same:
            return _Sources(own.location)
        return _on_host(installed, connection)

    return _Package(find, f"{name}=={release}")


def _of_release(name: str, release: str, module: str) -> Path | None:
    try:
        folder = sources(name, release, progress=progress) / module
    except ReleaseError:
        return None
    return folder if folder.is_dir() else None


def _on_host(installed: Installed, connection: Connection) -> _Sources | None:
    if installed.location is None:
        return None
    folder = package_sources(connection, str(installed.location))
    return _Sources(folder, folder.parent.name) if folder is not None else None


class _KeptAnswers(dict[str, bool | None]):
    """The cached answers for the sources with this stamp."""

    def __init__(self, stamp: str) -> None:
        key = digest_of(f"{stamp}\n{_reader_stamp()}".encode())[:24]
        self._file = cache_root() / "answers" / f"{key}.json"
        with suppress(OSError, ValueError, AttributeError, TypeError, RecursionError):
            known = parse_json(files.read(self._file, files.SETTINGS_BYTES))
            self.update((symbol, answer) for symbol, answer in known.items() if answer in (True, False, None))

    def learn(self, symbol: str, answer: bool | None) -> None:
        """Keep an answer. If the cache cannot be written, it is only slower next time."""
        self[symbol] = answer
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole_file(self._file, json.dumps(self).encode())


def _reader_stamp() -> str:
    """What identifies the code that finds symbols: answers of an older version do not count."""
    return json.dumps(stamps(Path(__file__).parents[1] / "analysis/symbols"))
