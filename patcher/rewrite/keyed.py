"""Where the values of YAML and TOML stand in the text, by their dotted keys, and the text with one more or one less.

    trainer:
      total_epochs: 30          the key `trainer.total_epochs`, whose value `30` stands from one offset to another
      stages:
        - name: warm            the key `trainer.stages.0.name`

PyYAML tells offsets. tomllib does not, so a value of TOML is found on the line of its key, by what still parses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from patcher.rewrite.outcome import EOL
from patcher.tables.toml import key_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from yaml import MappingNode, Node


class UnreadableValueError(ValueError):
    """The text is not of its format; `line` says where, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Spot:
    """A value and where it stands in the text."""

    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class Form:
    """How one format is read and edited. All functions take the whole text; offsets count characters."""

    spots: Callable[[str], Iterable[tuple[str, Spot | None]]]
    """Text: all keys in order, each with its value; None where that is no value on its own, as of a block of YAML."""
    add: Callable[[str, str, str, str | None, str | None], str | None]
    """Text, key, value, `behind`, comment: the text with a new key, or None where it has no place."""
    take: Callable[[str, Spot], str]
    """Text, a value's place: the text without the key."""
    same: Callable[[str, str], bool]
    """Whether two values say the same, however they are written."""
    place_of: Callable[[str, str], int | None] = lambda text, key: 0  # noqa: ARG005
    """Text, key: where the key would be, or None where what it would be in is not there."""

    def find(self, text: str, key: str) -> list[Spot]:
        """The values under a key."""
        return [spot for name, spot in self.spots(text) if name == key and spot is not None]

    def keys(self, text: str) -> list[str]:
        return [name for name, _ in self.spots(text)]


