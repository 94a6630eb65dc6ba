"""The picture of the rooms: `python -m bench.rooms` writes docs/architecture/rooms.svg.

The rooms and their order come from the layers of import-linter in pyproject.toml, so that the picture shows what
`make lint` enforces. The groups and the line about each room come from the tables in docs/architecture.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs/architecture.md"
PICTURE = ROOT / "docs/architecture/rooms.svg"

Layer = tuple[str, ...]
"""The rooms of one layer, one or several."""

_WIDTH, _ROW, _GAP, _EDGE = 860, 22, 5, 12
_COLOURS = ("#e8f0fe", "#e6f4ea", "#fef7e0", "#fce8e6", "#f1f3f4")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#202124}.r{font:600 12px ui-monospace,Menlo,Consolas,monospace}"
    ".g{font-weight:600;fill:#5f6368}rect{stroke:#dadce0}"
)


def layers() -> list[Layer]:
    """The layers of the package, top to bottom, as `make lint` knows them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return [tuple(re.split(r" *[:|] *", layer)) for layer in contract["layers"]]


def groups(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The groups of rooms in the text of docs/architecture.md: a name, and the line about each room."""
    chapter = text.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    for part in chapter.split("\n### ")[1:]:
        yield part.splitlines()[0], dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", part, re.MULTILINE))


def svg(found: list[Layer], text: str) -> str:
    """The picture. Raises ValueError where the document's rooms are not those of the layers, in their order."""
    described = {room: line for _, rooms in groups(text) for room, line in rooms.items()}
    expected = [room for layer in found for room in layer]
    if list(described) != expected:
        odd = sorted(set(described) ^ set(expected))
        raise ValueError(
            f"docs/architecture.md, The rooms: {', '.join(odd) or 'another order than'} [tool.importlinter]"
        )
    parts: list[str] = []
    y = _EDGE
    for (name, rooms), colour in zip(groups(text), _COLOURS, strict=True):
        inside = [layer for layer in found if layer[0] in rooms]
        height = _ROW + sum(len(layer) * _ROW + _GAP for layer in inside) + _GAP
        parts.append(
            f'<rect x="{_EDGE}" y="{y}" width="{_WIDTH - 2 * _EDGE}" height="{height}" rx="6" fill="{colour}"/>'
        )
        parts.append(f'<text x="{_EDGE + 10}" y="{y + 16}" class="g">{escape(name)}</text>')
        y += _ROW
        for layer in inside:
            parts += _boxed(layer, described, y)
            y += len(layer) * _ROW + _GAP
        y += 2 * _GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}">'
    return "\n".join(
        [head, f'<style>{_STYLE}</style><rect width="{_WIDTH}" height="{y}" fill="#fff"/>', *parts, "</svg>\n"]
    )


def _boxed(layer: Layer, described: dict[str, str], y: int) -> Iterator[str]:
    """One layer: a box with a row for each of its rooms."""
    left, width = _EDGE + 8, _WIDTH - 2 * _EDGE - 16
    yield f'<rect x="{left}" y="{y}" width="{width}" height="{len(layer) * _ROW}" rx="4" fill="#fff"/>'
    for index, room in enumerate(layer):
        base = y + index * _ROW + 15
        line = escape(re.sub(r"[`*]|\[([^]]+)\]\([^)]+\)", r"\1", described[room]))
        name = f'<tspan class="r">{room}</tspan>'
        yield f'<text x="{left + 8}" y="{base}">{name}<tspan x="{left + 110}">{line}</tspan></text>'


def main() -> int:
    """Write the picture; 1 where the document does not describe the rooms that there are."""
    try:
        PICTURE.write_text(svg(layers(), DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
