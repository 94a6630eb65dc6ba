"""`uky-patch record`: edits made by hand into records."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, new_files, with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import language, phrase, show
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.recording.base import Base
    from patcher.recording.proposal import Group, Left, Proposal, Recorded


F = TypeVar("F", bound=Callable[..., object])


def writing_options(command: F) -> F:
    """What becomes of the records that are proposed: the options that `record` and `backport` share."""
    into = click.option("--into", metavar="DIR", type=GivenPath(file_okay=False), help="The folder for the records.")
    dry = click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if a record would be written.")
    change = "Show each record's change, and write nothing; exit code as of --dry-run."
    diff = click.option("--diff", is_flag=True, help=change)
    yes = click.option("--yes", is_flag=True, help="Ask nothing: keep every record as it is proposed.")
    return into(dry(diff(yes(command))))


@click.command("record", cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--from",
    "base",
    metavar="BASE",
    default="HEAD",
    help="What the edits are compared with: a commit, A..B, verl==VERSION, or upstream, which is found. Default: HEAD.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="PKG==VERSION",
    help="A release that check is asked about: what each edit repairs, and since when, goes into its record.",
)
@new_files("Also the files that the fork has added and git does not ignore: a record makes each of them.")
@writing_options
@with_session
def command(
    session: Session,
    files: tuple[str, ...],
    base: str,
    against: tuple[str, ...],
    new: bool,
    into: Path | None,
    dry_run: bool,
    diff: bool,
    yes: bool,
) -> int:
    """Make records of what was edited by hand. Each is proven before it is written: base and records give the fork.

    With FILEs or folders, only what differs in these. On a terminal, each record is shown and may be named, split or
    skipped.
    """
    from patcher.recording.base import find_base
    from patcher.recording.recording import propose
    from patcher.recording.saving import folder_for, save
    from patcher.report.recording import record_report
    from patcher.terminal.document import print_report
    from patcher.terminal.progress import progress

    dry_run = dry_run or diff
    folder = folder_for(session, into)
    only = tuple(below_root(session, file) for file in files)

    compared = find_base(session, base, new=new)
    for file in only:
        _require_known(session, compared, file)
    found = propose(session, compared, only=only, against=against, new=new, tell=progress)
    progress("")
    if not dry_run and not yes and is_asked(session):
        found = asked(session, found)
    saved = save(session, found.records, folder) if found.records and not dry_run else None
    print_report(record_report(found, session, saved, diff=diff))
    return ExitCode.FINDINGS if dry_run and found.records else ExitCode.CLEAN


def below_root(session: Session, file: str) -> str:
    """A path as the tree names it, given below its root or below the folder that the command was started in."""
    root = session.tree.root
    here = Path.cwd() / file
    if not Path(file).is_absolute() and ((root / file).exists() or not here.exists()):
        return Path(file).as_posix()
    try:
        return here.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise UsageError(phrase("the tree {root} does not hold {file}", file=file, root=root)) from None


def _require_known(session: Session, base: Base, file: str) -> None:
    """Raise UsageError where neither the tree nor the base has a file or folder."""
    differing = {*base.before, *base.unreadable}
    if os.path.lexists(session.tree.root / file) or any(
        path == file or path.startswith(f"{file.rstrip('/')}/") for path in differing
    ):
        return
    alike = [path for path in differing if path.endswith(f"/{file}")]
    near = sorted(alike) or get_close_matches(file, sorted(differing), n=3)
    raise UsageError(
        phrase("{file}: no such file in the tree or in {base}", file=file, base=base.name),
        advice=phrase("Did you mean {names}?", names=", ".join(near[:3])) if near else "",
    )


def is_asked(session: Session) -> bool:
    """Whether somebody is there to answer."""
    return session.output == "text" and sys.stdin.isatty() and sys.stderr.isatty()


def asked(session: Session, found: Proposal) -> Proposal:
    """The proposal as somebody at the terminal wants it."""
    from patcher.recording.proposal import SKIPPED, Left, line_of
    from patcher.recording.recording import with_records

    groups: list[Group] = []
    skipped: list[Left] = []
    waiting = list(found.records)
    while waiting:
        one = waiting.pop(0)
        kept, others = _ask_about(one, found, len(waiting))
        groups += kept
        if not kept and others == []:
            places = {(piece.file, line_of(piece, found.files, session.config.marker)) for piece in one.pieces}
            skipped += [Left(*place, SKIPPED) for place in sorted(places)]
        if others is None:
            groups += [_as_group(one) for one in waiting]
            break
        if others:
            waiting = [*with_records(session, found, others).records, *waiting]
    return with_records(session, replace(found, left=(*found.left, *skipped)), groups)


def _as_group(one: Recorded, name: str = "") -> Group:
    from patcher.recording.proposal import Group

    return Group(one.pieces, name or one.record.id)


def _ask_about(one: Recorded, found: Proposal, more: int) -> tuple[list[Group], list[Group] | None]:
    """What is kept of a record, and what is to be asked about next; None: all others stay as they are."""
    from patcher.recording.proposal import Group
    from patcher.report.recording import proposed
    from patcher.terminal.document import print_report

    print_report(proposed(one, found, language()))
    text = "keep (k), name (n), split (p), skip (s), or keep all (a; {more} more follow)?"
    question = phrase(text, more=more)
    choices = {"k": "keep", "n": "name", "p": "split", "s": "skip", "a": "all"}
    answer = click.prompt(
        show(question, language()),
        type=click.Choice([*choices, *choices.values()]),
        default="keep",
        err=True,
        show_choices=False,
    )
    match choices.get(answer, answer):
        case "keep":
            return [_as_group(one)], []
        case "name":
            return [_as_group(one, _asked_name())], []
        case "split":
            return [], [Group((piece,)) for piece in one.pieces]
        case "all":
            return [_as_group(one)], None
        case _:
            return [], []


def _asked_name() -> str:
    from patcher.records.rules import is_id

    def read(text: str) -> str:
        try:
            is_id(text)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return text

    name: str = click.prompt(show(phrase("its id"), language()), value_proc=read, err=True)
    return name
