"""The example of a drafted record: the call site in its smallest form, and what the edits make of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from patcher.plan.replay import Workspace
from patcher.records.model import Example, Record
from patcher.rewrite.code import Code, parse
from patcher.rewrite.edits import Edit, Mark
from patcher.rewrite.engine import locate
from patcher.rewrite.outcome import AlreadyDone, AnchorMissing, Unparseable
from patcher.rewrite.sites import settle

_SHELLS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_STEP = "    "


def examples(record: Record, texts: dict[str, str], verl: str, word: str) -> tuple[Example, ...] | None:
    """Before and after of each file that the record edits, one that is done already, and one without its place.

    None where a smallest form cannot be made.
    """
    found: list[Example] = []
    several = len(record.files) > 1
    for file in record.files:
        edits = [edit for edit in record.edits if edit.file == file]
        code = parse(texts[file].removeprefix("\ufeff"))
        if isinstance(code, Unparseable):
            return None
        anchors = _anchors(code, edits, Mark(record.id, word))
        for imported in ((), _imports(code)):
            before = smallest(code, [*imported, *anchors])
            after = _made(record, file, before, word)
            if after is not None and after != before:
                break
        else:
            return None
        named = file if several else None
        found.append(Example(f"as in verl {verl}", before, after, file=named))
        clean = _without_markers(_made(record, file, before, word, clean=True) or "", record.id, word)
        if clean and _is_left(record, file, clean, word):
            found.append(Example("done already", clean, file=named))
        if _is_missing(record, file, "import os\n", word):
            found.append(Example("no such place", "import os\n", fails="anchor-missing", file=named))
    return tuple(found)


def _anchors(code: Code, edits: Sequence[Edit], mark: Mark) -> list[ast.stmt]:
    found: dict[int, ast.stmt] = {}
    for edit in edits:
        for anchor in settle(code, locate(code, code.within(edit.within), edit, mark)).anchors:
            if not isinstance(anchor.node, ast.Module):
                statement = code.statement(anchor.node)
                found[code.start(statement)] = statement
    return [found[start] for start in sorted(found)]


def _imports(code: Code) -> list[ast.stmt]:
    """The module's own imports of names, which an edit's call may go by."""
    return [
        node
        for node in code.tree.body
        if isinstance(node, ast.ImportFrom | ast.Import) and any(alias.asname for alias in node.names)
    ]


def smallest(code: Code, statements: Iterable[ast.stmt]) -> str:
    """The statements alone, in the headers of the classes and functions around them."""
    lines: list[str] = []
    open_shells: list[ast.AST] = []
    for statement in statements:
        shells = [node for node in reversed(list(code.ancestors(statement))) if isinstance(node, _SHELLS)]
        shared = 0
        while shared < min(len(shells), len(open_shells)) and shells[shared] is open_shells[shared]:
            shared += 1
        for depth in range(shared, len(shells)):
            lines += ["", ""] if depth == 0 and lines else [""] if shared and depth == shared and lines else []
            lines.append(_STEP * depth + _header(shells[depth]))
        open_shells = list(shells)
        lines += _lines(code, statement, _STEP * len(shells))
    return "\n".join(lines) + "\n"


def _header(node: ast.AST) -> str:
    match node:
        case ast.ClassDef(name=name):
            return f"class {name}:"
        case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
            word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            return f"{word} {name}({_parameters(args)}):"
        case _:
            raise AssertionError(node)


def _parameters(args: ast.arguments) -> str:
    """The parameters by name alone."""
    found = [argument.arg for argument in (*args.posonlyargs, *args.args)]
    if args.vararg is not None or args.kwonlyargs:
        found.append(f"*{args.vararg.arg}" if args.vararg is not None else "*")
    found += [f"{argument.arg}=None" for argument in args.kwonlyargs]
    return ", ".join([*found, *([f"**{args.kwarg.arg}"] if args.kwarg is not None else [])])


def _lines(code: Code, statement: ast.stmt, indent: str) -> list[str]:
    """A statement's lines at another depth; of a compound one the header, with nothing in it."""
    start, end = code.start(statement), code.end(statement)
    body = getattr(statement, "body", None)
    header = isinstance(body, list) and bool(body)
    if header and isinstance(body, list):
        end = code.start(body[0])
    text = code.text[code.line_start(code.line_of(start)) : end].rstrip()
    own = code.indent(start)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if all(not line.strip() or line.startswith(own) for line in lines):
        lines = [indent + line[len(own) :] if line.strip() else "" for line in lines]
    return [*lines, *([f"{indent}{_STEP}pass"] if header else [])]


def _made(record: Record, file: str, source: str, word: str, *, clean: bool = False) -> str | None:
    desk = Workspace.of({file: source}, {}, word, "clean" if clean else "comment")
    done = desk.replay(record, lambda edit: edit.file == file)
    return desk.texts[file] if done.made else None


def _is_left(record: Record, file: str, source: str, word: str) -> bool:
    desk = Workspace.of({file: source}, {}, word, "comment")
    done = desk.replay(record, lambda edit: edit.file == file)
    return desk.texts[file] == source and all(isinstance(result.outcome, AlreadyDone) for result in done.results)


def _is_missing(record: Record, file: str, source: str, word: str) -> bool:
    desk = Workspace.of({file: source}, {}, word, "comment")
    done = desk.replay(record, lambda edit: edit.file == file)
    return any(isinstance(result.outcome, AnchorMissing) for result in done.results)


def _without_markers(text: str, record: str, word: str) -> str:
    return "".join(line.replace(f"  # {word}[{record}]", "") for line in text.splitlines(keepends=True))
