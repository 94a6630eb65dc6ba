"""The sessions of Ray that a job has started: told by its processes, and noted by the program that watches it."""

from __future__ import annotations

import json
import os
import re
from typing import Any

NOTE = "sessions"
"""In a job's folder: one line of JSON for each session that a process with the job's mark has made."""
_OPTION = re.compile(rb"--session[-_](?:dir|folder)=([^\0]+)")
_IN_PATH = re.compile(rb"(/[^\0]*?/session_\d{4}-\d\d-\d\d_[\d_-]+)(?:/|\0|$)")


def session_of(pid: int) -> str | None:
    """The session's folder that a process of Ray was started for; None where it is none of Ray's."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            command = stream.read(1 << 17)
    except OSError:
        return None
    found = _OPTION.search(command) or _IN_PATH.search(command)
    return os.fsdecode(found.group(1)) if found else None


def noted(folder: str) -> list[dict[str, Any]]:
    """The sessions that were noted while the job ran: `path`, and `at`: when."""
    found = []
    try:
        with open(os.path.join(folder, NOTE), encoding="utf-8") as stream:
            for line in stream:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
    except OSError:
        pass
    return [note for note in found if isinstance(note, dict) and isinstance(note.get("path"), str)]
