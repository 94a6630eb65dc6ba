"""Whether a tree is trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from patcher.i18n import language, phrase, show
from patcher.report.answers import show_json
from patcher.terminal.printing import say
from patcher.trust import is_trusted


def show_trust(root: Path, output: Literal["text", "json"]) -> None:
    """How it stands now."""
    trusted = is_trusted(root)
    if output == "json":
        show_json({"root": str(root), "trusted": trusted})
    elif trusted:
        say(show(phrase("{root}: trusted; what it names as its interpreter may be started", root=root), language()))
    else:
        say(show(phrase("{root}: not trusted; no program that it names is started", root=root), language()))
