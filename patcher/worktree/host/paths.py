"""Which paths can hold a tree, told from their names alone. The same for what a user gives and for what it leads to."""

from __future__ import annotations

import os

from patcher.messages import Refusal, Said, phrase

_SYSTEM = (
    "bin boot dev etc lib lib32 lib64 libx32 proc run sbin snap sys usr lost+found nix/store "
    "var/backups var/cache var/db var/empty var/lib var/lock var/log var/mail var/run var/spool"
)
SYSTEM = tuple("/" + name for name in _SYSTEM.split())
"""Folders in which, at any depth, no tree of a user's has a place."""
_PRIVATE = (".git", ".gnupg", ".ssh", ".uky-patch", ".uky-patch-kept")
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


def no_place(path: str, cause: Said | list[Said] | None) -> Refusal:
    """The refusal of a path as it was given."""
    return Refusal("path", phrase("{path!r} cannot hold the tree", path=path), cause, phrase(_ADVICE))


def _characters(path: str) -> None:
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in path):
        raise no_place(path, phrase("it has a control character"))


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
