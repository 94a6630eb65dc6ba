"""A time span in words."""

from __future__ import annotations

from patcher.i18n import Phrase, phrase


def duration(seconds: float) -> Phrase:
    """`4 min 10 s`."""
    whole = int(seconds)
    if whole < 60:
        return phrase("{seconds} s", seconds=whole)
    if whole < 3600:
        return phrase("{minutes} min {seconds} s", minutes=whole // 60, seconds=f"{whole % 60:02}")
    return phrase("{hours} h {minutes} min", hours=whole // 3600, minutes=f"{whole % 3600 // 60:02}")
