"""From what the user gives to the real path of a folder that can hold a tree, whether it is there or not."""

from __future__ import annotations

import errno
import os
import pwd

from patcher.messages import Refusal, phrase, why
from patcher.worktree.host import paths


def resolved(given: str | None, name: str) -> str:
    """The real, absolute path of the folder, whether it is there or not. Raises Refusal where it cannot hold a tree."""
    home = home_folder()
    homes = (home, os.path.realpath(home))
    if given is None and "/" in name:
        raise paths.no_place(name, phrase("the name of a folder has no '/'"))
    path = paths.absolute(name if given is None else given, home)
    if given is None:
        path = os.path.join(home, name)
    paths.check(path, homes)
    try:
        _dangling(path)
        real = os.path.realpath(path)
        paths.check(real, homes)
        _is_folder(real)
        _is_no_home(real)
    except UnicodeEncodeError:
        raise paths.no_place(path, phrase("the host cannot write it in its file system's encoding")) from None
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
        raise paths.no_place(real, phrase("{file} is a file", file=at))
    if not os.access(at, os.W_OK | os.X_OK | (os.R_OK if at == real else 0)):
        raise unwritable(real, OSError(errno.EACCES, os.strerror(errno.EACCES), at))


def _is_no_home(real: str) -> None:
    """Refuse the root, and anybody's home, by whatever name they are reached."""
    if not os.path.isdir(real):
        return
    status = os.stat(real)
    for taken in ("/", home_folder()):
        if os.path.isdir(taken) and os.path.samestat(status, os.stat(taken)):
            raise paths.no_place(real, phrase("it is the same folder as {folder}", folder=taken))
    try:
        owner = pwd.getpwuid(status.st_uid)
    except KeyError:
        return
    if os.path.realpath(owner.pw_dir) == real:
        raise paths.no_place(real, phrase("it is the home folder of {user}", user=owner.pw_name))


def unwritable(path: str, error: OSError) -> Refusal:
    """The refusal of a place that the system does not let us use."""
    at = error.filename if isinstance(error.filename, str) else path
    cause = phrase("{file}: {reason}", file=at, reason=why(error))
    advice = phrase("Name a folder that you may write to.")
    return Refusal("unwritable", phrase("{path}: cannot be used", path=path), cause, advice)
