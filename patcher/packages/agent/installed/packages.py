"""All that is looked for under one interpreter."""

from __future__ import annotations

import os
import re
from pathlib import Path

from patcher.messages import Message
from patcher.packages.agent.installed.folders import search_path
from patcher.packages.agent.installed.layout import Interpreter
from patcher.packages.agent.installed.model import MODULES, Installed
from patcher.packages.agent.installed.resolve import resolve
from patcher.worktree import files


def packages_of(
    interpreter: Interpreter, but: frozenset[str] = frozenset()
) -> tuple[dict[str, Installed], list[Message]]:
    """What is installed under it, by name, Python and CUDA included; and what is odd. Names of `but` are left out."""
    folders = search_path(interpreter.site, interpreter.extra)
    found: dict[str, Installed] = {}
    problems = list(interpreter.problems)
    for name in MODULES:
        if name in but:
            continue
        installed, odd = resolve(name, folders)
        problems += odd
        if installed is not None:
            found[name] = installed
    found["python"] = Installed("python", interpreter.version, None, interpreter.python, "interpreter")
    built_for = cuda(found.get("torch"))
    if built_for is not None:
        found["cuda"] = built_for
    return found, problems


def cuda(torch: Installed | None) -> Installed | None:
    """The CUDA that torch was built for, else the toolkit's; None for a torch built without CUDA."""
    if torch is not None and torch.location is not None:
        file = torch.location / "version.py"
        try:
            text = files.read_text(file, files.SETTINGS_BYTES, errors="replace", follow=True)
        except OSError:
            text = ""
        found = re.search(r"^cuda\b[^=\n]*=\s*(?:['\"]([^'\"]+)['\"]|None)", text, re.MULTILINE)
        if found:
            note = "the CUDA that torch was built for"
            return Installed("cuda", found[1], None, file, "file", note) if found[1] else None
    home = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    file = home / "version.json"
    try:
        text = files.read_text(file, files.SETTINGS_BYTES, errors="replace", follow=True)
    except OSError:
        return None
    found = re.search(r'"cuda"\s*:\s*\{[^}]*?"version"\s*:\s*"([^"]+)"', text)
    return Installed("cuda", found[1], None, file, "file", "the toolkit's version") if found else None
