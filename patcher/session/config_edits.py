"""Edits of uky-patch.toml: an item more in one of its lists, everything else in that file as it was."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import RecordError, TreeError, message_of
from patcher.i18n import phrase
from patcher.session import config as settings
from patcher.tables.mistakes import Mistake
from patcher.tables.toml import decode, key_lines
from patcher.tree.errors import tree_error
from patcher.worktree import files

_STRING = re.compile(r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'", re.DOTALL)
"""A string of TOML as it begins at a place; a bracket or a `#` in it means nothing."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """uky-patch.toml before (None: there is none) and after."""

    place: str
    before: bytes | None
    after: bytes
    mode: int | None

    @property
    def texts(self) -> tuple[str, str]:
        """Before and after, for a diff."""
        return (self.before or b"").decode(), self.after.decode()

    def write(self) -> None:
        """Raises TreeError."""
        if self.after == (self.before or b""):
            return
        try:
            files.write_whole_file(self.place, self.after, mode=self.mode)
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be written", path=self.place)) from error

    def take_back(self) -> None:
        """Put the file back as it was, where what was to follow has failed."""
        if self.after == (self.before or b""):
            return
        if self.before is None:
            Path(self.place).unlink()
        else:
            files.write_whole_file(self.place, self.before, mode=self.mode)


def with_items(root: Path, key: str, items: Sequence[str]) -> ConfigChange:
    """uky-patch.toml with some items in the list `key`.

    Raises RecordError where it cannot be edited safely, TreeError where it cannot be read.
    """
    path = root / settings.NAME
    content, mode = None, None
    try:
        place = files.inside(root, path)
        with suppress(FileNotFoundError):
            content, status = files.read_and_status(place, files.SETTINGS_BYTES)
            mode = stat.S_IMODE(status.st_mode)
        text = (content or b"").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TreeError(phrase("{path}: cannot be read", path=path), cause=message_of(error)) from error
    return ConfigChange(place, content, listed_in(text, key, items, str(path)).encode(), mode)


def listed_in(text: str, key: str, items: Sequence[str], path: str) -> str:
    """The settings with these items in the list `key`; comments and layout stay.

    Raises RecordError where that cannot be done without a doubt.
    """
    data = decode(text, Path(path))
    if isinstance(data, Mistake):
        raise RecordError(data.sentence)
    listed = data.get(key, [])
    missing = [name for name in dict.fromkeys(items) if name not in listed]
    if not missing:
        return text
    wanted = {**data, key: [*listed, *missing]}
    names = ", ".join(f'"{name}"' for name in missing)
    # What each way to write it means is read back: a layout that nobody foresaw is refused, not broken.
    for candidate in _in_list(text, key, missing) if key in data else _as_line(text, f"{key} = [{names}]"):
        if decode(candidate, Path(path)) == wanted:
            return candidate
    raise RecordError(
        phrase("{path}: {key} cannot be edited without touching what else is there", path=path, key=key),
        advice=phrase("Write it by hand: {line}", line=f"{key} = [{names}]"),
    )


def _as_line(text: str, line: str) -> Iterator[str]:
    """The texts with a new key: behind the other keys of the file, else before everything."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    tables = [number for key, number in key_lines(text).items() if lines[number - 1].lstrip().startswith("[")]
    at = min(tables, default=len(lines) + 1) - 1
    while at > 0 and tables and lines[at - 1].lstrip().startswith("#"):
        at -= 1  # The comment above a table belongs to the table.
    while at > 0 and not lines[at - 1].strip():
        at -= 1
    head, tail = "".join(lines[:at]), "".join(lines[at:])
    gap = newline if head and not head.endswith("\n") else ""
    below = newline if tail and tail.strip() and not tail.startswith(("\n", "\r")) else ""
    yield f"{head}{gap}{line}{newline}{below}{tail}"
    yield f"{line}{newline}{newline}{text}"


def _in_list(text: str, key: str, ids: Sequence[str]) -> Iterator[str]:
    """The text with more items in the list that is there, on lines of their own where the others are."""
    number = key_lines(text).get((key,))
    if number is None:
        return
    start = text.index("[", sum(map(len, text.splitlines(keepends=True)[: number - 1])))
    index, last = start + 1, start
    while index < len(text) and text[index] != "]":
        string = _STRING.match(text, index)
        if string:
            index = string.end()
            last = index - 1
        elif text[index] == "#":
            index = text.find("\n", index)
            if index < 0:
                return
        else:
            last = index if not text[index].isspace() else last
            index += 1
    before, behind = text[: last + 1], text[last + 1 :]
    comma = "" if text[last] in "[," else ","
    between = text[start:index]
    items = ", ".join(f'"{name}"' for name in ids)
    if "\n" not in between:
        yield f"{before}{comma}{' ' if text[last] != '[' else ''}{items}{behind}"
        return
    newline = "\r\n" if "\r\n" in between else "\n"
    line = before.rpartition("\n")[2]
    indent = line[: len(line) - len(line.lstrip())] if last > start and "\n" in text[start:last] else "    "
    rest, _, below = behind.partition("\n")
    added = "".join(f'{newline}{indent}"{name}",' for name in ids)
    yield f"{before}{comma}{rest.rstrip(chr(13))}{added}{newline}{below}"
    yield f"{before}{comma} {items}{behind}"
