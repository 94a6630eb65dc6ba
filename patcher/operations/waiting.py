"""How long a command waits for another that holds the tree, and what it says meanwhile."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from patcher.language import language, phrase

if TYPE_CHECKING:
    from patcher.tree.lock import Owner

WAIT = 60.0
"""Seconds; an apply takes about one."""


def tell_owner(owner: Owner | None) -> None:
    text = phrase("waiting for {owner}", owner=owner.told if owner is not None else phrase("another run"))
    sys.stderr.write(f"{text.render(language())}\n")
