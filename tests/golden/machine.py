"""The folder and the variables in which everything runs, so that neither the machine nor the caller's shell counts."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from tempfile import mkdtemp

REPOSITORY = Path(__file__).parent.parent.parent
_LINKED = ("patcher", "patches", "settings", "symptoms", "templates", "docs")
"""What the tool reads of a checkout; linked, so that its paths are as long on every machine."""
_NUMBERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(\bmain@)[0-9a-f]{7,40}"), r"\g<1>000000000"),
    (re.compile(r"\b\d+\.\d+(?=\s*(s\b|秒))"), "0.0"),
    (re.compile(r"(\"(?:seconds|age|silent)\": )[\d.e-]+"), r"\g<1>0"),
    (re.compile(r"\b\d+ (?:h|min|小时|分) \d+ (?:min|s|分|秒)"), "0 s"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "2000-01-01T00:00:00"),
)
"""What differs from one run to the next: commits, seconds, and moments."""


def cache() -> Path:
    """The folder of released packages, as the caller has it."""
    named = os.environ.get("UKY_PATCH_CACHE")
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(above) / "uky-patch"


@contextmanager
def place() -> Iterator[Path]:
    """A folder for all that is made, whose path has one length; the process's variables are replaced for good."""
    releases = cache().absolute()
    found = Path(mkdtemp(prefix="uky-golden-", dir="/tmp"))
    for name in _LINKED:
        (found / name).symlink_to(REPOSITORY / name)
    for name in ("home", "trees", "forks", "envs", "out", "bin"):
        (found / name).mkdir()
    os.environ.clear()
    os.environ.update(variables(found, releases))
    try:
        yield found
    finally:
        os.chdir("/")
        shutil.rmtree(found, ignore_errors=True)


def variables(place: Path, releases: Path, language: str = "C.UTF-8") -> dict[str, str]:
    """A shell's variables; the cache of releases is the caller's, what `check` remembers is not."""
    return {
        "PATH": f"{place / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(place / "home"),
        "VIRTUAL_ENV": str(place / "envs/train"),
        "UKY_PATCH_CACHE": str(releases),
        "LC_ALL": language,
        "COLUMNS": "100",
        "TERM": "dumb",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": of for who in ("AUTHOR", "COMMITTER") for what, of in _SOMEBODY.items()},
    }


_SOMEBODY = {"NAME": "somebody", "EMAIL": "somebody@example.org", "DATE": "2025-12-01T12:00:00Z"}


def settled(text: str, place: Path, also: Mapping[str, str] | None = None) -> str:
    """Without what differs from machine to machine or run to run. `also`: further texts, and what replaces each."""
    names = {
        **(also or {}),
        str(place): "/PLACE",
        str(REPOSITORY): "/REPOSITORY",
        os.environ["UKY_PATCH_CACHE"]: "/CACHE",
        sys.executable: "/PYTHON",
        sys.prefix: "/PREFIX",
        date.today().isoformat(): "TODAY",
        sys.base_prefix + "/": "/BASE/" if sys.base_prefix != "/usr" else "/usr/",
    }
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    for pattern, instead in _NUMBERS:
        text = pattern.sub(instead, text)
    return text
