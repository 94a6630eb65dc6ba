"""Data sets and models for people and for programs."""

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
_TINY = {
    "written": "{file}: {rows} rows of {of}, written",
    "updated": "{file}: {rows} rows of {of}, replaced",
    "unchanged": "{file}: {rows} rows of {of}, there already",
}


def data_report(told: Mapping[str, Any], session: Session) -> Iterator[Part]:
    if session.output == "json":
        columns = [{"name": name, "type": kind} for name, kind in told["columns"]]
        yield Json({**told, "columns": columns, "seconds": round(told["seconds"], 3)})
        return
    fields = {"file": told["file"], "rows": told["rows"], "columns": len(told["columns"]), "size": size(told["size"])}
    yield _line(phrase("{file}: {rows} {rows:row|rows}, {columns} {columns:column|columns}, {size}", **fields))
    first = told["first"] or {}
    width = max((len(name) for name, _ in told["columns"]), default=0)
    for name, kind in told["columns"]:
        value = json.dumps(first[name], ensure_ascii=False) if name in first else ""
        value = value if len(value) <= _WIDE else f"{value[:_WIDE]} …"
        yield Lines("  " + visible_line(f"{name:<{width}}  {kind}  {value}".rstrip()))


def tiny_data_report(told: Mapping[str, Any], session: Session) -> Iterator[Part]:
    if session.output == "json":
        yield Json(told)
        return
    yield _line(phrase(_TINY[told["how"]], **{name: told[name] for name in ("file", "rows", "of")}))


def model_report(told: Mapping[str, Any], session: Session) -> Iterator[Part]:
    if session.output == "json":
        yield Json(told)
        return
    yield Lines(visible_line(told["model"]))


def warm_report(told: Mapping[str, Any], session: Session) -> Iterator[Part]:
    speed = told["read"] / told["seconds"] / 1e6 if told["read"] and told["seconds"] else None
    if session.output == "json":
        yield Json({**told, "seconds": round(told["seconds"], 3), "mb_per_second": round(speed, 1) if speed else None})
        return
    yield _line(
        phrase(
            "{model}: {count} {count:file|files}, {size}",
            model=told["model"],
            count=told["files"],
            size=size(told["size"]),
        )
    )
    if told["cached"] is None:
        yield _line(phrase("what was in memory before cannot be told: the files belong to another user"))
    else:
        yield _line(phrase("in memory before: {size}", size=size(told["cached"])))
    if speed is not None:
        fields = {"size": size(told["read"]), "seconds": f"{told['seconds']:.1f}", "speed": f"{speed:.0f}"}
        yield _line(phrase("read: {size} in {seconds} s, {speed} MB/s", **fields))
    for file in told["skipped"]:
        fields = {"file": file["path"], "size": size(file["size"])}
        yield _line(phrase("left out, as it does not fit into free memory: {file}, {size}", **fields))
    for path in told["failed"]:
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
