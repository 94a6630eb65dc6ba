"""`uky-patch symptoms`: the failures, stalls and bad courses that are known, and what to do."""

from __future__ import annotations

import click

from patcher.cli.completing import symptom_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.report.answers import show_json
from patcher.session.session import Session


@click.command("symptoms", cls=Command)
@click.argument("symptom_id", metavar="[ID]", required=False, shell_complete=symptom_ids)
@click.option("--card", is_flag=True, help="The quick-fix card: the line to look for, the first thing to do.")
@with_session
def command(session: Session, /, symptom_id: str | None, card: bool) -> int:
    """The decision tree over all symptom records, or one of them in full."""
    from patcher.diagnose.symptom_tree import choose_symptoms
    from patcher.i18n import language
    from patcher.report.symptoms import show_card, show_symptom, show_tree, symptom_json

    symptoms = choose_symptoms(session, symptom_id)
    if session.output == "json":
        show_json({"symptoms": [symptom_json(symptom) for symptom in symptoms]})
    elif symptom_id is not None:
        show_symptom(symptoms[0], language())
    else:
        (show_card if card else show_tree)(symptoms, language())
    return 0
