"""What is installed under an interpreter, found out without importing any of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from patcher.environment.folders import normalise, search_path
from patcher.environment.interpreter import find_interpreter
from patcher.environment.metadata import is_pep440
from patcher.environment.model import MODULES, NAMES, Environment, Installed
from patcher.environment.resolve import resolve
from patcher.environment.trees import cuda, verl_tree
from patcher.errors import UsageError
from patcher.language import Phrase, phrase

ABSENT = "none"
"""What `assume` gives for a package that is to count as not installed."""


def probe(python: Path | None, root: Path | None, assume: Mapping[str, str] | None = None) -> Environment:
    """Find the versions under `python`, with verl's taken from the tree at `root` where one is given.

    `assume` overrides by name; the version `none` stands for not installed. Raises `UsageError` for an assumed name or
    version that is none, `EnvironmentProbeError` for an interpreter that cannot be used.
    """
    assumed = _assumed(assume or {})
    interpreter = find_interpreter(python)
    folders = search_path(interpreter.site, interpreter.extra)
    packages: dict[str, Installed] = {}
    problems, notes = list(interpreter.problems), list(interpreter.notes)
    for name in MODULES:
        if name in assumed:
            continue
        installed, odd = resolve(name, folders)
        problems += odd
        if installed is not None:
            packages[name] = installed
    if root is not None and "verl" not in assumed:
        problems += _take_tree(root, packages)
    packages["python"] = Installed("python", interpreter.version, None, interpreter.python, "interpreter")
    if (found := cuda(packages.get("torch"))) is not None:
        packages["cuda"] = found
    for name, version in assumed.items():
        packages.pop(name, None)
        if version != ABSENT:
            packages[name] = Installed(name, version, None, None, "assumed")
    if python is None and "vllm" not in packages and "torch" not in packages:
        notes.append(phrase("neither vllm nor torch is installed there; --python names the environment that trains"))
    ordered = {name: packages[name] for name in NAMES if name in packages}
    return Environment(interpreter.python, ordered, tuple(problems), tuple(notes))


def _assumed(given: Mapping[str, str]) -> dict[str, str]:
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
