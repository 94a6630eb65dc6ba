"""When the environment is tested again."""

from __future__ import annotations

import pytest

from patcher.checks import Check, Status
from patcher.i18n import phrase
from patcher.migrate.steps import has_verdict


@pytest.mark.parametrize(
    ("status", "detail", "ended"),
    [
        ("ok", phrase("a task ran"), True),
        ("warn", phrase("this machine has no GPU"), True),
        ("warn", phrase("slow: still at work after {seconds} s", seconds="10"), False),
        ("skip", phrase("not reached in time"), False),
    ],
)
def test_a_check_that_its_budget_cut_short_proves_nothing(status: Status, detail: object, ended: bool) -> None:
    assert has_verdict(Check("ray", "env", status, 1.0, detail)) is ended  # type: ignore[arg-type]
