"""TOML text -> dict, with every way it can go wrong turned into one Mistake."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from patcher.i18n import listed, phrase
from patcher.tables.mistakes import Mistake

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIMIT = 512 * 1024
"""Characters that a file may have; the largest shipped record has a tenth of it."""


def decode(text: str, path: Path) -> dict[str, Any] | Mistake:
    """Parse `text`, which `path` names in messages."""
    if len(text) > LIMIT:
        large = "is too large: {count} {count:character|characters}, at most {most} are read"
        return Mistake(str(path), 0, "", phrase(large, count=f"{len(text):,}", most=f"{LIMIT:,}"))
    try:
        data: dict[str, Any] = tomllib.loads(text)
        return data
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        reason = re.sub(r" \(at .*\)$", "", str(error))
        return Mistake(
            str(path), int(place[1]) if place else 0, "", phrase("is no TOML: {reason}", reason=listed(reason))
        )
    except RecursionError:
        return Mistake(str(path), 0, "", "is nested too deeply")
    except ValueError as error:
        return Mistake(str(path), 0, "", phrase("is no TOML: {reason}", reason=error))
