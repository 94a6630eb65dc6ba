"""The version of a verl tree, by the files that state it."""

from __future__ import annotations

from pathlib import Path

from patcher.i18n import Phrase, phrase
from patcher.packages.agent.installed.metadata import is_pep440, literal_version
from patcher.packages.model import Installed


def verl_tree(root: Path) -> tuple[Installed | None, list[Phrase]]:
    """The verl in `root` (the folder that holds `verl/`), by `verl/version/version`."""
    package = root / "verl"
    if not package.is_dir():
        return None, [phrase("{root} holds no folder verl", root=root)]
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
