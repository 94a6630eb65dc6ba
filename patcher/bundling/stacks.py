"""Stacks of a run that lives, as sections of the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.bundling.model import Section

if TYPE_CHECKING:
    from patcher.hosts.connection import Connection


def stacks(connection: Connection, pids: list[int]) -> list[Section]:
    """A section for the stacks of these processes; none where the run has ended, or none can be taken."""
    del connection, pids
    return []
