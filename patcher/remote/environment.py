"""What is installed on a host, as the value that `patcher.packages` makes for this machine: plans work with both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patcher.i18n import Phrase, phrase
from patcher.packages.agent.installed import Installed
from patcher.packages.environment import Environment, assumed, verl_tree, with_assumed
from patcher.remote.survey import Interpreter, Survey


def environment_of(survey: Survey, root: Path, assume: Mapping[str, str] | None = None) -> Environment:
    """The host's environment, with verl's version from the tree at `root` here, which is to be sent there.

    `assume` holds versions by package that overrule what is installed, as `--assume` does for this machine. A location
    is a path on the host. Raises UsageError for an unknown package or an invalid version in `assume`.
    """
    return environment_under(survey.interpreter, survey.folder.path, root, assume)


def environment_under(
    chosen: Interpreter | None, there: str, root: Path, assume: Mapping[str, str] | None = None
) -> Environment:
    """The same for the interpreter `chosen` of another machine, with its tree at `there` and a copy of that at `root`
    here.
    """
    packages: dict[str, Installed] = {}
    problems: list[Phrase] = []
    notes: list[Phrase] = []
    python = None
    if chosen is not None:
        python = Path(chosen.python)
        problems += chosen.problems
        for name, package in chosen.packages.items():
            place = Path(package.location) if package.location is not None else None
            packages[name] = Installed(
                name, package.version, package.distribution, place, package.origin, package.note, package.renamed
            )
    problems += _take_tree(root, there, packages)
    packages, known = with_assumed(packages, assumed(assume or {}))
    if not known:
        known = chosen is not None and chosen.origin == "named"
        notes.append(phrase("neither vllm nor torch is installed there; --python names the environment that trains"))
    return Environment(python, packages, tuple(problems), tuple(notes), known=known)


def _take_tree(root: Path, there: str, packages: dict[str, Installed]) -> list[Phrase]:
    """Put the verl of the tree into `packages` in place of one that is installed; returns what is odd about it.

    A verl that is installed elsewhere on the host would be imported by a program that starts outside of the tree.
    """
    tree, problems = verl_tree(root)
    installed = packages.pop("verl", None)
    if tree is None:
        return problems
    place = Path(there) / "verl"
    same = installed is not None and installed.location == place
    distribution = installed.distribution if installed is not None and same else None
    packages["verl"] = Installed("verl", tree.version, distribution, place, "editable" if same else "folder")
    if installed is not None and not same:
        apart = "verl {version} is installed at {location} as well, apart from the tree at {root}"
        problems = [*problems, phrase(apart, version=installed.version, location=installed.location, root=there)]
    return problems
