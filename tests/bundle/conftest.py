"""Trees on hosts, as the tests of jobs have them."""

from __future__ import annotations

from tests.jobs.conftest import here, there

__all__ = ["here", "there"]
