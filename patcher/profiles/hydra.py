"""Values in the grammar of hydra's command line. The rendered run script holds this function too."""

from __future__ import annotations

import re


def hydra_text(text: str) -> str:
    """`text` as hydra reads it back, quoted where it must be. Raises ValueError where hydra would resolve it."""
    if "${" in text or not text.isprintable():
        raise ValueError(f"{text!r} cannot be given to hydra: control characters and ${{ have a meaning there")
    if re.fullmatch(r"/[A-Za-z0-9_./-]+", text):
        return text
    doubled = re.sub(r"(\\+)(?='|\Z)", lambda found: found[1] * 2, text)
    return "'" + doubled.replace("'", "\\'") + "'"
