"""Whether two texts that are no Python say the same but for comments: then a marker can stand in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

from patcher.rewrite.keyed import loads

_CONTINUED = re.compile(r"\\[ \t]*(#.*)?$", re.MULTILINE)


def same_but_for_comments(file: str, one: str, two: str) -> bool:
    """False also where the format has no comments, or is none that is known here."""
    name = file.rpartition("/")[2]
    read = next((read for form, read in _FORMS if form.search(name)), None)
    if read is None:
        return False
    try:
        return bool(read(one) == read(two))
    except Exception:  # Readers of four formats, on any text: no comment is put into what they refuse.
        return False


def _yaml(text: str) -> list[tuple[object, ...]]:
    """The events of a document, without their places: what a loader of any kind goes by."""
    import yaml

    events = yaml.parse(text, Loader=yaml.SafeLoader)
    return [(type(one), getattr(one, "value", None), getattr(one, "anchor", None)) for one in events]


def _shell(text: str) -> list[str]:
    # `a \` and a comment behind it, or below it, is another command.
    if any(_inside(text)):
        raise ValueError("a comment inside a command")
    return [*shlex.shlex(text, posix=True, punctuation_chars=True)]


def _inside(text: str) -> Iterator[bool]:
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        continued = line.rstrip().endswith("\\")
        yield continued and following.lstrip().startswith("#")


def _requirements(text: str) -> list[str]:
    if _CONTINUED.search(text):
        raise ValueError("a requirement over several lines")
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], object]], ...] = (
    (re.compile(r"\.ya?ml$"), _yaml),
    (re.compile(r"\.toml$"), loads),
    (re.compile(r"\.(sh|bash)$"), _shell),
    (re.compile(r"^requirements[\w.-]*\.txt$"), _requirements),
)
