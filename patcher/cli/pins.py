"""`uky-patch pins`: what other versions would mean for the fork."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, with_session
from patcher.errors import ExitCode
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.check.pinning import Pins
    from patcher.preflight.importing import Imports


@click.command("pins", cls=Command)
@click.argument("file", required=False, type=GivenPath(), metavar="[FILE]")
@click.option("--to", multiple=True, metavar="NAME==VER", help="A proposed version; counts before what FILE says.")
@click.option("--newest", is_flag=True, help="Propose the newest vLLM and transformers, and look at the newest verl.")
@click.option(
    "--import-with",
    type=GivenPath(dir_okay=False),
    metavar="PYTHON",
    help="Propose what is installed there, and import the fork with it too.",
)
@click.option("--since", is_flag=True, help="Find the first release that shows each finding.")
@click.option("--draft", type=GivenPath(), metavar="DIR", help="Draft records for the rest in DIR.")
@click.option("--html", type=GivenPath(dir_okay=False), metavar="FILE", help="Write a page of the check too.")
@click.option("--markdown", type=GivenPath(dir_okay=False), metavar="FILE", help="Write the result as Markdown too.")
@with_session
def command(
    session: Session,
    file: Path | None,
    to: tuple[str, ...],
    newest: bool,
    import_with: Path | None,
    since: bool,
    draft: Path | None,
    html: Path | None,
    markdown: Path | None,
) -> int:
    """Compare the fork's versions with those in FILE: requirements, a freeze list, pyproject.toml, uv.lock, [pins].

    Exit code 0 only if nothing breaks once the records are applied, and no record drifts.

    With --import-with PYTHON the fork's modules are imported there too, untouched and with records and drafts. All that
    need nothing that is not installed must import in the end.
    """
    from datetime import date

    from patcher.check.pinning import PinsRequest, compare
    from patcher.report.pins import pins_markdown, pins_page, pins_report
    from patcher.terminal.document import print_report
    from patcher.terminal.report_file import markdown_file, page_file, write_whole

    page, text = page_file(html), markdown_file(markdown)
    request = PinsRequest(file, to, newest, import_with, since, draft)
    done = compare(session, request)
    imports = _imports(done, session, import_with)
    today = date.today().isoformat()
    page_written = text_written = None
    try:
        if page is not None and done.check is not None:
            write_whole(page, pins_page(done, session, request, page, date=today))
            page_written = page
        if text is not None:
            write_whole(text, pins_markdown(done, imports, date=today))
            text_written = text
    finally:
        # A full disk takes a file, and not what was found.
        print_report(pins_report(done, imports, session, page=page_written, markdown=text_written))
    drafted = done.check.drafted if done.check is not None else None
    if drafted is not None and drafted.files.failed is not None:
        raise drafted.files.failed
    clean = done.clean and not (imports is not None and imports.failed)
    return ExitCode.CLEAN if clean else ExitCode.FINDINGS


def _imports(done: Pins, session: Session, interpreter: Path | None) -> Imports | None:
    if interpreter is None:
        return None
    from patcher.preflight.importing import import_modules

    return import_modules(done, replace(session, python=interpreter))
