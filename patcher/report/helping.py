"""Data sets and models for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from patcher.i18n import Phrase, language, phrase, show
from patcher.report.answers import show_json
from patcher.terminal.printing import say
from patcher.terminal.progress import progress
from patcher.visible import visible_line

if TYPE_CHECKING:
    from patcher.session.session import Session

_WIDE = 160
_TINY = {
    "written": "{file}: {rows} rows of {of}, written",
    "updated": "{file}: {rows} rows of {of}, replaced",
    "unchanged": "{file}: {rows} rows of {of}, there already",
}


def show_data(told: Mapping[str, Any], session: Session) -> None:
    if session.output == "json":
        columns = [{"name": name, "type": kind} for name, kind in told["columns"]]
        _json({**told, "columns": columns, "seconds": round(told["seconds"], 3)})
        return
    fields = {"file": told["file"], "rows": told["rows"], "columns": len(told["columns"]), "size": size(told["size"])}
    _say(phrase("{file}: {rows} {rows:row|rows}, {columns} {columns:column|columns}, {size}", **fields))
    first = told["first"] or {}
    width = max((len(name) for name, _ in told["columns"]), default=0)
    for name, kind in told["columns"]:
        value = json.dumps(first[name], ensure_ascii=False) if name in first else ""
        value = value if len(value) <= _WIDE else f"{value[:_WIDE]} …"
        say("  " + visible_line(f"{name:<{width}}  {kind}  {value}".rstrip()))


def show_tiny(told: Mapping[str, Any], session: Session) -> None:
    if session.output == "json":
        _json(told)
        return
    _say(phrase(_TINY[told["how"]], **{name: told[name] for name in ("file", "rows", "of")}))


def show_model(told: Mapping[str, Any], session: Session) -> None:
    if session.output == "json":
        _json(told)
        return
    say(visible_line(told["model"]))


def show_warming(read: int, total: int) -> None:
    """Progress on standard error, on a terminal alone."""
    progress(phrase("reading the weights"), read, total)


def show_warm(told: Mapping[str, Any], session: Session) -> None:
    speed = told["read"] / told["seconds"] / 1e6 if told["read"] and told["seconds"] else None
    if session.output == "json":
        _json({**told, "seconds": round(told["seconds"], 3), "mb_per_second": round(speed, 1) if speed else None})
        return
    _say(
        phrase(
            "{model}: {count} {count:file|files}, {size}",
            model=told["model"],
            count=told["files"],
            size=size(told["size"]),
        )
    )
    if told["cached"] is None:
        _say(phrase("what was in memory before cannot be told: the files belong to another user"))
    else:
        _say(phrase("in memory before: {size}", size=size(told["cached"])))
    if speed is not None:
        fields = {"size": size(told["read"]), "seconds": f"{told['seconds']:.1f}", "speed": f"{speed:.0f}"}
        _say(phrase("read: {size} in {seconds} s, {speed} MB/s", **fields))
    for file in told["skipped"]:
        fields = {"file": file["path"], "size": size(file["size"])}
        _say(phrase("left out, as it does not fit into free memory: {file}, {size}", **fields))
    for path in told["failed"]:
        _say(phrase("could not be read: {file}", file=path))


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _say(text: Phrase) -> None:
    say(show(text, language()))


def _json(told: Mapping[str, Any]) -> None:
    show_json(told)
