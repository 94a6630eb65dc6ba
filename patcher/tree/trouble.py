"""What the operating system refused, said as a `TreeError`."""

from __future__ import annotations

import errno

from patcher.errors import TreeError
from patcher.tree.disk import IrregularFileError

_CAUSES: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "Free some space and run the command again."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space and run the command again."),
    errno.EFBIG: ("the file size limit of this process is reached", "Raise it (ulimit -f) and run the command again."),
    errno.EROFS: ("the file system is read-only", "Remount it for writing, or work on a copy (--root)."),
    errno.EACCES: ("this user lacks the right to do so", "Run as the tree's owner, or change the rights of that path."),
    errno.EPERM: (
        "the operating system forbids it: the file belongs to someone else or is immutable",
        "See `ls -l` and `lsattr` for that path; run as its owner, or clear the flag (chattr -i).",
    ),
    errno.EXDEV: (
        "it is mounted from another file system than the tree's root, so it cannot be replaced in one step",
        "Work on a copy of the tree that lies on one file system (--root).",
    ),
    errno.ELOOP: ("it is a symlink where a file was expected, or symlinks lead in a circle", "Remove the symlink."),
    errno.ENAMETOOLONG: ("the path is too long", "Check the path."),
    errno.EISDIR: ("it is a folder, not a file", "Check the path."),
    errno.EIO: ("the disk reports an input/output error", "Look at the system log; the disk may be failing."),
    errno.ESTALE: ("the network file system lost it", "Mount it again and run the command again."),
}


def tree_error(error: OSError, title: str) -> TreeError:
    """Say what could not be done (`title`), where and why, and what to do next."""
    if isinstance(error, IrregularFileError):
        why, advice = "it is no regular file", "Check the path."
    else:
        why, advice = _CAUSES.get(error.errno or 0, (error.strerror or str(error), ""))
    where = error.filename2 or error.filename
    return TreeError(title, cause=f"{where}: {why}" if where else why, advice=advice)
