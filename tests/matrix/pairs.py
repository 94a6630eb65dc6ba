"""The pairs of releases that the records are held against, and trees to hold them to."""

from __future__ import annotations

import ast
import shutil
import warnings
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from patcher.packages.releases import versions, wheel
from patcher.plan.applicability import SymbolLookup
from patcher.session.session import Session

VERL = ("0.4.0", "0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1", "0.7.0.dev0")
"""The verl releases, and a fork whose version lies between two of them and whose files are 0.6.1's."""
OLDER = ("0.4.0", "0.4.1", "0.5.0")
"""Those of them that a part of the cases is for, unless all are asked for."""
OLDEST_VLLM = Version("0.10.0")


def vllm_releases() -> list[str]:
    """Every vLLM release from 0.10.0 on, oldest first."""
    return sorted((v for v in versions("vllm") if Version(v) >= OLDEST_VLLM), key=Version)


def surroundings(vllm: str) -> dict[str, str]:
    """What is assumed to be installed beside a vLLM release; transformers 4 and 5 and both Triton forms take turns."""
    release = Version(vllm)
    odd = (release.minor + release.micro) % 2 == 1
    return {
        "vllm": vllm,
        "transformers": "5.17.0" if odd else "4.57.6",
        "triton": "3.6.0" if release >= Version("0.20") else "3.5.1",
        "torch": "2.11.0" if release >= Version("0.20") else "2.8.0",
        "peft": "0.21.2" if odd else "0.17.1",
        "flash-attn": "2.8.3" if odd and release < Version("0.20") else "none",
    }


def copy_of(verl: str, folder: Path) -> Path:
    """A tree of a verl release in `folder`: the files that records can name, and the version."""
    source = wheel("verl", "0.6.1" if "dev" in verl else verl)
    tree = folder / f"verl-{verl}"
    shutil.copytree(source / "verl", tree / "verl", ignore=shutil.ignore_patterns("__pycache__"))
    if "dev" in verl:
        (tree / "verl/version/version").write_text(f"{verl}\n")
    return tree


def session(tree: Path, vllm: str) -> Session:
    """A call on that tree, beside a vLLM release whose sources are read once for all of them."""
    return Session(root_option=tree, assume=surroundings(vllm), given_lookup=_lookup(vllm))


@lru_cache(maxsize=2)
def _lookup(vllm: str) -> SymbolLookup:
    return Session(root_option=wheel("verl", "0.9.1"), assume=surroundings(vllm)).lookup


def parsed(source: str | bytes) -> ast.Module:
    """The syntax tree; the releases' own escape sequences are none of our business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=SyntaxWarning)
        warnings.simplefilter("ignore", category=DeprecationWarning)
        return ast.parse(source)


def contents(tree: Path) -> dict[str, bytes]:
    """Every file below `tree`, by path; folders end in a slash."""
    return {
        str(path.relative_to(tree)) + ("/" if path.is_dir() else ""): b"" if path.is_dir() else path.read_bytes()
        for path in tree.rglob("*")
        if "__pycache__" not in path.parts
    }
