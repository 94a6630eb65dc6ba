"""What ids, paths, names, patterns and versions in records, settings and symptoms must look like.

A rule raises ValueError with a sentence for people where a text is something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from patcher.i18n import phrase
from patcher.tables.mistakes import KeyPath
from patcher.tables.shapes import Field, Matching, Mistakes, Rule, Shape, text

DISTRIBUTIONS: tuple[str, ...] = (
    *("verl", "vllm", "torch", "transformers", "triton", "ray", "flash-attn", "peft", "tensordict", "numpy"),
    *("sglang", "megatron-core", "uvicorn", "python", "cuda"),
)
"""What `[when]` can ask about.

A new one needs its module in `MODULES` of `patcher.packages.agent.folders` too, by which it is found, a place in
docs/records.md and its twin, and `make docs` for the schemas.
"""
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")

is_id = Matching(
    re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*"), "{value!r} must be lower-case letters, digits and single hyphens", "value"
)
is_symbol = Matching(
    re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+(?:\([^\W\d]\w*\))?"),
    "{symbol!r} must be a full dotted name, or one with (parameter)",
    "symbol",
)
is_symbol_pattern = Matching(
    re.compile(r"[^\W\d]\w*(?:\.[\w*]+)+(?:\([\w*]+\))?"),
    "{symbol!r} must be a full dotted name, or one with (parameter), in which * stands for anything",
    "symbol",
)
is_dotted_name = Matching(_DOTTED, "{value!r} must be a dotted name", "value")
is_variable = Matching(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "{name!r} is no name of a variable", "name")


@lru_cache(maxsize=256)
def is_specifier(value: str) -> None:
    """`>=0.11.1,<0.14`, by PEP 440."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # 15 ms that a run without records does not need.

    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        wrong = "{value!r} is no version specifier; write for example '>=0.11.1,<0.14'"
        raise ValueError(phrase(wrong, value=value)) from None


def is_source_path(value: str) -> None:
    """`verl/workers/actor.py`: a Python file below the tree's root."""
    is_tree_path(value)
    if not value.endswith(".py"):
        raise ValueError(phrase("{value!r} must be a .py file", value=value))


def is_tree_path(value: str) -> None:
    """`examples/run.sh`: a file below the tree's root, spelled in the one way that names it."""
    plain = PurePosixPath(value)
    outside = value.startswith(("/", "~")) or ".." in plain.parts
    if "\0" in value or "\\" in value or outside or str(plain) != value:
        rule = "{value!r} must be a plain path below the tree's root, with forward slashes"
        raise ValueError(phrase(rule, value=value))


def is_name(value: str) -> None:
    """A Python identifier."""
    if not value.isidentifier():
        raise ValueError(phrase("{value!r} must be a name", value=value))


def identifier(*rules: Rule) -> Field:
    """The key `id`: the name of the file, without `.toml`."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> str:
        before = len(mistakes.found)
        name: str = text(*rules).read(mistakes, path, written)
        stem = Path(mistakes.file).stem
        if name != stem and len(mistakes.found) == before:
            mistakes.note(path, phrase("{id!r} must be the file's name, {stem!r}", id=name, stem=stem))
        return name

    return Field(read, "", schema=text(*rules).schema)


VERSION_FIELDS: Mapping[str, Field] = {name: text(is_specifier, default=None) for name in DISTRIBUTIONS}
"""A specifier for each distribution, as `[when]` has them."""


def given_versions(**versions: str | None) -> dict[str, str]:
    """The specifiers that were given, by distribution."""
    return {name: specifier for name, specifier in versions.items() if specifier is not None}


VERSIONS: Shape[dict[str, str]] = Shape(given_versions, VERSION_FIELDS)
"""A `[when]` of versions alone."""
