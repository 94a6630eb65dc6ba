"""What live processes answered, on a terminal or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from patcher.errors import message_of
from patcher.i18n import language, phrase, show
from patcher.report.answers import show_json
from patcher.report.asking import agreed
from patcher.report.table import Cell, show_rows
from patcher.terminal.printing import say
from patcher.watch.probe.probe import READS, WRITES, Answer, Write


def show_questions(output: Literal["text", "json"]) -> None:
    """What can be asked, and what can be done with its risk."""
    if output == "json":
        reads = {name: str(one.title) for name, one in READS.items()}
        writes = {name: {"title": str(one.title), "risk": str(one.risk)} for name, one in WRITES.items()}
        show_json({"reads": reads, "writes": writes})
        return
    tongue = language()
    say(show("Questions, which change nothing: uky-patch probe WHAT --pid PID", tongue))
    show_rows([[Cell(f"{name} {one.argument}".strip()), Cell(show(one.title, tongue))] for name, one in READS.items()])
    say(show("Changes to the process: uky-patch probe WHAT [VALUE] --write --pid PID", tongue))
    for name, action in WRITES.items():
        say(f"  {name} {action.argument}".rstrip() + f": {show(action.title, tongue)}")
        say(f"      {show(action.risk, tongue)}")


def agree(action: Write, targets: Sequence[str]) -> bool:
    """Say what would be done and its risk, and ask."""
    tongue = language()
    say(show(phrase("{title} in {targets}", title=action.title, targets=", ".join(targets)), tongue), err=True)
    say(show(action.risk, tongue), err=True)
    if agreed(phrase("Do it?"), yes=False):
        return True
    say(show("Nothing was done. To agree beforehand: --yes", tongue), err=True)
    return False


def show_answers(question: str, answers: Sequence[Answer], output: Literal["text", "json"]) -> None:
    """A table for each process, or why it gave none."""
    if output == "json":
        show_json({"question": question, "answers": [_answer(one) for one in answers]})
        return
    tongue = language()
    for answer in answers:
        say(show(phrase("process {target}", target=answer.target), tongue))
        if answer.error is not None:
            say(*f"  {show(message_of(answer.error), tongue)}".split("\n"))
        elif not answer.rows:
            say("  " + show("nothing of the kind in this process", tongue))
        else:
            head, *rows = _table(answer.rows)
            show_rows(rows, head=head)


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
