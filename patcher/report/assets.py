"""The reports of `data` and `model`: rows and columns of a parquet file, the newest model, what a warm-up has read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from patcher.i18n import Phrase, language, phrase, show
from patcher.terminal.document import Json, Lines, Part
from patcher.visible import visible_line

if TYPE_CHECKING:
    from patcher.session.session import Session

_WIDE = 160
"""Characters of a value that are shown. Set by hand: two lines of 80 columns."""
_TINY = {
    "written": "{file}: {rows} rows of {of}, written",
    "updated": "{file}: {rows} rows of {of}, replaced",
    "unchanged": "{file}: {rows} rows of {of}, there already",
}


def data_report(data: Mapping[str, Any], session: Session) -> Iterator[Part]:
    """`data`: file, rows, size in bytes, columns with types, and the first row, as the agent answers them."""
    if session.output == "json":
        columns = [{"name": name, "type": kind} for name, kind in data["columns"]]
        yield Json({**data, "columns": columns, "seconds": round(data["seconds"], 3)})
        return
    fields = {"file": data["file"], "rows": data["rows"], "columns": len(data["columns"]), "size": size(data["size"])}
    yield _line(phrase("{file}: {rows} {rows:row|rows}, {columns} {columns:column|columns}, {size}", **fields))
    first = data["first"] or {}
    width = max((len(name) for name, _ in data["columns"]), default=0)
    for name, kind in data["columns"]:
        value = json.dumps(first[name], ensure_ascii=False) if name in first else ""
        value = value if len(value) <= _WIDE else f"{value[:_WIDE]} …"
        yield Lines("  " + visible_line(f"{name:<{width}}  {kind}  {value}".rstrip()))


def tiny_data_report(data: Mapping[str, Any], session: Session) -> Iterator[Part]:
    """`data`: the file, its rows, what it is of, and `how`: written, updated, unchanged."""
    if session.output == "json":
        yield Json(data)
        return
    yield _line(phrase(_TINY[data["how"]], **{name: data[name] for name in ("file", "rows", "of")}))


def model_report(model: Mapping[str, Any], session: Session) -> Iterator[Part]:
    """`model`: the folder of the newest model, where it was looked for, and bytes of its weights."""
    if session.output == "json":
        yield Json(model)
        return
    yield Lines(visible_line(model["model"]))


def warm_report(done: Mapping[str, Any], session: Session) -> Iterator[Part]:
    """`done`: bytes read and cached before, seconds, files skipped for lack of memory or that could not be read."""
    speed = done["read"] / done["seconds"] / 1e6 if done["read"] and done["seconds"] else None
    if session.output == "json":
        yield Json({**done, "seconds": round(done["seconds"], 3), "mb_per_second": round(speed, 1) if speed else None})
        return
    yield _line(
        phrase(
            "{model}: {count} {count:file|files}, {size}",
            model=done["model"],
            count=done["files"],
            size=size(done["size"]),
        )
    )
    if done["cached"] is None:
        yield _line(phrase("it is not known what was in memory before: the files belong to another user"))
    else:
        yield _line(phrase("in memory before: {size}", size=size(done["cached"])))
    if speed is not None:
        fields = {"size": size(done["read"]), "seconds": f"{done['seconds']:.1f}", "speed": f"{speed:.0f}"}
        yield _line(phrase("read: {size} in {seconds} s, {speed} MB/s", **fields))
    for file in done["skipped"]:
        fields = {"file": file["path"], "size": size(file["size"])}
        yield _line(phrase("left out, as it does not fit into free memory: {file}, {size}", **fields))
    for path in done["failed"]:
        yield _line(phrase("could not be read: {file}", file=path))


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _line(text: Phrase) -> Lines:
    return Lines(show(text, language()))
