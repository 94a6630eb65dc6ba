"""A training environment as files: the packages of a real `pip freeze`, with the sources of those that are read.

Nothing in it can be run but the commands of this repository; versions and symbols are found as in a real one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from patcher.homes import cache_folder
from patcher.packages.agent.folders import MODULES
from patcher.packages.releases import sources
from patcher.packages.releases.cache import cache_root
from tests.packages.venvs import Venv

FREEZES = Path(__file__).parent / "freezes"
"""Written by `uv pip compile` for Linux and Python 3.12: vLLM, what it pins, and what verl asks for beside it."""
READ = ("vllm", "transformers")
"""Packages whose sources a record or `check` asks for; they are links into the cache of releases."""


def freeze(vllm: str) -> Path:
    """The list of an environment with this vLLM."""
    return FREEZES / f"vllm-{vllm}.txt"


def pinned(file: Path) -> dict[str, str]:
    lines = (line.partition("==") for line in file.read_text().splitlines() if "==" in line)
    return {name: version for name, _, version in lines}


def environment(prefix: Path, file: Path) -> Venv:
    """Make the environment of a freeze list. Fetches vLLM and transformers."""
    venv = Venv(prefix)
    for name, version in pinned(file).items():
        module = MODULES.get(name, name.replace("-", "_"))
        if name in READ:
            venv.metadata(name, version, files={"RECORD": f"{module}/__init__.py,,\n"})
            (venv.site / module).symlink_to(sources(name, version) / module)
        elif name in MODULES:
            venv.install(name, version, module)
        else:
            venv.metadata(name, version, files={"RECORD": f"{module}/__init__.py,,\n"})
    return venv


def activated(venv: Venv, home: Path, language: str = "C.UTF-8") -> Mapping[str, str]:
    """The variables of a shell in which the environment is active, of a user whose home is `home`."""
    home.mkdir(exist_ok=True)
    somebody = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _SOMEBODY}
    return {
        "PATH": f"{venv.prefix / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "VIRTUAL_ENV": str(venv.prefix),
        "HOME": str(home),
        "LANG": language,
        "XDG_CACHE_HOME": str(cache_folder().parent),
        "UKY_PATCH_CACHE": str(cache_root()),
        "UKY_PATCH_TRACEBACK": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **somebody,
    }


_SOMEBODY = (("NAME", "somebody"), ("EMAIL", "somebody@example.org"))
