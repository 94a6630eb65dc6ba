"""A diagnosis on a terminal or as JSON."""

from __future__ import annotations

import json
from typing import Literal

import click

from patcher.diagnosis.model import Diagnosis, Finding
from patcher.diagnosis.naming import name
from patcher.language import language, phrase, show


def show_diagnosis(found: Diagnosis, output: Literal["text", "json"]) -> None:
    if output == "json":
        click.echo(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
        return
    tongue = language()
    click.echo(show(phrase("{verdict} in phase {phase}", verdict=found.verdict, phase=name(found.phase)), tongue))
    for finding in found.findings:
        _show(finding, tongue)


def _show(finding: Finding, tongue: str) -> None:
    click.echo(f"  {finding.role}  {finding.id}  {finding.place.file}:{finding.place.number}: {finding.place.text}")
    if finding.symptom is not None:
        click.echo(f"    {(finding.symptom.zh if tongue == 'zh' else finding.symptom).cause}")
    for offer in finding.fixes:
        click.echo(f"    - {offer.zh if tongue == 'zh' else offer.text}")
        for command in offer.commands:
            click.echo(f"        {command}")
