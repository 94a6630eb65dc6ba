"""What a caller asks of a transaction."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """New content for a file that is there now with the digest `expect_sha`."""

    path: str
    expect_sha: str
    content: bytes
