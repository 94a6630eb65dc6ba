"""Which of many cases run in `make test`, and which in the slow lane alone."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

ALL_CASES = bool(os.environ.get("UKY_PATCH_ALL_CASES"))
"""Whether the slow lane runs every case of what takes half an hour, and not a part."""


def one_in(count: int, cases: Iterable[object]) -> list[object]:
    """All cases; each `count`-th, from the first on, is run in `make test`, and the others are marked slow.

    A case with several arguments is a tuple, as `parametrize` takes it.
    """
    found = []
    for at, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        found.append(case if at % count == 0 else pytest.param(*values, marks=pytest.mark.slow))
    return found
