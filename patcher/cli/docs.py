"""`uky-patch docs`: the fork's own change record."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.i18n import language, phrase
from patcher.session.session import Session
from patcher.terminal.answers import show_json


@click.command("docs", cls=Command)
@click.option("--write", is_flag=True, help="Write MIGRATION.md and MIGRATION.zh-CN.md into the tree.")
@click.option("--force", is_flag=True, help="Also in the place of one made or edited by hand; a copy is kept.")
@with_session
def command(session: Session, write: bool, force: bool) -> int:
    """Print what this fork changes: its records, those of uky-patch in it, edits in no record, versions, hosts.

    `verify` says when the file that was written no longer holds.
    """
    from patcher.patching.change_record import NAMES, fork_state, write_document
    from patcher.report.documents import fork_document, fork_documents_report
    from patcher.terminal.document import Lines, print_report
    from patcher.tree.errors import tree_error

    state = fork_state(session)
    texts = {name: fork_document(name, state, session) for name in NAMES}
    if not write:
        name = NAMES[1 if language() == "zh" else 0]
        if session.output == "json":
            show_json({"root": str(session.tree.root), "file": name, "text": texts[name]})
        else:
            print_report([Lines(*texts[name].splitlines())])
        return ExitCode.CLEAN
    try:
        outcomes = {name: write_document(session, name, text, state.basis, force=force) for name, text in texts.items()}
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be written", path=session.tree.root / NAMES[0])) from error
    print_report(fork_documents_report(outcomes, session))
    return ExitCode.FINDINGS if {"foreign", "edited"} & set(outcomes.values()) else ExitCode.CLEAN
