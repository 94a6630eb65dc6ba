"""All operations that change a tree on the disk.

The engine changes files only through this module and `patcher.worktree.files.write_whole_file`. So a test can replace
the `os` of these two modules to count every operation and make any of them fail; that is why some functions here are a
single call. Nothing here follows a symlink in the last part of a path, and no file of a tree is written in place.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterator, Union

from patcher.worktree import files
from patcher.worktree.files import SOURCE_BYTES, inherit_owner, read_and_status

Place = Union[str, "os.PathLike[str]"]

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_COPY_FAILS_TOO = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""If a hard link fails with one of these, a copy would fail as well."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_PIECE = 1 << 20


def status(path: Place) -> os.stat_result | None:
    """The status of what is at `path`, without following a symlink; None if there is nothing."""
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def read(path: Place, most: int = SOURCE_BYTES) -> tuple[bytes, os.stat_result]:
    """The bytes and the status of a regular file.

    Raises:
        OSError: it cannot be read, is a symlink or no regular file, or has more than `most` bytes.
    """
    return read_and_status(path, most)


def create(path: Place, content: bytes, *, mode: int = 0o666, like: os.stat_result | None = None) -> None:
    """Write a file that must not exist yet. It is not synced.

    It gets the mode and owner of the file with the status `like`. Without `like` it gets `mode`, less the umask, and
    a file that root makes belongs to the owner of its folder.
    """
    fd = os.open(path, _NEW, mode if like is None else 0o600)
    try:
        files.write_all(fd, content)
        if like is None:
            inherit_owner(path)
        else:
            _take_after(fd, like)
    finally:
        os.close(fd)


def create_anew(path: Place, content: bytes, *, mode: int | None = None) -> None:
    """Write a file and sync it; one that is there already is removed first.

    `mode`: the permission bits, whatever the umask is.
    """
    remove(path)
    create(path, content, mode=0o666 if mode is None else 0o600)
    if mode is not None:
        set_mode(path, mode)
    sync(path)


def append(path: Place, offset: int, content: bytes) -> None:
    """Write `content` into a file at `offset`, and cut off what was behind that. For a file that arrives in pieces."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise files.not_regular(path)
        os.ftruncate(fd, offset)
        os.lseek(fd, offset, os.SEEK_SET)
        files.write_all(fd, content)
    finally:
        os.close(fd)


def copy(source: Place, target: Place, mode: int) -> None:
    """Copy the content and times of the regular file `source` to a new file at `target`, with the mode `mode`."""
    origin = files.open_regular(source)
    try:
        found = os.fstat(origin)
        remove(target)
        fd = os.open(target, _NEW, 0o600)
        try:
            piece = os.read(origin, _PIECE)
            while piece:
                files.write_all(fd, piece)
                piece = os.read(origin, _PIECE)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(origin)


def copy_attributes(source: Place, target: Place) -> None:
    """Copy extended attributes, such as access control lists, as far as the file system and the rights allow it."""
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
    """Make a symlink; a file or link that is there already is removed first."""
    remove(path)
    os.symlink(target, path)


def link(path: Place, second_name: Place) -> None:
    """Keep the file or link at `path` under a second name: by a hard link, or a copy where the file system has none.

    Raises:
        OSError: something is at `second_name`, or neither works.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        symlink(os.readlink(path), second_name)
        return
    try:
        os.link(path, second_name, follow_symlinks=False)
    except OSError as error:
        if error.errno in _COPY_FAILS_TOO:
            raise
        copy(path, second_name, stat.S_IMODE(found.st_mode))
        if os.geteuid() == 0:
            give(second_name, found.st_uid, found.st_gid)
        sync(second_name)


def sync(path: Place) -> None:
    """Wait until a file's content, or a folder's entries, are on the disk."""
    fd = os.open(path, _READ)
    try:
        files.sync(fd)
    finally:
        os.close(fd)


def replace(source: Place, target: Place) -> None:
    """Rename `source` to `target`, which is replaced in one step. Both must be on one file system."""
    os.replace(source, target)


def move(path: Place, target: Place) -> None:
    """As `replace`, also between file systems: then the copy is whole before it gets its name."""
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
    """Set the permission bits of a file, which must be no symlink."""
    os.chmod(path, mode)


def give(path: Place, user: int, group: int) -> None:
    """Change the owner of a file or a link itself. No error if that is not allowed: see `inherit_owner` of `files`."""
    try:
        os.chown(path, user, group, follow_symlinks=False)
    except PermissionError:
        pass


def remove(path: Place) -> None:
    """Remove a file or link if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def remove_bytecode(path: Place) -> None:
    """Remove bytecode that Python would take for that of the Python file at `path`, though it is of an earlier text.

    It is in a file such as `__pycache__/worker.cpython-311.opt-1.pyc`. What Python compiles anew anyway stays: some
    forks have bytecode in git.
    """
    folder, name = os.path.split(os.fspath(path))
    if name.endswith(".py"):
        cache = os.path.join(folder, "__pycache__")
        try:
            compiled = names(cache)
        except PermissionError:
            return  # Nor can this user's Python read it.
        for one in compiled:
            compiled_file = os.path.join(cache, one)
            if one.endswith(".pyc") and one.split(".")[0] == name[:-3] and _passes_for_current(compiled_file, path):
                remove(compiled_file)


