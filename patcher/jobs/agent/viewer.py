"""Shows a job's log on a terminal until the job has ended. A program of its own, for tmux: it is copied into the job's
folder, and the job does not depend on it.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import signal
import subprocess
import sys
import time

FIRST = 65536
"""Bytes of a log that is there already that are shown, from its end."""
_STEERING = re.compile(
    "\x1b(?!\\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Characters that control a terminal, or reverse the direction of text. Colours (`\\x1b[31m`) and `\\r`, with which a
progress bar begins its line anew, are none of them."""


def main(folder: str, socket: str) -> None:
    """Show the log of the job in `folder`. After its end, end the tmux at `socket` once nobody is attached to it."""
    for name in ("SIGINT", "SIGQUIT", "SIGTSTP"):
        signal.signal(getattr(signal, name), lambda *_: None)
    out = sys.stdout.buffer
    note = "This only shows the log: Ctrl-B D leaves, and nothing typed here reaches the job."
    out.write(f"{note}\n\n".encode())
    os.chdir(folder)
    with open("log", "rb") as log:
        log.seek(max(0, os.stat(log.fileno()).st_size - FIRST))
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        while True:
            ended = os.path.exists("end.json") or abandoned()
            piece = log.read(65536)
            if piece:
                text = rest + decoder.decode(piece)
                cut = re.search("\x1b(?:\\[[0-9;]{0,20})?$", text)  # The beginning of a colour: its end comes next.
                rest = cut.group() if cut else ""
                out.write(shown(text[: len(text) - len(rest)]).encode())
                out.flush()
            elif ended:
                break
            else:
                time.sleep(0.2)
    out.write(b"\nThe job has ended.\n")
    out.flush()
    while attached(socket):
        time.sleep(2.0)
    subprocess.call(["tmux", "-S", socket, "kill-server"])


def abandoned() -> bool:
    """Whether nobody will note the job's end: it is gone, and so is its runner, or the folder itself."""
    try:
        with open("job.json", encoding="utf-8") as stream:
            job = json.load(stream)
        return not any(lives(job[name]) for name in ("process", "runner"))
    except FileNotFoundError:
        return True
    except (OSError, ValueError, LookupError, TypeError):
        return False


def lives(process: dict[str, int]) -> bool:
    """Whether the very process that was noted is there, and not another one with its number."""
    try:
        with open(f"/proc/{process['pid']}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and int(fields[19]) == process["start"]


def shown(text: str) -> str:
    """The text with characters that control a terminal written out: `\\x1b]0;` for ESC, `]`, `0`, `;`."""
    return _STEERING.sub(lambda found: ascii(found.group())[1:-1], text)


def attached(socket: str) -> bool:
    """Whether anybody looks at the tmux at this socket."""
    done = subprocess.run(
        ["tmux", "-S", socket, "list-clients"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return bool(done.stdout.strip())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
