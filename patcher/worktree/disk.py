"""Every call that changes a tree on the disk: the tree here, the tree on a host, the tree on a node.

The engine changes files through this module and through `patcher.worktree.files.write_whole_file` alone, so a test that
swaps the `os` of these modules sees, counts and fails every operation. Nothing here follows a symlink in the last part
of a path, and no file of a tree is written in place.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterator, Union

from patcher.worktree import files
from patcher.worktree.files import SOURCE_BYTES, IrregularFileError, inherit_owner, read_and_status

Place = Union[str, "os.PathLike[str]"]

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_ENDS_A_COPY = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Where a link is refused for one of these, a copy would be refused too."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_PIECE = 1 << 20


def status(path: Place) -> os.stat_result | None:
    """What is at `path` itself, a symlink not followed; None when nothing is."""
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def read(path: Place, most: int = SOURCE_BYTES) -> tuple[bytes, os.stat_result]:
    """A regular file's bytes and status.

    Raises:
        OSError: also when `path` is a symlink or no regular file, or holds more than `most` bytes.
    """
    return read_and_status(path, most)


def create(path: Place, content: bytes, *, mode: int = 0o666, like: os.stat_result | None = None) -> None:
    """Write a file that must not exist yet. Not synced.

    It gets the mode and owner of the file `like`; without one `mode`, and a file that root makes then belongs to the
    folder's owner.
    """
    fd = os.open(path, _NEW, mode if like is None else 0o600)
    try:
        _write(fd, content)
        if like is None:
            inherit_owner(path)
        else:
            _take_after(fd, like)
    finally:
        os.close(fd)


def create_anew(path: Place, content: bytes, *, mode: int | None = None) -> None:
    """As `create`, and have it on the disk; a file that an interrupted run has left there goes first.

    `mode`: the permission bits, whatever the umask is.
    """
    remove(path)
    create(path, content, mode=0o666 if mode is None else 0o600)
    if mode is not None:
        set_mode(path, mode)
    sync(path)


def append(path: Place, offset: int, content: bytes) -> None:
    """Write `content` at `offset` of a file, which ends there: a piece of a file that comes in."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path))
        os.ftruncate(fd, offset)
        os.lseek(fd, offset, os.SEEK_SET)
        _write(fd, content)
    finally:
        os.close(fd)


def copy(source: Place, target: Place, mode: int) -> None:
    """A new file at `target` with the content of the regular file `source`, its times, and `mode`."""
    origin = files.open_regular(source)
    try:
        found = os.fstat(origin)
        remove(target)
        fd = os.open(target, _NEW, 0o600)
        try:
            piece = os.read(origin, _PIECE)
            while piece:
                _write(fd, piece)
                piece = os.read(origin, _PIECE)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(origin)


def copy_attributes(source: Place, target: Place) -> None:
    """Copy extended attributes, access lists among them, where the file system and the user's rights allow it."""
    try:
        names = os.listxattr(source, follow_symlinks=False)
    except OSError:
        return
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False), follow_symlinks=False)
        except OSError:
            pass


def symlink(target: str, path: Place) -> None:
    """A symlink anew."""
    remove(path)
    os.symlink(target, path)


def link(path: Place, second_name: Place) -> None:
    """Give what is at `path` a second name, so that it outlives its replacement; a copy where links are refused.

    Raises:
        OSError: there is something at `second_name`, or neither works.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        symlink(os.readlink(path), second_name)
        return
    try:
        os.link(path, second_name, follow_symlinks=False)
    except OSError as error:
        if error.errno in _ENDS_A_COPY:
            raise
        copy(path, second_name, stat.S_IMODE(found.st_mode))
        if os.geteuid() == 0:
            give(second_name, found.st_uid, found.st_gid)
        sync(second_name)


def sync(path: Place) -> None:
    """Have a file's content, or a folder's entries, on the disk before going on."""
    fd = os.open(path, _READ)
    try:
        files.sync(fd)
    finally:
        os.close(fd)


def replace(source: Place, target: Place) -> None:
    """Put `source` in the place of `target` in one step; both are on one file system."""
    os.replace(source, target)


def move(path: Place, target: Place) -> None:
    """As `replace`; from one file system to another, a copy that is whole before it has its name."""
    try:
        os.replace(path, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        found = os.lstat(path)
        folder, name = os.path.split(os.fspath(target))
        beside = os.path.join(folder, ".uky-patch." + name[:200])
        if stat.S_ISLNK(found.st_mode):
            symlink(os.readlink(path), beside)
        else:
            copy(path, beside, stat.S_IMODE(found.st_mode))
        os.replace(beside, target)
        os.unlink(path)


def set_mode(path: Place, mode: int) -> None:
    """Set the permission bits of a file of ours."""
    os.chmod(path, mode)


def give(path: Place, user: int, group: int) -> None:
    """Have a file, or a link itself, belong to somebody, where that is allowed: on many network file systems root
    has no more rights than the user `nobody`.
    """
    try:
        os.chown(path, user, group, follow_symlinks=False)
    except PermissionError:
        pass


def remove(path: Place) -> None:
    """Remove a file or link; nothing to remove is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def remove_bytecode(path: Place) -> None:
    """Remove what Python has compiled from the file at `path`: its own check goes by second and size alone.

    For example `__pycache__/worker.cpython-311.pyc` and `worker.cpython-311.opt-1.pyc` beside `worker.py`.
    """
    folder, name = os.path.split(os.fspath(path))
    if name.endswith(".py"):
        cache = os.path.join(folder, "__pycache__")
        try:
            compiled = names(cache)
        except PermissionError:
            return  # Nor can this user's Python read it.
        for one in compiled:
            if one.endswith(".pyc") and one.split(".")[0] == name[:-3]:
                remove(os.path.join(cache, one))


