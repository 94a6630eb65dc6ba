"""Where requirements (`vllm>=0.12`) stand in the files that list them: lines of a requirements file, or strings.

A requirement is found by the name of its package, spelled in any way: `flash_attn` is `flash-attn`. In setup.py and
pyproject.toml any string counts that reads as a requirement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patcher.rewrite.keyed import Form, Spot, inserted_line, line_around, without_lines

_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<text>[A-Za-z0-9][^\"'\n]*)(?P=quote)")


def name_of(requirement: str) -> str:
    """The name of a requirement as packages are compared by; "" for what is none."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return ""


def check_requirement(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no requirement."""
    if not name_of(text):
        raise ValueError("is no requirement, such as vllm>=0.12")


def _same_requirement(one: str, two: str) -> bool:
    from packaging.requirements import Requirement

    return str(Requirement(one)) == str(Requirement(two))


def requirements_form(file: str) -> Form:
    """How requirements are found in a file of this name: one a line, or each a string."""
    return _STRINGS if file.endswith((".py", ".toml")) else _LINES


def _on_lines(text: str) -> Iterator[tuple[str, Spot]]:
    for match in re.finditer(r"^[ \t]*([A-Za-z0-9][^#\r\n]*?)[ \t]*(?=(?:[ \t]#.*)?$)", text, re.MULTILINE):
        if name := name_of(match[1]):
            yield name, Spot(match.start(1), match.end(1), match[1])


def _in_strings(text: str) -> Iterator[tuple[str, Spot]]:
    for match in _QUOTED.finditer(text):
        start, _ = line_around(text, match.start())
        if not text[start : match.start()].lstrip().startswith("#") and (name := name_of(match["text"])):
            yield name, Spot(match.start("text"), match.end("text"), match["text"])


def _lines_add(text: str, key: str, value: str, behind: str | None, comment: str | None) -> str | None:  # noqa: ARG001
    at = len(text)
    if behind is not None:
        spots = [spot for name, spot in _on_lines(text) if name == name_of(behind)]
        if len(spots) != 1:
            return None
        _, at = line_around(text, spots[0].start)
    return inserted_line(text, at, value)


def _strings_add(text: str, key: str, value: str, behind: str | None, comment: str | None) -> str | None:  # noqa: ARG001
    spots = [spot for name, spot in _in_strings(text) if behind is not None and name == name_of(behind)]
    if len(spots) != 1:
        return None
    spot = spots[0]
    start, end = line_around(text, spot.start)
    quote = text[spot.start - 1]
    if not text[start : spot.start - 1].strip() and text[spot.end + 1 : end].strip()[:1] == ",":
        return inserted_line(text, end, f"{text[start : spot.start]}{value}{quote},")
    return f"{text[: spot.end + 1]}, {quote}{value}{quote}{text[spot.end + 1 :]}"


def _strings_take(text: str, spot: Spot) -> str:
    start, end = line_around(text, spot.start)
    if not text[start : spot.start - 1].strip() and text[spot.end + 1 : end].strip() in (",", ""):
        return without_lines(text, spot)
    behind = re.match(r",[ \t]*", text[spot.end + 1 :])
    if behind:
        return text[: spot.start - 1] + text[spot.end + 1 + behind.end() :]
    return re.sub(r",[ \t]*$", "", text[: spot.start - 1]) + text[spot.end + 1 :]


_LINES = Form(_on_lines, _lines_add, without_lines, _same_requirement)
_STRINGS = Form(_in_strings, _strings_add, _strings_take, _same_requirement)
