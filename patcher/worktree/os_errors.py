"""Errors of the operating system as messages: a word for programs, the cause, and what to do next."""

from __future__ import annotations

import errno
from typing import NamedTuple

from patcher.messages import Message, Refusal, phrase, why
from patcher.worktree import disk
from patcher.worktree.files import IrregularFileError, TooLargeError

FULL = ("disk-full", "quota")
"""The kinds of error that freeing space solves."""
OTHER = "io"
"""The kind of all errors without one of their own."""


class _Cause(NamedTuple):
    kind: str
    why: Message
    advice: Message


_SPACE = phrase("Free some space and run the command again.")
_CAUSES: dict[int, _Cause] = {
    errno.ENOSPC: _Cause("disk-full", phrase("the disk is full"), _SPACE),
    errno.EDQUOT: _Cause("quota", phrase("the disk quota is used up"), _SPACE),
    errno.EFBIG: _Cause(
        OTHER,
        phrase("the file size limit of this process is reached"),
        phrase("Raise it (ulimit -f) and run the command again."),
    ),
    errno.EROFS: _Cause(
        "read-only",
        phrase("the file system is read-only"),
        phrase("Remount it for writing, or work on a copy (--root)."),
    ),
    errno.EACCES: _Cause(
        "permission",
        phrase("this user lacks the right to do so"),
        phrase("Run as the tree's owner, or change the rights of that path."),
    ),
    errno.EPERM: _Cause(
        "permission",
        phrase("the operating system forbids it: the file belongs to someone else or is immutable"),
        phrase("See `ls -l` and `lsattr` for that path; run as its owner, or clear the flag (chattr -i)."),
    ),
    errno.EXDEV: _Cause(
        OTHER,
        phrase("it is mounted from another file system than the tree's root, so it cannot be replaced in one step"),
        phrase("Work on a copy of the tree that lies on one file system (--root)."),
    ),
    errno.ELOOP: _Cause(
        OTHER,
        phrase("it is a symlink where a file was expected, or symlinks lead in a circle"),
        phrase("Remove the symlink."),
    ),
    errno.ENOTDIR: _Cause(OTHER, phrase("it is no folder"), phrase("Look at what it is, and remove it.")),
    errno.ENAMETOOLONG: _Cause(OTHER, phrase("the path is too long"), phrase("Check the path.")),
    errno.EISDIR: _Cause(OTHER, phrase("it is a folder, not a file"), phrase("Check the path.")),
    errno.EIO: _Cause(
        OTHER,
        phrase("the disk reports an input/output error"),
        phrase("Look at the system log; the disk may be failing."),
    ),
    errno.ESTALE: _Cause(
        OTHER, phrase("the network file system lost it"), phrase("Mount it again and run the command again.")
    ),
}


def kind(error: OSError) -> str:
    """The kind of error, for programs: disk-full, quota, permission, read-only, or io for all others."""
    found = _CAUSES.get(error.errno or 0)
    return OTHER if found is None else found.kind


def cause_and_advice(error: OSError) -> tuple[Message, Message | None]:
    """The path and the reason of the error, and what to do next; None if no advice is known."""
    found = _CAUSES.get(error.errno or 0)
    reason, advice = (why(error), None) if found is None else (found.why, found.advice)
    if isinstance(error, IrregularFileError) and error.errno != errno.ELOOP:
        reason, advice = phrase("it is no regular file"), phrase("Check the path.")
    elif isinstance(error, TooLargeError):
        reason, advice = phrase("it is larger than any file that is read there"), phrase("Check the path.")
    where = error.filename2 or error.filename
    return (phrase("{path}: {why}", path=where, why=reason), advice) if where else (reason, advice)


def refused(error: OSError, title: Message) -> Refusal:
    """The refusal with this title, which says what could not be done, and the cause and advice of the error."""
    return Refusal(kind(error), title, *cause_and_advice(error))


def refusal(error: OSError, root: str, needed: int) -> Refusal:
    """The refusal for files that a migration cannot write, while the tree at `root` is as it was.

    `needed`: the bytes that the migration needs; said if the disk is full.
    """
    title = phrase("the files cannot be written on the host; the tree there is as it was")
    if kind(error) not in FULL:
        at = str(error.filename2 or error.filename or root)
        advice = phrase("Set that right there and run the command again.")
        return Refusal(kind(error), title, phrase("{path}: {reason}", path=at, reason=why(error)), advice)
    room = disk.free_bytes(root)
    advice = phrase("Free some space there, or name another folder, and run the command again.")
    if kind(error) == "quota" or room is None:
        cause = phrase(
            "{path}: the quota is used up; {needed} {needed:byte|bytes} are needed", path=root, needed=needed
        )
    else:
        cause = phrase(
            "{path}: the disk is full: {free:.1f} MB free, {needed:.1f} MB needed",
            path=root,
            free=room / 1e6,
            needed=needed / 1e6,
        )
    return Refusal(kind(error), title, cause, advice)
