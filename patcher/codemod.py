"""A record as an ordinary libcst codemod.

    python -m libcst.tool codemod --no-format -x patcher.codemod.RecordCommand --record ID PATH...

libcst's runner reads and writes the files, so that there is no ledger, no lock and no pre-image: take `uky-patch apply`
for a fork that is to be patched, and this where codemods are run anyway, or in one of your own (see `RecordCommand`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from patcher.errors import UkyError
from patcher.plan.replay import Workspace, excused
from patcher.records.load import load
from patcher.records.model import Record
from patcher.rewrite.edits import CreateFile, Edit, Style
from patcher.rewrite.outcome import AlreadyDone


class CodemodError(Exception):
    """There is no such record, none that edits Python, or its edits do not all land in the file, which stays as it
    is."""


class RecordCommand(CodemodCommand):
    """Makes the edits that one record has for a file, all of them or none; skips files that the record does not name.

    Arguments:
        record: the id of a record.
        patches: folders of further records, beside those that come with uky-patch.
        clean: drop the old lines in place of keeping them as comments.

    Raises:
        CodemodError: there is no such record, or it edits no Python.
        patcher.errors.RecordError: a record cannot be read.
    """

    DESCRIPTION = "Make the edits of one uky-patch record."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--record", required=True, metavar="ID", help="The record's id, as in uky-patch list.")
        arg_parser.add_argument("--patches", action="append", metavar="DIR", help="A further folder of records.")
        arg_parser.add_argument("--clean", action="store_true", help="Drop the old lines.")
        read = arg_parser.parse_known_args

        def read_and_checked(*arguments: Any, **named: Any) -> tuple[argparse.Namespace, list[str]]:
            # libcst's runner makes a command for each file, and shows a traceback for each.
            found, others = read(*arguments, **named)
            try:
                _record(found.record, found.patches or ())
            except (CodemodError, UkyError) as error:
                why = "; ".join(line.strip() for line in str(error).splitlines())
                arg_parser.exit(2, f"{arg_parser.prog}: error: {why}\n")
            return found, others

        arg_parser.parse_known_args = read_and_checked  # type: ignore[method-assign, assignment]

    def __init__(
        self, context: CodemodContext, record: str, patches: list[str] | None = None, *, clean: bool = False
    ) -> None:
        super().__init__(context)
        self._record = _record(record, patches or ())
        self._style: Style = "clean" if clean else "comment"

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file with the record's edits. Raises SkipFile where there is nothing to do, else CodemodError."""
        path = Path(self.context.filename or "").resolve().as_posix()
        file = next((one for one in self._record.files if path.endswith(f"/{one}")), None)
        if file is None:
            raise SkipFile("the record does not name this file")

        def belongs(edit: Edit) -> bool | None:
            # Which release the tree is of is not known here: an edit for some releases may have no place.
            return (True if edit.verl is None else None) if edit.file == file else False

        workspace = Workspace({file: tree.code}, "Uky", self._style)
        done = workspace.replay(self._record, belongs)
        if done.made:
            return cst.parse_module(workspace.texts[file])
        failed = [one for one in done.results if not one.settled and not excused(one)]
        if failed:
            raise CodemodError(f"{self._record.id} has no place in this file as it is: {failed[0].outcome}")
        is_done = any(isinstance(one.outcome, AlreadyDone) for one in done.results)
        raise SkipFile("it is done already" if is_done else "nothing to do")


def _record(name: str, patches: Sequence[str]) -> Record:
    """The record with this id. Raises CodemodError where there is none, or where it edits no Python."""
    found = next((one for one in load(tuple(map(Path, patches))) if one.id == name), None)
    if found is None:
        raise CodemodError(f"there is no record {name}; uky-patch list tells which there are")
    if not any(edit.file.endswith(".py") and not isinstance(edit, CreateFile) for edit in found.edits):
        raise CodemodError(f"{name} edits no Python: {', '.join(found.files)}; uky-patch apply {name} makes its edits")
    return found
