"""The clones in a folder: which fork each is, at which commit, and which vLLM the fork itself names."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from patcher.worktree.verl_tree import holds_verl

_REMOTE = re.compile(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
_REQUIREMENT = re.compile(r"\bvllm(?:\[[\w,-]*\])? *((?:[=<>!~]=? *v?\d[\w.]*(?:, *)?)+)")
"""`vllm[audio]>=0.8.5,<=0.12.0`: the group is all that follows the name."""
_LIMIT = re.compile(r"(==|<=|>=) *v?(\d[\w.]*)")
_BUILD_ARGUMENT = re.compile(r"\bARG +VLLM_VERSION=\"?v?(\d[\w.]*)")
"""`ARG VLLM_VERSION=0.23.0` of a Dockerfile."""
_FILE_BYTES = 200_000
"""A requirements file or Dockerfile is smaller; what is larger is no such file."""
_SHORT = 12
"""Characters of a commit. Git's own abbreviation grows with the clone, and labels are compared across clones."""


@dataclass(frozen=True, slots=True)
class Clone:
    """One fork as it lies on the disk."""

    name: str
    """owner/repository."""
    commit: str
    date: str
    verl: str
    root: Path
    """The folder that holds `verl/`."""
    pin: str
    """The vLLM release that the fork names; "" where it names none."""
    pinned_in: str


def clones(folder: Path) -> list[Clone]:
    """The verl trees in the subfolders of `folder`, or one level below them, by name."""
    found = []
    for top in sorted(path for path in folder.iterdir() if path.is_dir()):
        roots = [root for root in (top, *sorted(top.iterdir())) if root.is_dir() and holds_verl(root)]
        if roots:
            commit, date = _git(top, "log", "-1", "--format=%H %cs").partition(" ")[::2]
            pin, pinned_in = own_pin(roots[0])
            found.append(Clone(_name(top), commit[:_SHORT], date, _verl(roots[0]), roots[0], pin, pinned_in))
    return sorted(found, key=lambda clone: clone.name.lower())


def own_pin(root: Path) -> tuple[str, str]:
    """The vLLM release that the fork names, and the file that names it; both "" where there is none.

    An exact pin of the package counts first. Then the newest release that a Dockerfile installs or that is the upper
    limit of the package, unless the package asks for a newer one: forks change one of the two and forget the other.
    Between `vllm<=0.6.3` of setup.py and 0.6.3.post1 of a Dockerfile the limit counts: such forks compare with "0.6.3".
    """
    packages = [*sorted(root.glob("requirements*.txt")), root / "setup.py", root / "pyproject.toml"]
    images = [path for path in sorted(root.rglob("*ockerfile*")) if path.is_file() and ".git" not in path.parts]
    named = list(_named(root, packages))
    upper = [(version, file) for how, version, file in named if how == "<="]
    lower = [(version, file) for how, version, file in named if how == ">="]
    limits = {version.release for version, _ in upper}
    installed = [(version, file) for how, version, file in _named(root, images) if how == "=="]
    newest = upper + [(version, file) for version, file in installed if version.release not in limits]
    choices = (
        [(version, file) for how, version, file in named if how == "=="],
        [(version, file) for version, file in newest if all(version >= limit for limit, _ in lower)],
        lower,
    )
    for choice in choices:
        if choice:
            version, file = max(choice, key=lambda one: one[0])
            return str(version), file
    return "", ""


def _named(root: Path, files: list[Path]) -> Iterator[tuple[str, Version, str]]:
    for path in files:
        if not path.is_file() or path.stat().st_size > _FILE_BYTES:
            continue
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            text = line.partition("#")[0]
            limits = [limit for found in _REQUIREMENT.findall(text) for limit in _LIMIT.findall(found)]
            for how, version in (*limits, *(("==", version) for version in _BUILD_ARGUMENT.findall(text))):
                try:
                    yield how, Version(version.rstrip(".")), path.relative_to(root).as_posix()
                except InvalidVersion:
                    continue


def _name(top: Path) -> str:
    """From the remote's address, or from a folder that is called OWNER_REPOSITORY: no owner has a `_`."""
    remote = _REMOTE.search(_git(top, "remote", "get-url", "origin"))
    return remote[1] if remote else top.name.replace("_", "/", 1)


def _verl(root: Path) -> str:
    path = root / "verl" / "version" / "version"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _git(folder: Path, *arguments: str) -> str:
    """What git prints, or "" where the folder is no checkout."""
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
