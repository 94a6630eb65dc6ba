"""Which folder of a machine can hold a tree: judged by its name, and then by what is there.

The same rules hold for what a user gives (`~/verl`) and for the real path that it leads to.
"""

from __future__ import annotations

import errno
import os
import pwd

from patcher.messages import Message, Refusal, phrase, why
from patcher.worktree.layout import FOLDER, KEPT

_SYSTEM = (
    "bin boot dev etc lib lib32 lib64 libx32 proc run sbin snap sys usr lost+found nix/store "
    "var/backups var/cache var/db var/empty var/lib var/lock var/log var/mail var/run var/spool"
)
SYSTEM = tuple("/" + name for name in _SYSTEM.split())
"""Folders in which, at any depth, no tree of a user's has a place."""
_PRIVATE = (".git", ".gnupg", ".ssh", FOLDER, KEPT)
"""Names that no folder on the way to a tree may have."""
_ADVICE = "Name a folder of its own for the tree, such as ~/verl or /data/you/verl."


def absolute(given: str, home: str) -> str:
    """`given` with `~` for `home`; a relative path starts there too, as with scp and rsync.

    Nothing else in it means anything. Raises Refusal.
    """
    if not given.strip():
        raise no_place(given, phrase("it is empty"))
    _characters(given)
    first, _, rest = given.partition("/")
    if first == "~":
        return os.path.join(home, rest.lstrip("/"))
    if first.startswith("~"):
        raise no_place(given, phrase("another user's home is not looked up; write the whole path"))
    return os.path.join(home, given)


def check(path: str, homes: tuple[str, ...]) -> None:
    """Refuse an absolute path that is root-like, the system's, or no plain name. `homes` are the user's own."""
    _characters(path)
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
    """The refusal of a path as it was given."""
    return Refusal("path", phrase("{path!r} cannot hold the tree", path=path), cause, phrase(_ADVICE))


def _characters(path: str) -> None:
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in path):
        raise no_place(path, phrase("it has a control character"))


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def resolved(given: str | None, name: str) -> str:
    """The real, absolute path of the folder, whether it is there or not. Raises Refusal where it cannot hold a tree."""
    home = home_folder()
    homes = (home, os.path.realpath(home))
    if given is None and "/" in name:
        raise no_place(name, phrase("the name of a folder has no '/'"))
    path = absolute(name if given is None else given, home)
    if given is None:
        path = os.path.join(home, name)
    check(path, homes)
    try:
        _dangling(path)
        real = os.path.realpath(path)
        check(real, homes)
        _is_folder(real)
        _is_no_home(real)
    except UnicodeEncodeError:
        raise no_place(path, phrase("the host cannot write it in its file system's encoding")) from None
    except OSError as error:
        raise unwritable(path, error) from error
    return real


def home_folder() -> str:
    """The user's home: `$HOME` where it is a whole path, else what the system says.

    A user that it does not know, as in a container run with `--user 12345`, has `/`, as container engines set it.
    """
    home = os.environ.get("HOME", "")
    if home.startswith("/"):
        return home
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _dangling(path: str) -> None:
    """Refuse a symlink to nothing on the way: most often a disk that is not mounted."""
    at = "/"
    for part in path.split("/"):
        at = os.path.join(at, part)
        if os.path.islink(at) and not os.path.exists(at):
            cause = phrase("{link} is a symbolic link to {target}, which is not there", link=at, target=os.readlink(at))
            advice = phrase("Mount the disk, or name another folder.")
            raise Refusal("unwritable", phrase("{path}: cannot be used", path=path), cause, advice)


def _is_folder(real: str) -> None:
    at = real
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    if not os.path.isdir(at):
        raise no_place(real, phrase("{file} is a file", file=at))
    if not os.access(at, os.W_OK | os.X_OK | (os.R_OK if at == real else 0)):
        raise unwritable(real, OSError(errno.EACCES, os.strerror(errno.EACCES), at))


def _is_no_home(real: str) -> None:
    """Refuse the root, and anybody's home, by whatever name they are reached."""
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
    """The refusal of a place that the system does not let us use."""
    at = error.filename if isinstance(error.filename, str) else path
    cause = phrase("{file}: {reason}", file=at, reason=why(error))
    advice = phrase("Name a folder that you may write to.")
    return Refusal("unwritable", phrase("{path}: cannot be used", path=path), cause, advice)
