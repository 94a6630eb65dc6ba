"""`python ending.py SIGNAL WORD [AFTER]`: signal the processes of the scene's own control group whose command holds WORD,
once the log holds AFTER.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path


def main(number: int, word: str, after: str) -> None:
    while after and after not in Path(os.environ["LOG"]).read_text("utf-8", "replace"):
        time.sleep(0.5)
    time.sleep(1)
    for pid in Path(os.environ["GROUP"], "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if (
                word in command
                and int(pid) != os.getpid()
                and "ending.py" not in command
                and not command.startswith("bash")
            ):
                os.kill(int(pid), number)


if __name__ == "__main__":
    main(getattr(signal, sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
