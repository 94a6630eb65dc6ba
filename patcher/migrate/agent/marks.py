"""How many lines of a text carry each record's mark."""

from __future__ import annotations

import re


def marked_lines(text: str, word: str) -> dict[str, int]:
    """By record: the lines with `# WORD[record]`, also where the mark names several records."""
    pattern = re.compile(rf"#[ \t]*{re.escape(word)}\[([^\]\r\n]*)\]", re.IGNORECASE)
    found: dict[str, int] = {}
    for line in text.splitlines():
        names = {name.strip() for match in pattern.finditer(line) for name in match[1].split(",")}
        for name in names:
            found[name] = found.get(name, 0) + 1
    return found
