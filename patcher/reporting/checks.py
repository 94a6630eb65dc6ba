"""Checks for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from patcher.language import Language, language, show
from patcher.reporting.header import header, problems
from patcher.reporting.table import Cell, show_rows

if TYPE_CHECKING:
    from patcher.operations.verifying import Check, Status
    from patcher.session import Session

_STYLES: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "red", "skip": ""}


def show_checks(checks: Sequence[Check], session: Session) -> None:
    if session.output == "json":
        entries = [
            {
                "name": check.name,
                "level": check.level,
                "status": check.status,
                "seconds": round(check.seconds, 4),
                "detail": str(check.detail),
                "fix": str(check.fix),
            }
            for check in checks
        ]
        click.echo(json.dumps({"checks": entries, "nodes": []}, ensure_ascii=False))
        return
    tongue = language()
    click.echo("\n".join([header(session, tongue), *problems(session, tongue), ""]))
    show_rows(
        [
            (
                Cell(show(check.status, tongue), _STYLES[check.status]),
                Cell(check.name),
                Cell(f"{show(check.detail, tongue)}{_fix(check, tongue)}"),
            )
            for check in checks
            if check.status != "skip"
        ]
    )
    counts = Counter(check.status for check in checks)
    click.echo("\n" + ", ".join(f"{counts[status]} {show(status, tongue)}" for status in _STYLES if counts[status]))


def _fix(check: Check, tongue: Language) -> str:
    return f"  ->  {show(check.fix, tongue)}" if check.fix else ""
