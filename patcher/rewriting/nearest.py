"""The place that comes nearest to an anchor that is not there."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.records.model import Edit
from patcher.rewriting.code import Code, Scope
from patcher.rewriting.outcome import Candidate


def nearest(code: Code, scopes: Sequence[Scope], edit: Edit) -> Candidate | None:
    return None
