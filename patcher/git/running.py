"""The one module that starts git, so that no program named by a checkout runs: no hook, filter, fsmonitor or signer.

A checkout may come from somebody else, and its `.git/config` and hooks can name programs. So git does not read them:

- `GIT_COMMON_DIR` leads it to a temporary folder of ours in place of the repository. The folder has links to the real
  objects and branches, a configuration with the few settings that are safe (`patcher.git.settings`), and no hooks.
- Git still finds the checkout itself, so it refuses one that belongs to another user, as always.
- The user's own configuration counts, with its content filters: ~/.gitconfig, /etc/gitconfig, `GIT_CONFIG_COUNT`.
- Variables that lead git elsewhere (`GIT_DIR`, `GIT_INDEX_FILE`, `GIT_SSH`) are removed from its environment.

`docs/architecture/decisions.md` says why this is not done with GitPython.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.git import settings as git_settings
from patcher.git.head import symbolic_ref
from patcher.git.process import Process
from patcher.i18n import phrase
from patcher.tree.errors import tree_error
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.git.head import Repository

_USERS_OWN = re.compile(
    r"GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|PARAMETERS|KEY_\d+|VALUE_\d+)|EXEC_PATH"
    r"|(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE))"
)
"""Git's variables that reach it: the user's configuration, and who commits when."""
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LANGUAGE": "C",
    "LC_ALL": "C",
}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.preferSymlinkRefs=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "i18n.commitEncoding=UTF-8",
)
"""Settings that override the user's own too."""
_OPTIONS = ("--no-pager", *(part for setting in _SETTINGS for part in ("-c", setting)))
_LINKED = ("objects", "refs", "packed-refs", "info", "shallow")
"""What our folder links to in the real repository, also where that does not exist."""
_LINKED_WHERE_THERE = ("logs", "reftable")
"""Folders that it links to only if they exist: an older repository has no `logs`, and few have a `reftable`."""
_READ = ("HEAD", "commondir", "config.worktree", "info/sparse-checkout")
"""Small files that git reads in the folder of the work tree, and below in the repository's."""
_READ_IN_COMMON = ("config", "shallow", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates")


class Git:
    """Runs git commands in one checkout. Its temporary folder lives as long as the object."""

    def __init__(self, repository: Repository, root: Path) -> None:
        """`root` is the tree's root: programs below it are never run, even if PATH leads there."""
        self.repository, self.root = repository, root
        self._shadow: Path | None = None
        self._own: list[tuple[str, str]] = []

    def run(
        self,
        *arguments: str,
        given: bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> bytes:
        """Run a git command and return what it prints.

        It runs in the checkout's top folder, or in `folder`; `given` is its standard input. Paths among the arguments
        are taken literally: `*` is no wildcard.

        Raises:
            TreeError: git fails (the message is its own), or takes longer than `patcher.git.process.LIMIT`; or the
                repository has something in it that git should not read.
        """
        return self.start(*arguments, given=given, env=env, folder=folder).end()

    def word(self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run a git command that prints one word, such as a hash or a name, and return that. Raises as `run`."""
        return os.fsdecode(self.run(*arguments, given=given, env=env)).strip()

    def start(
        self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> Process:
        """Start a git command, as `run`, and return without waiting for it.

        Raises:
            TreeError: git is not installed, or the repository has something in it that git should not read.
        """
        top = self.repository.top
        variables = {**_environment(self.root), "GIT_CEILING_DIRECTORIES": str(top.parent)}
        variables |= {"GIT_COMMON_DIR": str(self._stand_in()), **(env or {})}
        return _start(arguments, top, folder or top, variables, given)

    def settings(self) -> list[tuple[str, str]]:
        """The checkout's own git configuration, also the settings that git does not get. Raises as `start`."""
        self._stand_in()
        return self._own

    def _stand_in(self) -> Path:
        """The temporary folder that git takes for the repository; made at the first call."""
        if self._shadow is None:
            folder, common, top = self.repository.folder, self.repository.common, self.repository.top
            _require_plain(self.repository)
            own = self._listed(common / "config")
            if dict(own).get("extensions.worktreeconfig", "false").lower() in ("true", "yes", "on", "1"):
                own += self._listed(folder / "config.worktree")
            for key in git_settings.unknown_extensions(own):
                raise TreeError(
                    phrase("{root}: the checkout needs {key}, which uky-patch does not know", root=top, key=key),
                    advice=phrase("Set it right, or tell the makers of uky-patch."),
                )
            shadow = Path(os.path.realpath(tempfile.mkdtemp(prefix="uky-patch-git-")))
            weakref.finalize(self, shutil.rmtree, shadow, ignore_errors=True)
            there = Path(os.path.realpath(common))
            for name in (*_LINKED, *(name for name in _LINKED_WHERE_THERE if (there / name).is_dir())):
                (shadow / name).symlink_to(there / name)
            (shadow / "config").write_bytes(git_settings.dump(git_settings.trusted(own, top)))
            self._shadow, self._own = shadow, own
        return self._shadow

    def _listed(self, path: Path) -> list[tuple[str, str]]:
        try:
            content = files.read(path, files.SETTINGS_BYTES)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be read", path=path)) from error
        arguments = ("config", "--no-includes", "--file", "-", "--list", "--null")
        return git_settings.parse(start_outside(*arguments, root=self.root, given=content).end())


def refuse_pipes(top: Path, places: Iterable[str]) -> None:
    """Raise TreeError if a `.gitignore` or `.gitattributes` in or above `places` is a pipe, which git would wait for.

    `places` are paths below `top`. Folders further down are not searched: there the time limit of git ends the wait.
    """
    folders = {folder for place in places for folder in (Path(place), *Path(place).parents)}
    for path in (top / folder / name for folder in folders for name in (".gitignore", ".gitattributes")):
        try:
            kind = stat.S_IFMT(path.lstat().st_mode)
        except OSError:
            continue
        if kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            raise _not_for_git(path)


def start_outside(*arguments: str, root: Path, given: bytes = b"") -> Process:
    """Start a git command that is about no checkout, such as `git config --file -`. Programs below `root` do not run.

    Raises:
        TreeError: git is not installed.
    """
    return _start(arguments, root, Path("/"), {**_environment(root), "GIT_DIR": os.devnull}, given)


def _start(arguments: Sequence[str], root: Path, folder: Path, env: Mapping[str, str], given: bytes) -> Process:
    program = shutil.which("git", path=env["PATH"])
    if program is None:
        raise TreeError(
            "git is needed and was not found",
            cause=phrase("uncommitted changes, the list of a fork's files, commits and merges are asked of git"),
            advice="Install git, or put it on PATH.",
        )
    name = arguments[0]
    try:
        return Process([program, *_OPTIONS, *arguments], name, root, folder=folder, env=env, given=given)
    except OSError as error:
        raise tree_error(error, phrase("git {command} failed in {root}", command=name, root=root)) from error


def _environment(root: Path) -> dict[str, str]:
    """Our own variables without those that lead git elsewhere; PATH without relative folders and those of the tree."""
    kept = {name: value for name, value in os.environ.items() if name[:4] != "GIT_" or _USERS_OWN.fullmatch(name)}
    places = kept.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(place for place in places if place.startswith("/") and not _is_below(place, root))
    return kept | _VARIABLES | {"PATH": path}


def _is_below(place: str, root: Path) -> bool:
    real = Path(os.path.realpath(place))
    return root == real or root in real.parents


def _require_plain(repository: Repository) -> None:
    """Raise TreeError if a file of the repository is a pipe, a device, a symlink or huge.

    Git would wait for ever, read without end, or show in an error message what the symlink leads to, such as
    `.git/HEAD -> ~/.ssh/id_rsa`.
    """
    folder, common = repository.folder, repository.common
    small = [*(folder / name for name in _READ), *(common / name for name in _READ_IN_COMMON)]
    if (ref := symbolic_ref(folder)) is not None:
        small += [folder / ref, common / ref]
    sizes = dict.fromkeys(small, files.SETTINGS_BYTES)
    sizes |= {folder / "index": files.DATA_BYTES, common / "packed-refs": files.DATA_BYTES}
    if ref is not None and (folder / "HEAD").is_symlink():
        del sizes[folder / "HEAD"]  # The old form of a symbolic reference: HEAD -> refs/heads/main.
    for place, most in sizes.items():
        try:
            found = place.lstat()
        except OSError:
            continue
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise _not_for_git(place)


def _not_for_git(path: Path) -> TreeError:
    return TreeError(
        phrase("{path}: cannot be read", path=path),
        cause=phrase("where git keeps its notes there is no plain file, or a huge one"),
        advice=phrase("Look at what it is, and remove it."),
    )
