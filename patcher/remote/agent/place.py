"""The folder that holds the tree on this machine: where it is, what is in it, and the lock on it.

The verb `begin` opens the folder, and comes first on each connection: other verbs get its path from `root`.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable

from patcher.messages import Refusal, phrase, why
from patcher.worktree import locks
from patcher.worktree.locks import Lock, LockHeldError, LockUnsupportedError, Note
from patcher.worktree.places import resolved, unwritable
from patcher.worktree.verl_tree import holds_verl

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

OURS = os.path.join(".uky-patch", "host")
"""Below the tree's root: all that a migration keeps there."""
JOBS = os.path.join(OURS, "jobs")
"""Below the tree's root: a folder for each job."""
_INNER = ("incoming", "partial", "aside", "jobs", "working")
"""Folders in `OURS` that are written to and cleared. A symlink in place of one would make us clear other files."""
_SHOWN = 8
"""Names of what a folder holds that an answer lists. A guess: enough to recognise a folder by."""
_PATIENCE = 100.0
"""Seconds to wait for the lock of an agent that has lost its client. It notices that after `serving.SILENCE` (45 s),
and then finishes the request that it works on."""


def begin(request: Request) -> dict[str, Any]:
    """Open the folder for the tree: `path` as the user gave it, or `name` in the home.

    With a `purpose` it is made if it is missing and locked for as long as the connection lasts; without, nothing is
    written. `run` (the connection's name), `who`, `machine` and `client` go into the lock's note, which others are
    shown; `over` are names of connections that are known to have ended, whose lock is waited for. Answers what
    `patcher.remote.survey.TreeFolder` holds.

    Raises Refusal of kind `path` where the path can hold no tree, `locked` where somebody else has the lock (an event
    `owner` with its note comes before), `unwritable` and `unlockable`.
    """
    args = request.args
    root = resolved(args.get("path"), args.get("name") or "", writable=args.get("purpose") is not None)
    opened = request.kept.pop("begun", None)
    if opened is not None and (opened.root != root or args.get("purpose") is None):
        opened.close()
        opened = None
    found = look(root)
    if args.get("purpose") is not None:
        request.kept["begun"] = opened or _open(request, root)
    request.kept["root"] = root
    return found


def root(request: Request) -> str:
    """The real path of the tree that `begin` has opened on this connection."""
    return str(request.kept["root"])


def look(root: str) -> dict[str, Any]:
    """What is at `root` now, as `patcher.remote.survey.TreeFolder` holds it. Reads only."""
    exists = os.path.isdir(root)
    names = sorted(os.listdir(root)) if exists else []
    manifest = os.path.isfile(os.path.join(root, OURS, "manifest.json"))
    others = [name for name in names if name != ".uky-patch" or manifest or not _only_lock(root)]
    return {
        "path": root,
        "exists": exists,
        "empty": not others,
        "manifest": manifest,
        "tree": holds_verl(Path(root)),
        "entries": others[:_SHOWN],
        "within": _within(root),
        "nested": [name for name in names if not name.startswith(".") and _is_nested(os.path.join(root, name))],
    }


class LockedFolder:
    """The tree's folder, made if it was missing, and locked. `made` are the folders that were made for it."""

    def __init__(self, root: str, made: list[str], lock: Lock) -> None:
        self.root = root
        self._made = made
        self._lock = lock

    def close(self) -> None:
        """Release the lock, and remove the folders that were made and into which nothing has come."""
        ours = os.path.join(self.root, OURS)
        try:
            if ours in self._made and os.listdir(ours) == [os.path.basename(self._lock.path)]:
                self._lock.remove()
        except OSError:
            pass
        self._lock.release()
        _remove(self._made)


def _open(request: Request, root: str) -> LockedFolder:
    made: list[str] = []
    args = request.args
    note = {name: args.get(name, "") for name in ("who", "machine", "purpose", "run", "client")}
    note["since"] = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    try:
        lock = _lock(root, made, note, args.get("over", ()))
    except LockHeldError as held:
        _remove(made)
        request.emit(owner=held.owner)
        raise _locked(root, held.owner) from None
    except OSError as error:
        _remove(made)
        raise unwritable(root, error) from error
    except BaseException:
        _remove(made)
        raise
    return LockedFolder(root, made, lock)


def _lock(root: str, made: list[str], note: Note, over: Iterable[str]) -> Lock:
    ours = os.path.join(root, OURS)
    for again in (True, True, False):
        _make(root, made)
        for folder in (os.path.dirname(ours), ours):
            _want_no_link(root, folder)
            _make(folder, made, 0o700 if folder == ours else 0o777)
        for inner in _INNER:
            _want_no_link(root, os.path.join(ours, inner))
        try:
            return _take(os.path.join(ours, "lock"), note, over)
        except FileNotFoundError:  # Another agent that ended just now has removed the folders that it had made.
            if not again:
                raise
    raise AssertionError


def _take(path: str, note: Note, over: Iterable[str]) -> Lock:
    signed = dict(note, node=platform.node(), pid=os.getpid())
    try:
        return locks.take(path, signed, wait=_PATIENCE, on_held=locks.end_orphans(list(over)))
    except LockUnsupportedError as error:
        advice = phrase("Mount it with flock (Lustre: -o flock), or name a folder on another disk.")
        cause = phrase(
            "the file system has no locks ({reason}), so two migrations could write at once", reason=why(error)
        )
        os.unlink(path)
        raise Refusal("unlockable", phrase("{path}: cannot be locked", path=path), cause, advice) from error


def _want_no_link(root: str, folder: str) -> None:
    if os.path.islink(folder):
        cause = phrase("{folder} is a symbolic link", folder=folder)
        raise Refusal("unwritable", phrase("{path}: cannot be used", path=root), cause, phrase("Remove it."))


def _make(folder: str, made: list[str], mode: int = 0o777) -> None:
    """Make `folder` and what it lies in; what is new is added to `made`, outermost first.

    A `mode` other than the usual one is also given to a folder of this user that was there before.
    """
    if not os.path.isdir(folder):
        _make(os.path.dirname(folder), made)
        try:
            os.mkdir(folder, mode)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
        else:
            if folder not in made:
                made.append(folder)
    if mode != 0o777 and os.stat(folder).st_uid == os.geteuid():
        os.chmod(folder, mode)


def _remove(made: list[str]) -> None:
    """Remove the folders that were made, as far as they are empty."""
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            return


def _only_lock(root: str) -> bool:
    try:
        return os.listdir(os.path.join(root, ".uky-patch")) == ["host"] and set(
            os.listdir(os.path.join(root, OURS))
        ) <= {"lock"}
    except OSError:
        return False


def _within(root: str) -> str | None:
    at = os.path.dirname(root)
    while at != "/":
        if holds_verl(Path(at)):
            return at
        at = os.path.dirname(at)
    return None


def _is_nested(folder: str) -> bool:
    return not os.path.islink(folder) and holds_verl(Path(folder))


def _locked(root: str, owner: dict[str, Any]) -> Refusal:
    cause = phrase("it has only just begun")
    if owner.get("who"):
        fields = {name: str(owner.get(name, "")) for name in ("who", "machine", "since", "purpose")}
        cause = phrase("{who} from {machine}, since {since}: {purpose}", **fields)
    advice = phrase("Wait until it has ended. If its connection is lost, it ends by itself within two minutes.")
    return Refusal("locked", phrase("{path}: another migration is under way", path=root), cause, advice)
