"""The system's rsync on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess


def installed() -> str | None:
    """Its version; None where there is none that says what it is."""
    program = shutil.which("rsync")
    if program is None:
        return None
    try:
        output = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(rb"rsync +version v?(\d[\w.]*)", output)
    return found.group(1).decode("ascii") if found else None
