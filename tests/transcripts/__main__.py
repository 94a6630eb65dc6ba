"""`python -m tests.transcripts --write`: run the sessions of the documents and write anew what their commands print."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.transcripts.documents import DOCUMENTS, anew, replace, sessions
from tests.transcripts.scenes import runner


def main(arguments: list[str]) -> int:
    """Without --write only tell which sessions are not as they should be; exit code 1 if there is one."""
    found = 0
    for file in DOCUMENTS:
        for session in reversed(list(sessions(file))):  # From the end, so that the lines of the others stay true.
            if session.kind != "session":
                continue
            with TemporaryDirectory(prefix="uky-transcripts-") as folder:
                lines = anew(session, runner(session, Path(folder)))
            if lines != session.lines:
                found += 1
                sys.stdout.write(f"{session.place}: {session.told}\n")
                if "--write" in arguments:
                    replace(session, lines)
    return int(found > 0 and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
