"""`uky-patch symptoms`: the failures, stalls and bad courses that are known, and what to do."""

from __future__ import annotations

import click

from patcher.cli.completing import symptom_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session
from patcher.terminal.answers import show_json


@click.command("symptoms", cls=Command)
@click.argument("symptom_id", metavar="[ID]", required=False, shell_complete=symptom_ids)
@click.option("--card", is_flag=True, help="The quick-fix card: the line to look for, the first thing to do.")
@with_session
def command(session: Session, /, symptom_id: str | None, card: bool) -> int:
    """The decision tree over all symptom records, or one of them in full."""
    from patcher.diagnose.symptom_tree import choose_symptoms
    from patcher.i18n import language
    from patcher.report.symptoms import card_report, symptom_json, symptom_report, tree_report
    from patcher.terminal.document import print_report

    symptoms = choose_symptoms(session, symptom_id)
    if session.output == "json":
        show_json({"symptoms": [symptom_json(symptom) for symptom in symptoms]})
    elif symptom_id is not None:
        print_report(symptom_report(symptoms[0], language()))
    else:
        print_report((card_report if card else tree_report)(symptoms, language()))
    return ExitCode.CLEAN
