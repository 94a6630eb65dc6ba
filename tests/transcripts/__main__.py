"""`python -m tests.transcripts --write [FILE...]`: run the sessions of the documents and write what they print now."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.transcripts.documents import DOCUMENTS, anew, replace, sessions
from tests.transcripts.scenes import stage


def main(arguments: list[str]) -> int:
    """Without --write only tell which sessions are not as they should be; exit code 1 if there is one."""
    found = 0
    named = {Path(name).resolve() for name in arguments if name != "--write"}
    for file in named or DOCUMENTS:
        for session in reversed(list(sessions(file))):  # From the end, so that the lines of the others stay true.
            if session.kind != "session":
                continue
            with TemporaryDirectory(prefix="uky-transcripts-") as folder, stage(session, Path(folder)) as run:
                lines = anew(session, run)
            if lines != session.lines:
                found += 1
                sys.stdout.write(f"{session.place}: {session.told}\n")
                if "--write" in arguments:
                    replace(session, lines)
    return int(found > 0 and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
