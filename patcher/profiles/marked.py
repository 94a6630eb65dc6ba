"""The line by which a rendered file is known, and by which an edit made in it since is noticed."""

from __future__ import annotations

from patcher import __version__
from patcher.profiles.agent.rendered import PREFIX, digest

_GAP = f"{PREFIX}@\n"
"""Where a template wants the line."""


def marked(text: str) -> str:
    """`text` with its line put in: the version that rendered it, and the hash of everything else."""
    before, gap, after = text.partition(_GAP)
    assert gap, "the template has no place for the line"
    return f"{before}{PREFIX}{__version__} sha256:{digest(before + after)}\n{after}"
