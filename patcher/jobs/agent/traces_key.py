"""The notes of what a job made elsewhere, and the key that seals them, kept where no tree and no host's folder reaches.

A job's folder lies in the tree, and a tree is data: it may come with a job's folder that somebody made up, whose notes
name another program's shared memory. So what was noted counts only with a seal that this user's own key gives.
"""

from __future__ import annotations

import hmac
import os
import stat
from typing import Any

from patcher.jobs.agent import traces
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

PLACE = "~/.local/state/uky-patch/jobs.key"
_LENGTH = 32


def key(*, make: bool = False) -> bytes:
    """The key of this user on this machine; with `make` a new one where there is none.

    Empty where there is none and none can be made: then notes tie nothing to a job.
    """
    path = os.path.expanduser(PLACE)
    try:
        content, found = files.read_and_status(path, _LENGTH)
        private = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if len(content) == _LENGTH and private:
            return content
    except OSError:
        pass
    if not make:
        return b""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        files.replace(path, os.urandom(_LENGTH), mode=0o600)
    except OSError:
        return b""
    return key()


def noted(folder: str, *kinds: str) -> list[dict[str, Any]]:
    """What `traces` noted of the job in `folder`, of these kinds, since the machine was started."""
    found: list[dict[str, Any]] = []
    secret = key()
    for line in traces.lines_of(os.path.join(folder, traces.NOTE)) if secret else ():
        try:
            note = parse_json(line)
            sealed = hmac.compare_digest(str(note["seal"]), traces.seal(folder, note, secret))
        except (ValueError, LookupError, TypeError):
            continue
        if sealed and note["kind"] in kinds:
            found.append(note)
    return found
