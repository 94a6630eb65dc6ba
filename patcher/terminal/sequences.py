"""What this tool itself sends to steer a terminal: colours, the clearing of a progress line.

Each sequence is signed with a number that is new in each process, so that a guarded stream tells it from what stands in
a log or a file name: `\\x1b[31m` in those is shown as text.
"""

from __future__ import annotations

import os
import re

SIGNATURE = f"\x1b[{int(os.urandom(8).hex(), 16)};"
"""As a sequence would begin, so that click takes it out where it takes out colours."""
SIGNED = re.compile(re.escape(SIGNATURE) + r"([\d;]*[mKPp])")
SEQUENCE = re.compile(f"({re.escape(SIGNATURE)}[\\d;]*[mKPp])")
"""What takes no room on a terminal: colours, and the marks around what is pasted."""
CLEAR = f"{SIGNATURE}K"
"""Go to the beginning of the line and clear it."""
_COLOURS = {"red": ("31", 160), "green": ("32", 28), "yellow": ("33", 130), "magenta": ("35", 127), "cyan": ("36", 30)}
"""The colour of 8, which the terminal's theme makes readable or not, and of 256 one readable on black and on white."""


def style(text: str, fg: str | None = None, *, bold: bool = False) -> str:
    """Text in a colour, or bold, for a guarded stream; plain where that is no terminal."""
    codes = []
    if fg:
        of_8, of_256 = _COLOURS[fg]
        codes.append(f"38;5;{of_256}" if "256" in os.environ.get("TERM", "") else of_8)
    codes += ["1"] if bold else []
    return f"{SIGNATURE}{';'.join(codes)}m{text}{SIGNATURE}0m" if codes else text


def to_paste(command: str) -> str:
    """A command for `say`, which does not break it as a text. Those of this tool are known without it."""
    return f"{SIGNATURE}P{command}{SIGNATURE}p"


def as_taken(code: str) -> str:
    """As the terminal takes it: colours where they are wanted (https://no-color.org), nothing on a dumb one."""
    if code in ("P", "p") or is_dumb() or (code != "K" and os.environ.get("NO_COLOR")):
        return ""
    return "\r\x1b[K" if code == "K" else f"\x1b[{code}"


def is_dumb() -> bool:
    """Whether the terminal knows no sequences at all."""
    return os.environ.get("TERM") in ("dumb", "unknown")
