"""`python -m tests.transcripts --write [FILE...]`: run the sessions of the documents and write what they print now.

The pictures of sessions are written with them; `--pictures` writes the pictures alone, from the sessions as they stand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.transcripts.documents import DOCUMENTS, ROOT, anew, replace, sessions
from tests.transcripts.picture import PICTURES, drawn
from tests.transcripts.scenes import stage


def main(arguments: list[str]) -> int:
    """Without --write only tell which sessions are not as they should be; exit code 1 if there is one."""
    found = 0
    named = {Path(name).resolve() for name in arguments if not name.startswith("--")}
    for file in () if "--pictures" in arguments else named or DOCUMENTS:
        for session in reversed(list(sessions(file))):  # From the end, so that the lines of the others stay true.
            with TemporaryDirectory(prefix="uky-transcripts-") as folder, stage(session, Path(folder)) as run:
                lines = anew(session, run)
            if lines != session.lines:
                found += 1
                sys.stdout.write(f"{session.place}: {session.scene}\n")
                if "--write" in arguments:
                    replace(session, lines)
    if "--write" in arguments or "--pictures" in arguments:
        for picture in PICTURES:
            (ROOT / picture).write_text(drawn(picture), encoding="utf-8")
    return int(found > 0 and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
