"""What the operating system refused, as the error that people read."""

from __future__ import annotations

from patcher.errors import TreeError
from patcher.i18n import Phrase
from patcher.i18n.codec import decode
from patcher.worktree.os_errors import cause_and_advice


def tree_error(error: OSError, title: Phrase) -> TreeError:
    """The error for what could not be done (`title`): where and why, and what to do next."""
    cause, advice = cause_and_advice(error)
    return TreeError(title, cause=decode(cause), advice=decode(advice))
