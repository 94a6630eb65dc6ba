"""A check and its verdict; what `verify` and `migrate` show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from patcher.i18n import Phrase, Phrases
from patcher.i18n.codec import decode, encode

Status: TypeAlias = Literal["ok", "warn", "fail", "skip"]
Level: TypeAlias = Literal["markers", "env", "data", "model", "engine", "job"]
LEVELS: tuple[Level, ...] = ("markers", "env", "data", "model", "engine", "job")
"""Lowest first; a level includes those below it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one level. `seconds` is the time it took; `fix` says what to do about a failure."""

    name: str
    level: str
    status: Status
    seconds: float
    detail: Phrase | Phrases | str
    fix: Phrase | Phrases | str = ""

    def encode(self) -> dict[str, Any]:
        """Its values, as they cross a connection."""
        return {
            "name": self.name,
            "level": self.level,
            "status": self.status,
            "seconds": self.seconds,
            "detail": encode(self.detail),
            "fix": encode(self.fix),
        }

    @classmethod
    def decode(cls, data: Mapping[str, Any]) -> Check:
        """The check that these values stand for. Raises KeyError where one is missing."""
        return cls(
            data["name"],
            data["level"],
            data["status"],
            data["seconds"],
            decode(data["detail"]),
            decode(data["fix"]),
        )
