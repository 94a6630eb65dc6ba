"""What paths, names and specifiers in a record must look like; a wrong one raises ValueError with a plain message."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from patcher.i18n import phrase

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@lru_cache(maxsize=256)
def is_specifier(value: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        return False
    return True


def tree_path(value: str) -> None:
    parts = PurePosixPath(value).parts
    if (
        "\0" in value
        or "\\" in value
        or value.startswith(("/", "~"))
        or ".." in parts
        or str(PurePosixPath(value)) != value
    ):
        rule = "{value!r} must be a plain path below the tree's root, with forward slashes"
        raise ValueError(phrase(rule, value=value))
    if not value.endswith(".py"):
        raise ValueError(phrase("{value!r} must be a .py file", value=value))


def dotted(value: str) -> None:
    if not _DOTTED.fullmatch(value):
        raise ValueError(phrase("{value!r} must be a dotted name", value=value))


def name(value: str) -> None:
    if not value.isidentifier():
        raise ValueError(phrase("{value!r} must be a name", value=value))
