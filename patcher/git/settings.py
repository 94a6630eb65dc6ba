"""Which settings of a checkout's own git configuration reach git: a list of those that are known to be safe.

`.git/config` may come from somebody else and can name programs under a dozen keys, and more with each release of git:
`core.fsmonitor`, `filter.*.clean`, `core.hooksPath`, `gpg.program`, an `include.path` that brings any of them. So git
never reads it. It gets the settings below, which say how files are stored and who commits.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from patcher.worktree import files

_STORING = (
    "core.autocrlf core.bigfilethreshold core.checkroundtripencoding core.checkstat core.compression core.eol "
    "core.filemode core.ignorecase core.logallrefupdates core.loosecompression core.precomposeunicode "
    "core.protecthfs core.protectntfs core.repositoryformatversion core.safecrlf core.sharedrepository "
    "core.sparsecheckout core.sparsecheckoutcone core.symlinks core.trustctime index.sparse index.version "
    "extensions.compatobjectformat extensions.noop extensions.noop-v1 extensions.objectformat "
    "extensions.preciousobjects extensions.relativeworktrees"
)
_PEOPLE = "user.name user.email user.useconfigonly author.name author.email committer.name committer.email"
_KEPT = frozenset(f"{_STORING} {_PEOPLE}".split())
_FILES = frozenset(("core.attributesfile", "core.excludesfile"))
"""Settings that name a file of patterns. They count if that is a regular file and no larger than a settings file."""
_REMOTE = re.compile(r"remote\.(.+)\.url", re.DOTALL)
"""The URL of a remote. `uky-patch bundle` shows it, and the user's own `includeIf "hasconfig:…"` may depend on it.
Nothing is ever fetched from it."""
_LEFT_OUT = frozenset(("extensions.partialclone", "extensions.worktreeconfig"))
"""Extensions that need not reach git: nothing is fetched, and we read `config.worktree` ourselves."""


def parse(listed: bytes) -> list[tuple[str, str]]:
    """The settings that `git config --list -z` prints, as pairs of key and value, in order.

    Git writes the first and last part of a key in lower case. A key without a value, as in `[core] bare`, means true.
    """
    entries = (os.fsdecode(entry) for entry in listed.split(b"\0") if entry)
    return [(key, value if is_set else "true") for key, is_set, value in (entry.partition("\n") for entry in entries)]


def trusted(settings: Iterable[tuple[str, str]], top: Path) -> list[tuple[str, str]]:
    """Those of a checkout's settings that git may get. Relative paths in them start at `top`, its top folder."""

    def counts(key: str, value: str) -> bool:
        if key in _FILES:
            return _is_plain(top, value)
        return key in _KEPT or (key == "extensions.refstorage" and value in ("files", "reftable"))

    return [(key, value) for key, value in settings if counts(key, value) or _REMOTE.fullmatch(key)]


def unknown_extensions(settings: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The keys `extensions.*` that are not known here. Without them git could damage the repository."""
    for key, value in settings:
        known = key in _KEPT or key in _LEFT_OUT
        if key.startswith("extensions.") and not known and (key, value) not in trusted([(key, value)], Path()):
            yield key


def remotes(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The URL of each remote, by its name."""
    found: dict[str, str] = {}
    for key, value in settings:
        if match := _REMOTE.fullmatch(key):
            found.setdefault(match[1], value)
    return found


def filters(settings: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The names of the content filters that the settings define: `lfs` of `filter.lfs.clean`."""
    return frozenset(key.split(".", 1)[1].rpartition(".")[0] for key, _ in settings if key.startswith("filter."))


def dump(settings: Iterable[tuple[str, str]]) -> bytes:
    """A git configuration file with these settings; the inverse of `parse`."""
    lines = []
    for key, value in settings:
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        lines.append(f"[{section}{f' {_quoted(subsection)}' if subsection else ''}]\n\t{name} = {_quoted(value)}\n")
    return os.fsencode("".join(lines))


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _is_plain(top: Path, name: str) -> bool:
    try:
        found = (top / Path(name).expanduser()).stat()
    except (OSError, ValueError, RuntimeError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= files.SETTINGS_BYTES
