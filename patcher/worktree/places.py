"""Which folder of a machine may hold a tree. No system folder, no home, nothing right below the root.

A migration replaces files in that folder, so a mistake such as `--path /usr` must not get through. The rules apply to
the path as the user gives it (`~/verl`), and again to the real path that it leads to.
"""

from __future__ import annotations

import errno
import os
import pwd
from pathlib import Path

from patcher.messages import Message, Refusal, phrase, why
from patcher.worktree.layout import FOLDER, KEPT
from patcher.worktree.verl_tree import holds_verl

_SYSTEM = (
    "bin boot dev etc lib lib32 lib64 libx32 proc run sbin snap sys usr lost+found nix/store "
    "var/backups var/cache var/db var/empty var/lib var/lock var/log var/mail var/run var/spool"
)
SYSTEM = tuple("/" + name for name in _SYSTEM.split())
"""Folders of the system: no tree may be in one, at any depth."""
_PRIVATE = (".git", ".gnupg", ".ssh", FOLDER, KEPT)
"""Names that no folder on the way to a tree may have."""
_ADVICE = "Name a folder of its own for the tree, such as ~/verl or /data/you/verl."


def absolute(given: str, home: str) -> str:
    """The path `given` as an absolute one: `~` is `home`, and a relative path starts there too, as with scp and rsync.

    Variables and wildcards are not expanded. Raises Refusal for an empty path, and for `~somebody`.
    """
    if not given.strip():
        raise no_place(given, phrase("it is empty"))
    _require_plain_text(given)
    first, _, rest = given.partition("/")
    if first == "~":
        return os.path.join(home, rest.lstrip("/"))
    if first.startswith("~"):
        raise no_place(given, phrase("another user's home is not looked up; write the whole path"))
    return os.path.join(home, given)


def check(path: str, homes: tuple[str, ...]) -> None:
    """Raise Refusal for an absolute path that may not hold a tree, judged by its name alone.

    `homes`: the user's home folder, as it is named and by its real path.
    """
    _require_plain_text(path)
    parts = [part for part in path.split("/") if part]
    plain = "/" + "/".join(parts)
    if not parts:
        raise no_place(path, phrase("it is the root of the file system"))
    if "." in parts or ".." in parts:
        raise no_place(path, phrase("it has a part {part!r}", part=".." if ".." in parts else "."))
    if any(_holds(plain, home) for home in homes):
        raise no_place(path, phrase("it is the home folder, or holds it"))
    for system in SYSTEM:
        if _holds(system, plain):
            raise no_place(path, phrase("{folder} is the system's", folder=system))
    if len(parts) == 1:
        raise no_place(path, phrase("it lies right below the root of the file system"))
    for part in parts:
        if part in _PRIVATE:
            raise no_place(path, phrase("{folder} has another purpose", folder=part))


def no_place(path: str, cause: Message | list[Message] | None) -> Refusal:
    """The refusal for a path that may not hold a tree."""
    return Refusal("path", phrase("{path!r} cannot hold the tree", path=path), cause, phrase(_ADVICE))


def _require_plain_text(path: str) -> None:
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in path):
        raise no_place(path, phrase("it has a control character"))


def _holds(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def resolved(given: str | None, name: str, *, writable: bool = True) -> str:
    """The real path of the folder for a tree, which need not exist. Raises Refusal if it may not hold one.

    `given` is the path as the user gave it; without one it is the folder `name` in the home. `writable`: whether it is
    to be written to, and not only read.
    """
    home = home_folder()
    homes = (home, os.path.realpath(home))
    if given is None and "/" in name:
        raise no_place(name, phrase("the name of a folder has no '/'"))
    path = absolute(name if given is None else given, home)
    if given is None:
        path = os.path.join(home, name)
    check(path, homes)
    try:
        _require_no_dangling_link(path)
        real = os.path.realpath(path)
        check(real, homes)
        _require_folder(real, writable=writable)
        _require_no_home(real)
    except UnicodeEncodeError:
        raise no_place(path, phrase("the host cannot write it in its file system's encoding")) from None
    except OSError as error:
        raise unwritable(path, error) from error
    return real


def home_folder() -> str:
    """The user's home: `$HOME` if that is an absolute path, else what the system's list of users says.

    A user who is not in that list, as in a container run with `--user 12345`, has `/`, as container engines set it.
    """
    home = os.environ.get("HOME", "")
    if home.startswith("/"):
        return home
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _require_no_dangling_link(path: str) -> None:
    """Raise Refusal if a part of the path is a symlink to nothing: most often a disk that is not mounted."""
    at = "/"
    for part in path.split("/"):
        at = os.path.join(at, part)
        if os.path.islink(at) and not os.path.exists(at):
            cause = phrase("{link} is a symbolic link to {target}, which is not there", link=at, target=os.readlink(at))
            advice = phrase("Mount the disk, or name another folder.")
            raise Refusal("unwritable", phrase("{path}: cannot be used", path=path), cause, advice)


def _require_folder(real: str, *, writable: bool) -> None:
    """Raise Refusal if the path, or the nearest one above it that exists, is no folder, or may not be written to.

    A verl tree that is there may be one that is only read, unless it has to be `writable`.
    """
    at = real
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    if not os.path.isdir(at):
        raise no_place(real, phrase("{file} is a file", file=at))
    write = os.W_OK if writable or at != real or not holds_verl(Path(real)) else 0
    if not os.access(at, write | os.X_OK | (os.R_OK if at == real else 0)):
        code = errno.EROFS if write and os.statvfs(at).f_flag & os.ST_RDONLY else errno.EACCES
        raise unwritable(real, OSError(code, os.strerror(code), at))


def _require_no_home(real: str) -> None:
    """Raise Refusal for the root of the file system and for any user's home, also under another name (bind mounts)."""
    if not os.path.isdir(real):
        return
    status = os.stat(real)
    for taken in ("/", home_folder()):
        if os.path.isdir(taken) and os.path.samestat(status, os.stat(taken)):
            raise no_place(real, phrase("it is the same folder as {folder}", folder=taken))
    try:
        owner = pwd.getpwuid(status.st_uid)
    except KeyError:
        return
    if os.path.realpath(owner.pw_dir) == real:
        raise no_place(real, phrase("it is the home folder of {user}", user=owner.pw_name))


def unwritable(path: str, error: OSError) -> Refusal:
    """The refusal for a path that the operating system does not allow us to use."""
    at = error.filename if isinstance(error.filename, str) else path
    cause = phrase("{file}: {reason}", file=at, reason=why(error))
    advice = phrase("Name a folder that you may write to.")
    return Refusal("unwritable", phrase("{path}: cannot be used", path=path), cause, advice)
