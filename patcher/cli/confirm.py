"""The question before something is removed or written: `[y/N]` on a terminal, yes with `--yes`, no where nobody can
answer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from patcher.i18n import language, show
from patcher.terminal.layout import wrapped
from patcher.terminal.printing import room, say, settled

if TYPE_CHECKING:
    from patcher.i18n import Phrase

_ANSWERS = " [y/N]: "
"""What click puts behind a question."""


def confirmed(question: Phrase, *, yes: bool = False) -> bool:
    """Whether to go on: answered before by --yes, else asked. Where nobody can be asked the answer is no."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    *above, last = wrapped(settled(show(question, language()), sys.stderr), room(sys.stderr) - len(_ANSWERS))
    if above:
        say(*above, err=True)
    return click.confirm(last, default=False, err=True)
