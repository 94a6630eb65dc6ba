"""Errors of the operating system and refusals of `patcher.worktree` as `TreeError`, which people read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from patcher.errors import TreeError
from patcher.i18n import Phrase
from patcher.i18n.codec import decode
from patcher.messages import Refusal
from patcher.worktree.os_errors import cause_and_advice


def tree_error(error: OSError, title: Phrase) -> TreeError:
    """The error with this title, which says what could not be done, and the cause and advice for `error`."""
    cause, advice = cause_and_advice(error)
    return TreeError(title, cause=decode(cause), advice=decode(advice))


def from_refusal(refusal: Refusal) -> TreeError:
    """The error with the texts of the refusal."""
    return TreeError(decode(refusal.title), cause=decode(refusal.cause), advice=decode(refusal.advice))


@contextlib.contextmanager
def tree_errors() -> Iterator[None]:
    """Raise refusals of the engine as TreeError."""
    try:
        yield
    except Refusal as refusal:
        raise from_refusal(refusal) from refusal