def _passes_for_current(compiled: str, path: Place) -> bool:
    """Whether Python would use bytecode without looking at what the source at `path` says, as PEP 552 has it.

    The head of bytecode holds the source's time, in whole seconds, and size. A file that is replaced twice within a
    second may have both. Bytecode with an unchecked hash is used whatever the source is. What is damaged, or has no
    source, is of no use to anybody.
    """
    try:
        fd = os.open(compiled, _READ)
        try:
            head = os.read(fd, 16)
        finally:
            os.close(fd)
        source = os.stat(path)
    except OSError:
        return True
    if len(head) < 16:
        return True
    flags, time, size = (int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12))
    if flags & 1:
        return not flags & 2
    return (time, size) == (int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)


def make_folder(path: Place) -> None:
    """Make a folder if it is not there. One that root makes belongs to the owner of the folder above.

    Raises:
        NotADirectoryError: it is something else. A symlink to a folder counts as that: it may lead out of the tree.
    """
    try:
        os.mkdir(path)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", os.fspath(path)) from None
    else:
        inherit_owner(path)


def hide_from_git(folder: Place) -> None:
    """Put a `.gitignore` into a folder of ours, for all that is in it, unless one is there."""
    ignore = os.path.join(folder, ".gitignore")
    if status(ignore) is None:
        try:
            create(ignore, b"*\n")
        except FileExistsError:
            pass  # Another job has just made it.


def make_folders(path: str, made: list[str] | None = None, *, mode: int = 0o777) -> None:
    """Make a folder and those above it that are missing. The paths of new ones are added to `made`.

    `mode` is for the last one. Those that root makes belong to the owner of the folder above. A symlink to a folder
    counts as a folder: the caller has checked where it leads.
    """
    if os.path.isdir(path):
        return
    make_folders(os.path.dirname(path), made)
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        inherit_owner(path)
        if made is not None:
            made.append(path)


def remove_folder(path: Place) -> bool:
    """Remove a folder if it is empty. Returns whether it is gone, or was not there.

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
    """Remove a folder that has nothing but empty folders in it. Returns whether it is gone."""
    for entry in list(os.scandir(path)):
        if not entry.is_dir(follow_symlinks=False) or not remove_empty(entry.path):
            return False
    return remove_folder_if_allowed(path)


def remove_folder_if_allowed(path: Place) -> bool:
    """As `remove_folder`, but an empty folder that cannot be removed is no error: it does no harm."""
    try:
        return remove_folder(path)
    except OSError:
        return False


def remove_all(path: str) -> None:
    """Remove a file, or a folder with all that is in it, if it is there. Symlinks are removed, not followed."""
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
    """The names in a folder, sorted; none if it does not exist, or is a symlink."""
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
    """The paths, below `folder`, of all that is in it and is no folder. Symlinks are not followed.

    `below`: only what is in this folder of it, such as `verl/trainer`.
    """
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
    """The names of the folders in a folder, sorted, without symlinks."""
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        if error.errno in _NOT_THERE:
            return []
        raise


def reserve(path: Place, size: int) -> None:
    """Write a file of `size` bytes, so that this room is there when the file is removed."""
    remove(path)
    create(path, b"\0" * size, mode=0o600)


def free_bytes(folder: Place) -> int | None:
    """The bytes that this user can still write below `folder`; None if the file system does not tell."""
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


def _take_after(fd: int, like: os.stat_result) -> None:
    """Give an open file the mode and owner of another one, as far as this user may."""
    mode = stat.S_IMODE(like.st_mode)
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError:
            mode &= 0o777  # Without setuid and setgid: they were meant for a file of the other owner.
            try:
                os.fchown(fd, -1, like.st_gid)
            except PermissionError:
                pass
    os.fchmod(fd, mode)
