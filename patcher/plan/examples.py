"""The examples of a record, made from the files that it edits: the smallest pieces in which it finds its places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import libcst as cst

from patcher.plan.replay import Workspace
from patcher.records.model import Example, Record
from patcher.rewrite.edits import Edit, Mark, MarkStyle, TextEdit
from patcher.rewrite.locating import locate
from patcher.rewrite.names import aliases
from patcher.rewrite.outcome import AlreadyDone, AnchorMissing, Unparseable
from patcher.rewrite.sites import settle
from patcher.rewrite.source import Source, parse
from patcher.rewrite.syntax import IMPORTS, SCOPES, statements

_STEP = "    "


def examples(
    record: Record, texts: Mapping[str, str], verl: str, word: str, *, others: bool = True
) -> tuple[Example, ...] | None:
    """Before and after of each file that the record edits; with `others`, one that is done already, and one without
    its place.

    None where a smallest form cannot be made.
    """
    found: list[Example] = []
    several = len(record.files) > 1
    for file in record.files:
        edits = [edit for edit in record.edits if edit.file == file]
        code = parse(texts[file])
        if isinstance(code, Unparseable):
            return None
        anchors = _anchors(code, edits, Mark(record.id, word))
        # The example without the file's imports is shorter. If the edit finds no place there, its call goes by an
        # imported name.
        for imported in ((), _imports(code)):
            before = smallest(code, [*imported, *anchors])
            after = _made(record, file, before, word)
            if after is not None and after != before:
                break
        else:
            return None
        named = file if several else None
        found.append(Example(f"as in verl {verl}", before, after, file=named))
        if not others:
            continue
        clean = _made(replace(record, style=None), file, before, word, "unmarked")
        # What the record made, without its marks, must be recognised as done.
        if clean and all(isinstance(one, AlreadyDone) for one in _outcomes(record, file, clean, word)):
            found.append(Example("done already", clean, file=named))
        if any(isinstance(one, AnchorMissing) for one in _outcomes(record, file, "import os\n", word)):
            found.append(Example("no such place", "import os\n", fails="anchor-missing", file=named))
    return tuple(found)


def _anchors(code: Source, edits: Sequence[Edit], mark: Mark) -> list[cst.CSTNode]:
    found: dict[int, cst.CSTNode] = {}
    for edit in edits:
        if isinstance(edit, TextEdit):
            continue  # It is about text, and not about nodes.
        for anchor in settle(code, locate(code, code.within(edit.within), edit, mark)).anchors:
            if not isinstance(anchor.node, cst.Module):
                statement = code.statement(anchor.node)
                found[id(statement)] = statement
    return sorted(found.values(), key=code.span)


def _imports(code: Source) -> list[cst.CSTNode]:
    """The module's own imports of names, which an edit's call may go by."""
    return [
        node
        for node, _ in statements(code.module)
        if isinstance(node, IMPORTS) and any(alias.asname for alias in aliases(node))
    ]


def smallest(code: Source, found: Iterable[cst.CSTNode]) -> str:
    """The statements alone, in the headers of the classes and functions around them."""
    lines: list[str] = []
    open_shells: list[cst.CSTNode] = []
    found = list(found)
    # A function of which both the header and a statement are meant is written with that statement.
    around = {id(node) for statement in found for node in code.ancestors(statement)}
    for statement in found:
        if isinstance(statement, SCOPES) and id(statement) in around:
            continue
        shells = [node for node in reversed(list(code.ancestors(statement))) if isinstance(node, SCOPES)]
        shared = 0
        while shared < min(len(shells), len(open_shells)) and shells[shared] is open_shells[shared]:
            shared += 1
        for depth in range(shared, len(shells)):
            lines += ["", ""] if depth == 0 and lines else [""] if shared and depth == shared and lines else []
            lines.append(_STEP * depth + _header(shells[depth]))
        open_shells = list(shells)
        lines += _lines(code, statement, _STEP * len(shells))
    return "\n".join(lines) + "\n"


def _header(node: cst.ClassDef | cst.FunctionDef) -> str:
    if isinstance(node, cst.ClassDef):
        return f"class {node.name.value}:"
    return f"{'async def' if node.asynchronous else 'def'} {node.name.value}({_parameters(node.params)}):"


def _parameters(params: cst.Parameters) -> str:
    """The parameters by name alone."""
    found = [one.name.value for one in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param) or params.kwonly_params:
        found.append(f"*{params.star_arg.name.value}" if isinstance(params.star_arg, cst.Param) else "*")
    found += [f"{one.name.value}=None" for one in params.kwonly_params]
    return ", ".join([*found, *([f"**{params.star_kwarg.name.value}"] if params.star_kwarg is not None else [])])


def _lines(code: Source, statement: cst.CSTNode, indent: str) -> list[str]:
    """A statement's lines at another depth; of a compound one the header, with nothing in it."""
    first, last = code.lines(statement)
    # A `match` has no body of its own, so that it stays whole.
    header = isinstance(statement, cst.BaseCompoundStatement) and not isinstance(statement, cst.Match)
    # Of `if x:` the header alone, with `pass` in its body.
    if header:
        assert isinstance(statement, cst.BaseCompoundStatement)
        last = code.lines(statements(statement.body)[0][0])[0] - 1
    lines = [code.line(number) for number in range(first, last + 1)]
    own = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if all(not line.strip() or line.startswith(own) for line in lines):
        lines = [indent + line[len(own) :] if line.strip() else "" for line in lines]
    # An `elif` alone is no statement: its test stands in an `if` of its own.
    if isinstance(statement, cst.If) and lines[0].startswith(f"{indent}elif"):
        lines[0] = f"{indent}{lines[0][len(indent) + 2 :]}"
    return [*lines, *([f"{indent}{_STEP}pass"] if header else [])]


def _made(record: Record, file: str, source: str, word: str, style: MarkStyle = "comment") -> str | None:
    """What the record makes of a text; None where its edits do not all land."""
    workspace = Workspace({file: source}, word, style)
    return workspace.texts[file] if workspace.replay(record, lambda edit: edit.file == file).made else None


def _outcomes(record: Record, file: str, source: str, word: str) -> list[object]:
    """What comes of each of the record's edits on a text."""
    done = Workspace({file: source}, word, "comment").replay(record, lambda edit: edit.file == file)
    return [result.outcome for result in done.results]
