"""Ask on a terminal before something is done."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from patcher.language import language, show

if TYPE_CHECKING:
    from patcher.language import Phrase


def agreed(question: Phrase, *, yes: bool) -> bool:
    """Whether to go on: told before by --yes, else asked. Where nobody can be asked the answer is no."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return click.confirm(show(question, language()), default=False, err=True)
