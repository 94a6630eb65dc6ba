"""The version of a verl tree, and of CUDA, by the files that state them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from patcher.environment.metadata import is_pep440, literal_version
from patcher.environment.model import Installed
from patcher.language import Phrase, phrase


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


def cuda(torch: Installed | None) -> Installed | None:
    """The CUDA that torch was built for, else the toolkit's; None for a torch built without CUDA."""
    if torch is not None and torch.location is not None:
        file = torch.location / "version.py"
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        if found := re.search(r"^cuda\b[^=\n]*=\s*(?:['\"]([^'\"]+)['\"]|None)", text, re.MULTILINE):
            note = "the CUDA that torch was built for"
            return Installed("cuda", found[1], None, file, "file", note) if found[1] else None
    home = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    file = home / "version.json"
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'"cuda"\s*:\s*\{[^}]*?"version"\s*:\s*"([^"]+)"', text)
    return Installed("cuda", found[1], None, file, "file", "the toolkit's version") if found else None
