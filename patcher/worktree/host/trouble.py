"""What the operating system refused before anything of the tree had changed, said as a refusal."""

from __future__ import annotations

import errno
import os

from patcher.messages import Refusal, phrase, why

KINDS = {
    errno.ENOSPC: "disk-full",
    errno.EDQUOT: "quota",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EROFS: "read-only",
}
FULL = ("disk-full", "quota")


def kind(error: OSError) -> str:
    """A word for programs; `io` for all that has no word of its own."""
    return KINDS.get(error.errno or 0, "io")


def refused(error: OSError, root: str, needed: int) -> Refusal:
    """`needed`: the bytes that there should be room for."""
    title = phrase("the files cannot be written on the host; the tree there is as it was")
    if kind(error) not in FULL:
        at = str(error.filename2 or error.filename or root)
        advice = phrase("Set that right there and run the command again.")
        return Refusal(kind(error), title, phrase("{path}: {reason}", path=at, reason=why(error)), advice)
    room = free(root)
    advice = phrase("Free some space there, or name another folder, and run the command again.")
    if kind(error) == "quota" or room is None:
        cause = phrase(
            "{path}: the quota is used up; {needed} {needed:byte|bytes} are needed", path=root, needed=needed
        )
    else:
        cause = phrase(
            "{path}: the disk is full: {free} {free:byte|bytes} free, {needed} needed",
            path=root,
            free=room,
            needed=needed,
        )
    return Refusal(kind(error), title, cause, advice)


def free(root: str) -> int | None:
    """Bytes that this user may still write; None where the file system does not say."""
    try:
        found = os.statvfs(root)
    except OSError:
        return None
    return found.f_frsize * (found.f_bavail if os.geteuid() else found.f_bfree) if found.f_blocks else None
