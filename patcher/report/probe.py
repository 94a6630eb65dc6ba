"""What live processes answered, on a terminal or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patcher.errors import message_of
from patcher.i18n import language, phrase, show
from patcher.terminal.document import Json, Lines, Output, Part, Table
from patcher.terminal.table import Cell
from patcher.watch.probe.probe import READS, WRITES, Answer, Write


def questions_report(output: Output) -> Iterator[Part]:
    """What can be asked, and what can be done with its risk."""
    if output == "json":
        reads = {name: str(one.title) for name, one in READS.items()}
        writes = {name: {"title": str(one.title), "risk": str(one.risk)} for name, one in WRITES.items()}
        yield Json({"reads": reads, "writes": writes})
        return
    tongue = language()
    yield Lines(phrase("Questions, which change nothing: uky-patch probe WHAT --pid PID"))
    yield Table(
        [[Cell(f"{name} {one.argument}".strip()), Cell(show(one.title, tongue))] for name, one in READS.items()]
    )
    yield Lines(phrase("Changes to the process: uky-patch probe WHAT [VALUE] --write --pid PID"))
    for name, action in WRITES.items():
        yield Lines(f"  {name} {action.argument}".rstrip() + f": {show(action.title, tongue)}")
        yield Lines(f"      {show(action.risk, tongue)}")


def risk_report(action: Write, targets: Sequence[str]) -> Iterator[Part]:
    """What would be done to these processes, and its risk."""
    tongue = language()
    message = phrase("{title} in {targets}", title=action.title, targets=", ".join(targets))
    yield Lines(message, show(action.risk, tongue), err=True)


def answers_report(question: str, answers: Sequence[Answer], output: Output) -> Iterator[Part]:
    """A table for each process, or why it gave none."""
    if output == "json":
        yield Json({"question": question, "answers": [_answer(one) for one in answers]})
        return
    tongue = language()
    for answer in answers:
        yield Lines(phrase("process {target}", target=answer.target))
        if answer.error is not None:
            yield Lines(*f"  {show(message_of(answer.error), tongue)}".split("\n"))
        elif not answer.rows:
            yield Lines("  " + show("nothing of the kind in this process", tongue))
        else:
            head, *rows = _table(answer.rows)
            yield Table(rows, head=head)


def _answer(answer: Answer) -> dict[str, Any]:
    rows = [dict(row) for row in answer.rows]
    return {"target": answer.target, "rows": rows, "error": str(answer.error) if answer.error is not None else None}


def _table(rows: Sequence[Mapping[str, Any]]) -> list[list[Cell]]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = [Cell(name, "bold") for name in names]
    return [head, *([Cell(_shown(row.get(name))) for name in names] for row in rows)]


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
