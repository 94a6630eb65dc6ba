"""What is installed under an interpreter, found out without importing any of it; verl is the tree's own.

`assume` puts versions in the place of what is there, for a machine that is elsewhere; `none` is an absent package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.i18n.codec import decode
from patcher.packages.agent.folders import MODULES, is_pep440, literal_version, normalise
from patcher.packages.agent.installed import Installed, packages_of
from patcher.packages.chosen_interpreter import ChosenBy, NamedPython, find_interpreter
from patcher.packages.versions import is_prerelease
from patcher.worktree.verl_tree import package_of

NAMES: tuple[str, ...] = (*MODULES, "python", "cuda")
"""Every name that a version can be known or assumed for."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What is installed under `python`; a name that is not in `packages` is not installed."""

    python: Path | None
    packages: Mapping[str, Installed]
    problems: tuple[Phrase, ...] = ()
    """What was odd, in sentences: two installs, leftovers, versions that are not PEP 440."""
    notes: tuple[Phrase, ...] = ()
    """Where was looked, where that may surprise."""
    chosen_by: ChosenBy = "option"
    known: bool = True
    """Whether this is the environment that trains: somebody has named it or a version, or it has vllm or torch."""

    def version(self, name: str) -> str | None:
        """The version of one of `NAMES`, or None if it is not installed."""
        found = self.packages.get(name)
        return found.version if found else None


ABSENT = "none"
"""What `assume` gives for a package that is to count as not installed."""
TRAINS = ("vllm", "torch")
"""What an environment that trains has one of at least; one that another engine generates in has no vllm."""


def probe(
    python: Path | None,
    root: Path | None,
    assume: Mapping[str, str] | None = None,
    *,
    named: NamedPython | None = None,
) -> Environment:
    """Find the versions under `python`, with verl's taken from the tree at `root` where one is given.

    Without `python`, what the tree has `named` counts. `assume` overrides by name; the version `none` stands for not
    installed. Raises `UsageError` for an assumed name or version that is none, `EnvironmentProbeError` or `RecordError`
    for an interpreter that cannot be used.
    """
    given = assumed(assume or {})
    interpreter, chosen_by = find_interpreter(python, named)
    packages, odd = packages_of(interpreter, frozenset(given))
    problems, notes = [decode(message) for message in odd], [decode(message) for message in interpreter.notes]
    if root is not None and "verl" not in given:
        problems += _take_tree(root, packages)
    packages, known = with_assumed(packages, given)
    # A laptop without vllm and torch is no environment that trains, unless the user names it.
    if not known and chosen_by in ("option", "settings"):
        known = True
        notes.append(phrase("neither vllm nor torch is installed under {python}", python=interpreter.python))
    return Environment(interpreter.python, packages, tuple(problems), tuple(notes), chosen_by, known)


def with_assumed(packages: Mapping[str, Installed], given: Mapping[str, str]) -> tuple[dict[str, Installed], bool]:
    """The packages with assumed versions, in the order of `NAMES`; and whether they have, or are told, what trains."""
    found = {name: package for name, package in packages.items() if name not in given}
    there = {name: version for name, version in given.items() if version != ABSENT}
    found |= {name: Installed(name, version, None, None, "assumed") for name, version in there.items()}
    ordered = {name: found[name] for name in NAMES if name in found}
    return ordered, any(name in found or name in given for name in TRAINS)


def assumed(given: Mapping[str, str]) -> dict[str, str]:
    """Versions by the known names. Raises UsageError for a name or version that is none."""
    found = {}
    for spelled, version in given.items():
        name = normalise(spelled.strip())
        if name not in NAMES:
            raise UsageError(
                phrase("no version can be assumed for {name}", name=spelled),
                advice=phrase("The names known are {names}.", names=", ".join(NAMES)),
            )
        if version != ABSENT and not is_pep440(version):
            raise UsageError(
                phrase("cannot assume {name} {version}", name=name, version=version),
                cause=phrase("{version} is no PEP 440 version", version=repr(version)),
                advice=phrase(
                    "Give a version such as 0.20.2, or {absent} for a package that is to count as not installed.",
                    absent=ABSENT,
                ),
            )
        found[name] = version.strip()
    return found


def _take_tree(root: Path, packages: dict[str, Installed]) -> list[Phrase]:
    """Put the tree's verl into `packages`; the installed one, if it is another, is named."""
    tree, problems = verl_tree(root)
    installed = packages.pop("verl", None)
    if tree is None:
        return problems
    packages["verl"] = tree
    if installed is None or installed.location is None or tree.location is None:
        return problems
    if os.path.realpath(installed.location) == os.path.realpath(tree.location):
        kept = installed if installed.origin != "wheel" else tree
        packages["verl"] = Installed("verl", tree.version, installed.distribution, tree.location, kept.origin)
        return problems
    return [
        *problems,
        phrase(
            "verl {version} is installed at {location} as well, apart from the tree at {root}",
            version=installed.version,
            location=installed.location,
            root=root,
        ),
    ]


def verl_tree(root: Path) -> tuple[Installed | None, list[Phrase]]:
    """The verl in `root` (the folder that holds `verl/` or what the fork renamed it to), by its `version/version`."""
    package = root / package_of(root)
    if not package.is_dir():
        return None, [phrase("{root} holds no folder {package}", root=root, package=package.name)]
    version = literal_version(package)
    metadata = sorted(root.glob("verl-*.dist-info"))
    if version is None and metadata:
        version = metadata[0].name.removesuffix(".dist-info").partition("-")[2]
    if version is None:
        silent = "{package} states no version: {file} is missing or empty"
        return None, [phrase(silent, package=package, file=package / "version" / "version")]
    odd = phrase("verl {version} in {root} is no PEP 440 version", version=version, root=root)
    problems = [] if is_pep440(version) else [odd]
    checkout = any((folder / ".git").exists() for folder in (root.absolute(), *root.absolute().parents))
    if metadata:
        return Installed("verl", version, "verl", package, "wheel"), problems
    return Installed("verl", version, None, package, "checkout" if checkout else "folder"), problems


def is_release(installed: Installed) -> bool:
    """Whether the version names what is in the package for good: it is no nightly, and nobody edits it in place."""
    return installed.origin == "assumed" or (installed.origin == "wheel" and not is_prerelease(installed.version))


def stamp_of(installed: Installed) -> str:
    """What names an installed release here; files of an editable install can change without a trace."""
    if installed.location is None or not is_release(installed):
        return ""
    try:
        changed = [(installed.location / name).stat().st_mtime_ns for name in (".", "__init__.py")]
    except OSError:
        return ""
    return f"{installed.location} {installed.version} {changed}"
