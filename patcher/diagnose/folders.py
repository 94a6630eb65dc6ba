"""Which files of a folder are logs of one run, and which of them are parts of one log."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import UsageError
from patcher.i18n import phrase

_NAME = re.compile(r"(?P<stem>.+\.(?:log|out|err|txt))(?:[.-](?P<turn>\d+))?(?:\.(?:gz|xz|zst))?", re.IGNORECASE)
_DATED = re.compile(r"(?P<stem>.+)\.(?:log|out|err)[.-]\d{4}-?\d\d-?\d\d\S*", re.IGNORECASE)
_HOUSEKEEPING = re.compile(r"raylet\.|gcs_server\.")
"""Logs of Ray's own processes that tell why workers ended; most of their errors are of no account."""
_ASIDE = re.compile(
    r"(?:dashboard|monitor|log_monitor|python-core-|ray_client_server|agent-|runtime_env_agent|event_|debug_state|redis"
    r"|ray_process_exit|metrics|nsight)"
)
"""Those that tell nothing of a run."""
_EVENTS = ("events", "export_events")
_NO_LOGS = ("__pycache__", "node_modules", "site-packages")
"""Folders of programs; so are those whose names begin with a dot."""
_OF_A_PROJECT = (".git", "pyproject.toml", "setup.py", "verl/__init__.py")
"""What is in a folder of sources."""
_LATEST = "session_latest"


@dataclass(frozen=True, slots=True)
class Series:
    """One log: its parts, the oldest first."""

    parts: tuple[str, ...]
    housekeeping: bool = False
    """Whether it is of Ray's own processes: only symptoms count in it, and those for why something else ended."""


def series(log: str) -> Sequence[Series]:
    """The logs that a name stands for: a file, `-`, or all of a folder's, Ray's latest session first of all.

    Raises UsageError for a folder without logs.
    """
    path = Path(log)
    if log == "-" or not path.is_dir():
        return [Series((log,))]
    top = path / _LATEST if (path / _LATEST).is_dir() else path
    top = top / "logs" if (top / "logs").is_dir() else top
    parts: dict[str, list[tuple[int, float, str]]] = {}
    for folder, folders, names in os.walk(top):
        folders[:] = [one for one in folders if may_hold_logs(one)]
        for name in sorted(names):
            if _ASIDE.match(name):
                continue
            if (found := _NAME.fullmatch(name)) or (found := _DATED.fullmatch(name)):
                file = Path(folder) / name
                with contextlib.suppress(OSError):
                    told = file.stat()
                    if stat.S_ISREG(told.st_mode) and told.st_size:
                        turn = int(found.groupdict().get("turn") or 0)
                        parts.setdefault(f"{folder}/{found['stem']}", []).append((-turn, told.st_mtime, str(file)))
    if not parts:
        raise UsageError(
            phrase("there are no logs in {folder}", folder=path),
            advice="Logs are files that end in .log, .out, .err or .txt, packed and rotated ones too.",
        )
    return [
        Series(tuple(name for _, _, name in sorted(found)), bool(_HOUSEKEEPING.match(Path(stem).name)))
        for stem, found in sorted(parts.items())
    ]


def may_hold_logs(folder: str) -> bool:
    """Whether a folder of this name, met below another, is looked into for logs."""
    return not folder.startswith(".") and folder not in (*_EVENTS, *_NO_LOGS)


def is_named_like_a_log(name: str) -> bool:
    """`train.log`, `slurm-12.out.gz`, `run.err.1`, `notes.txt`; not what Ray writes for itself."""
    return not _ASIDE.match(name) and bool(_NAME.fullmatch(name) or _DATED.fullmatch(name))


def is_of_sources(folder: Path) -> bool:
    """Whether a folder is that of a project, so that text files in it are of any kind."""
    return any((folder / one).exists() for one in _OF_A_PROJECT)
