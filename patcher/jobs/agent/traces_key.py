"""The key that seals what the program beside a job notes, kept where no tree and no host's folder reaches.

A job's folder lies in the tree, and a tree is data: it may come with a job's folder that somebody made up, whose notes
name another program's shared memory. So what was noted counts only with a seal that this user's own key gives.
"""

from __future__ import annotations

import os
import stat

from patcher.worktree import files

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
