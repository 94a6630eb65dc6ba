"""Prints a log with the pauses that its own stamps tell of, shortened; then ends with the code that it is given."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

log, shorter, code = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
before = None
out = sys.stdout.buffer
with Path(log).open("rb") as stream:
    for line in stream:
        if (found := re.search(rb"\b(\d\d):(\d\d):(\d\d)\b", line)) is not None:
            now = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
            if before is not None and now > before:
                out.flush()
                time.sleep((now - before) / shorter)
            before = max(now, before or 0)
        out.write(line)
out.flush()
sys.exit(code)
