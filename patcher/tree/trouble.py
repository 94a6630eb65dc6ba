"""What the operating system refused, said as a `TreeError`."""

from __future__ import annotations

import errno

from patcher.errors import TreeError
from patcher.i18n import Phrase, Phrases, listed, phrase
from patcher.worktree.files import IrregularFileError, TooLargeError

_CAUSES: dict[int, tuple[Phrase | Phrases, Phrase | str]] = {
    errno.ENOSPC: (phrase("the disk is full"), phrase("Free some space and run the command again.")),
    errno.EDQUOT: (phrase("the disk quota is used up"), phrase("Free some space and run the command again.")),
    errno.EFBIG: (
        phrase("the file size limit of this process is reached"),
        phrase("Raise it (ulimit -f) and run the command again."),
    ),
    errno.EROFS: (
        phrase("the file system is read-only"),
        phrase("Remount it for writing, or work on a copy (--root)."),
    ),
    errno.EACCES: (
        phrase("this user lacks the right to do so"),
        phrase("Run as the tree's owner, or change the rights of that path."),
    ),
    errno.EPERM: (
        phrase("the operating system forbids it: the file belongs to someone else or is immutable"),
        phrase("See `ls -l` and `lsattr` for that path; run as its owner, or clear the flag (chattr -i)."),
    ),
    errno.EXDEV: (
        phrase("it is mounted from another file system than the tree's root, so it cannot be replaced in one step"),
        phrase("Work on a copy of the tree that lies on one file system (--root)."),
    ),
    errno.ELOOP: (
        phrase("it is a symlink where a file was expected, or symlinks lead in a circle"),
        phrase("Remove the symlink."),
    ),
    errno.ENOTDIR: (phrase("it is no folder"), phrase("Look at what it is, and remove it.")),
    errno.ENAMETOOLONG: (phrase("the path is too long"), phrase("Check the path.")),
    errno.EISDIR: (phrase("it is a folder, not a file"), phrase("Check the path.")),
    errno.EIO: (
        phrase("the disk reports an input/output error"),
        phrase("Look at the system log; the disk may be failing."),
    ),
    errno.ESTALE: (phrase("the network file system lost it"), phrase("Mount it again and run the command again.")),
}


def tree_error(error: OSError, title: Phrase) -> TreeError:
    """Say what could not be done (`title`), where and why, and what to do next."""
    cause, advice = cause_and_advice(error)
    return TreeError(title, cause=cause, advice=advice)


def cause_and_advice(error: OSError) -> tuple[Phrase | Phrases, Phrase | str]:
    """Where the operating system refused and why, and what to do next ("" where nothing is known)."""
    why, advice = _CAUSES.get(error.errno or 0, (listed(error.strerror or str(error)), ""))
    if isinstance(error, IrregularFileError) and error.errno != errno.ELOOP:
        why, advice = phrase("it is no regular file"), phrase("Check the path.")
    elif isinstance(error, TooLargeError):
        why, advice = phrase("it is larger than any file that is read there"), phrase("Check the path.")
    where = error.filename2 or error.filename
    return phrase("{path}: {why}", path=where, why=why) if where else why, advice