def line_around(text: str, at: int) -> tuple[int, int]:
    """Where the line of an offset begins, and where the next one does."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    end = EOL.search(text, at)
    return start, end.end() if end else len(text)


def inserted_line(text: str, at: int, lines: str) -> str:
    """Lines put in at the beginning of a line; the last line of a text may lack its end."""
    newline = next(iter(EOL.findall(text)), "\n")
    gap = "" if not text[:at] or text[:at].endswith(("\n", "\r")) else newline
    return f"{text[:at]}{gap}{newline.join(lines.splitlines())}{newline}{text[at:]}"


# YAML


@lru_cache(maxsize=16)
def _composed(text: str) -> Node | None:
    import yaml

    try:
        loader = yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader
        return yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UnreadableValueError(mark.line + 1 if mark else 1, str(getattr(error, "problem", error))) from None


def _pairs(node: Node, path: str = "") -> Iterator[tuple[str, Node, Node, MappingNode]]:
    """All keys below a node with their dotted paths: the key, its value, and the mapping that it is in."""
    from yaml import MappingNode, ScalarNode, SequenceNode

    stack: list[tuple[Node, str]] = [(node, path)]
    while stack:
        above, at = stack.pop()
        if isinstance(above, MappingNode):
            for key, value in above.value:
                if isinstance(key, ScalarNode):
                    name = f"{at}.{key.value}" if at else str(key.value)
                    yield name, key, value, above
                    stack.append((value, name))
        elif isinstance(above, SequenceNode):
            stack += [(one, f"{at}.{index}") for index, one in enumerate(above.value)]


@lru_cache(maxsize=16)
def _yaml_spots(text: str) -> tuple[tuple[str, Spot | None], ...]:
    from yaml import ScalarNode

    root = _composed(text)
    found: list[tuple[int, str, Spot | None]] = []
    for name, key, value, _ in _pairs(root) if root is not None else ():
        start, end = value.start_mark.index, value.end_mark.index
        alone = isinstance(value, ScalarNode) or getattr(value, "flow_style", False)
        found.append((key.start_mark.index, name, Spot(start, end, text[start:end]) if alone else None))
    return tuple((name, spot) for _, name, spot in sorted(found, key=lambda one: one[0]))


def _mapping(text: str, key: str) -> tuple[MappingNode | None, str]:
    """The mapping that a key is or would be in, and the last part of the key."""
    from yaml import MappingNode

    parent, _, last = key.rpartition(".")
    root = _composed(text)
    if root is None:
        return None, last
    above = root if not parent else next((value for name, _, value, _ in _pairs(root) if name == parent), None)
    return (above if isinstance(above, MappingNode) else None), last


def _last_offset(text: str, node: Any) -> int:
    """The end of what a node says: the mark of a block ends where the next token begins."""
    if isinstance(node.value, str) or node.flow_style:
        end: int = node.end_mark.index
        return end if not text[:end].endswith("\n") else end - 1
    last = node.value[-1]
    return _last_offset(text, last[1] if isinstance(last, tuple) else last)


def _yaml_add(text: str, key: str, value: str, behind: str | None, comment: str | None) -> str | None:
    mapping, last = _mapping(text, key)
    if mapping is None or mapping.flow_style or not mapping.value:
        return None
    pairs = [(one.value, one, of) for one, of in mapping.value]
    chosen = next((pair for pair in pairs if pair[0] == behind), None) if behind is not None else pairs[-1]
    if chosen is None:
        return None
    indent = " " * pairs[0][1].start_mark.column
    _, at = line_around(text, _last_offset(text, chosen[2]))
    lines = [f"{indent}{line}" if line else "" for line in (comment or "").splitlines()]
    return inserted_line(text, at, "\n".join([*lines, f"{indent}{last}: {value}".rstrip()]))


def without_lines(text: str, spot: Spot) -> str:
    """The text without the lines that a value stands on."""
    start, _ = line_around(text, spot.start)
    _, end = line_around(text, max(spot.start, spot.end - 1))
    return text[:start] + text[end:]


def _yaml_same(one: str, two: str) -> bool:
    import yaml

    try:
        read = [[(type(event), getattr(event, "value", None), getattr(event, "tag", None)) for event in events]
                for events in (yaml.parse(text, Loader=yaml.SafeLoader) for text in (one, two))]  # fmt: skip
    except yaml.YAMLError:
        return one == two
    # A word in quotes is text, the same word without may be a number: `"3"` is not `3`.
    return read[0] == read[1] and [text[:1] in "\"'" for text in (one, two)] in ([True] * 2, [False] * 2)


def _yaml_place(text: str, key: str) -> int | None:
    parent, root = key.rpartition(".")[0], _composed(text)
    if root is None or not parent:
        return 0
    return next((at.start_mark.index for name, at, *_ in _pairs(root) if name == parent), None)


YAML = Form(_yaml_spots, _yaml_add, without_lines, _yaml_same, _yaml_place)


# TOML


def loads(text: str) -> dict[str, Any]:
    """What TOML says. Raises UnreadableValueError."""
    try:
        found: dict[str, Any] = tomllib.loads(text)
        return found
    except tomllib.TOMLDecodeError as error:
        raise UnreadableValueError(1, str(error)) from None


def _toml_lines(text: str) -> dict[str, int]:
    loads(text)
    return {".".join(map(str, path)): line for path, line in key_lines(text).items()}


@lru_cache(maxsize=16)
def _toml_spots(text: str) -> tuple[tuple[str, Spot | None], ...]:
    starts = [0, *(match.end() for match in EOL.finditer(text))]
    lines = EOL.split(text)
    return tuple((key, _toml_spot(lines[line - 1], starts[line - 1])) for key, line in _toml_lines(text).items())


def _toml_spot(line: str, at: int) -> Spot | None:
    """The value on the line of a key; one of several lines is none that can be put in the place of another."""
    name, sign, rest = line.partition("=")
    if not sign or line.lstrip().startswith("["):
        return None
    start = at + len(name) + 1 + len(rest) - len(rest.lstrip())
    cuts = [*(index for index, char in enumerate(rest) if char == "#"), len(rest)]
    for cut in cuts:
        value = rest[:cut].strip()
        try:
            loads(f"x = {value}")
        except UnreadableValueError:
            continue
        return Spot(start, start + len(value), value)
    return None


def _toml_add(text: str, key: str, value: str, behind: str | None, comment: str | None) -> str | None:
    parent, _, last = key.rpartition(".")
    lines = _toml_lines(text)
    inside = {name: line for name, line in lines.items() if name.rpartition(".")[0] == parent and TOML.find(text, name)}
    if behind is not None:
        inside = {name: line for name, line in inside.items() if name.rpartition(".")[2] == behind}
    starts = [0, *(match.end() for match in EOL.finditer(text)), len(text)]
    if inside:
        at = starts[max(inside.values())]
    elif behind is None and parent in lines:
        at = starts[lines[parent]]
    else:
        return None
    return inserted_line(text, at, "\n".join([*(comment or "").splitlines(), f"{last} = {value}"]))


def _toml_same(one: str, two: str) -> bool:
    try:
        return loads(f"x = {one}") == loads(f"x = {two}")
    except UnreadableValueError:
        return one == two


def _toml_place(text: str, key: str) -> int | None:
    parent, lines = key.rpartition(".")[0], _toml_lines(text)
    return 0 if not parent or parent in lines else None


TOML = Form(_toml_spots, _toml_add, without_lines, _toml_same, _toml_place)
