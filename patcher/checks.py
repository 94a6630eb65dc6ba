"""A check and its verdict; what `verify` and `migrate` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.i18n import Phrase, Phrases

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