def make_folder(path: Place) -> None:
    """Make a folder; one that is there already is fine.

    Raises:
        NotADirectoryError: something else is there, also a symlink to a folder: what is put there would leave the tree.
    """
    try:
        os.mkdir(path)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", os.fspath(path)) from None
    else:
        inherit_owner(path)


def make_folders(path: str, made: list[str] | None = None, *, mode: int = 0o777) -> None:
    """Make a folder and those above it, as far as they are missing; the new ones are added to `made`.

    `mode` is that of the last one. A symlink to a folder counts as one: who calls has seen that it stays in the tree.
    """
    if os.path.isdir(path):
        return
    make_folders(os.path.dirname(path), made)
    try:
        os.mkdir(path, mode)
        if made is not None:
            made.append(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def remove_folder(path: Place) -> bool:
    """Remove a folder if it is empty; one that is not is left as it is. Whether there is none now.

    Raises:
        OSError: it is empty, and cannot be removed.
    """
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        if error.errno not in _NOT_THERE:
            raise
    return True


def remove_empty(path: str) -> bool:
    """Remove a folder in which there are only folders. Whether it is gone."""
    for entry in list(os.scandir(path)):
        if not entry.is_dir(follow_symlinks=False) or not remove_empty(entry.path):
            return False
    return remove_folder_if_allowed(path)


def remove_folder_if_allowed(path: Place) -> bool:
    """As `remove_folder`; an empty folder does no harm where it stays."""
    try:
        return remove_folder(path)
    except OSError:
        return False


def remove_all(path: str) -> None:
    """Remove a folder of ours and all in it; symlinks are removed, not followed."""
    found = status(path)
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        remove(path)
        return
    for name in os.listdir(path):
        remove_all(os.path.join(path, name))
    os.rmdir(path)


def names(folder: Place) -> list[str]:
    """The names in a folder, sorted; none when it does not exist, or is a symlink to one."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (*_NOT_THERE, errno.ELOOP):
            return []
        raise
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def files_below(folder: str, below: str = "") -> Iterator[str]:
    """What lies below a folder and is no folder, as paths below it with forward slashes; symlinks are not followed."""
    try:
        found = list(os.scandir(os.path.join(folder, below) if below else folder))
    except OSError as error:
        if error.errno in _NOT_THERE:
            return
        raise
    for entry in found:
        path = below + "/" + entry.name if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(folder, path)
        else:
            yield path


def folders(folder: str) -> list[str]:
    """The names of the folders in a folder, symlinks left out."""
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        if error.errno in _NOT_THERE:
            return []
        raise


def reserve(path: Place, size: int) -> None:
    """Take `size` bytes of the disk, to be freed by removing the file."""
    remove(path)
    create(path, b"\0" * size, mode=0o600)


def free_bytes(folder: Place) -> int | None:
    """Bytes that this user may still write below `folder`; None where the file system does not say."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    if not found.f_blocks:
        return None
    return found.f_frsize * (found.f_bfree if os.geteuid() == 0 else found.f_bavail)


def may_write(path: Place) -> bool:
    """Whether this user's rights allow writing to a file, or making entries in a folder."""
    return os.access(path, os.W_OK)


def _write(fd: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _take_after(fd: int, like: os.stat_result) -> None:
    mode = stat.S_IMODE(like.st_mode)
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError:
            mode &= 0o777  # Without setuid and setgid: the file has another owner than the one who gave it them.
            try:
                os.fchown(fd, -1, like.st_gid)
            except PermissionError:
                pass
    os.fchmod(fd, mode)
