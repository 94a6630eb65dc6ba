"""Sort the Chinese catalogue: `python -m bench.catalogue` puts each sentence into the file of the room that says it.

`patcher/i18n/zh/<room>.toml` has what one room alone says, `several.toml` what several say, and `others.toml` what the
operating system, Python's parsers and click say. Sentences keep their order and the headings (`# releases`) that they
stand under. It is run after sentences have moved between rooms, or after a merge that took both sides.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

import patcher

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(patcher.__file__).parent
FOLDER = PACKAGE / "i18n" / "zh"


def rooms_of_sentences() -> dict[str, set[str]]:
    """The rooms in whose code each literal text stands, a page being the report's."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value].add(room)
                for paragraph in node.value.split("\n\n") if room == "cli" else ():
                    found[" ".join(paragraph.split())].add(room)  # As click shows the docstring of a command.
    for path in PACKAGE.parent.joinpath("templates").glob("*.html.j2"):
        for text in re.findall(r'both\("([^"]+)"\)', path.read_text(encoding="utf-8")):
            found[text].add("report")
    return found


def file_of(rooms: set[str]) -> str:
    """The name of the file for a sentence that these rooms say."""
    return f"{min(rooms)}.toml" if len(rooms) == 1 else "several.toml" if rooms else "others.toml"


def sorted_catalogue() -> dict[str, str]:
    """The text of each file, by its name. Of two translations the later file's counts, as at run time."""
    rooms = rooms_of_sentences()
    entries: dict[str, tuple[str, str]] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        heading = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                heading = line
            elif line.strip():
                (english,) = tomllib.loads(line)
                entries[english] = (heading, line)
    files: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for english, (heading, line) in entries.items():
        files[file_of(rooms.get(english, set()))][heading].append(line)
    return {name: _joined(sections) for name, sections in files.items()}


def main() -> None:
    """Write the files anew."""
    files = sorted_catalogue()
    for path in FOLDER.glob("*.toml"):
        path.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def _joined(sections: dict[str, list[str]]) -> str:
    """Each heading with its sentences."""
    return "\n".join("\n".join(filter(None, (heading, *lines))) + "\n" for heading, lines in sections.items())


if __name__ == "__main__":
    main()
