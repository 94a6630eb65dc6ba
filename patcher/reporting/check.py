"""A check for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from patcher.language import language, phrase
from patcher.reporting.table import Cell, show_rows

if TYPE_CHECKING:
    from patcher.compat.model import Finding
    from patcher.operations.checking import Check


def show_check(done: Check) -> None:
    """Print the contract's JSON, or what was found as text."""
    if done.session.output == "json":
        click.echo(json.dumps(as_json(done), ensure_ascii=False))
        return
    tongue = language()
    report = done.report
    rows = [
        (Cell(f.severity), Cell(f"{f.file}:{f.line}"), Cell(f.symbol), Cell(f.detail.render(tongue)))
        for f in report.findings
    ]
    show_rows(rows)
    text = phrase("{uses} uses, {unresolved} not decidable", uses=report.uses, unresolved=len(report.unresolved))
    click.echo(text.render(tongue))


def as_json(done: Check) -> dict[str, Any]:
    report = done.report
    return {
        "verl": report.verl,
        "against": dict(report.against),
        "uses": report.uses,
        "unresolved": len(report.unresolved),
        "findings": [finding_json(finding) for finding in report.findings],
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "file": finding.file,
        "line": finding.line,
        "symbol": finding.symbol,
        "kind": finding.kind,
        "severity": finding.severity,
        "since": finding.since,
        "repaired_by": finding.repaired_by,
        "suggestion": None if finding.suggestion is None else str(finding.suggestion),
        "detail": str(finding.detail),
        "moved_to": finding.moved_to or None,
        "function": finding.function or None,
    }
