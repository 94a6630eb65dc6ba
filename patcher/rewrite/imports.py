"""Import a name, or a module, from where it lives now."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from patcher.rewrite import commas, names
from patcher.rewrite.embedding import own_lines
from patcher.rewrite.marking import Splice
from patcher.rewrite.sites import TRIES, Anchor, Sites

if TYPE_CHECKING:
    from patcher.rewrite.code import Code, Scope
    from patcher.rewrite.edits import MoveImport

_GAP = r"(?:\s|\\)*"
_PRAGMA = re.compile(r"#\s*(?:noqa|type:\s*ignore|pylint|isort|ruff|fmt|pyright|mypy|pragma)\b.*", re.IGNORECASE)


def move_import(code: Code, scopes: Sequence[Scope], edit: MoveImport) -> Sites:
    package, _, name = edit.old.rpartition(".")
    target, _, new_name = edit.new.rpartition(".")
    tops = {edit.old.split(".")[0], edit.new.split(".")[0]}
    anchors: list[Anchor] = []
    effects: list[ast.AST] = []
    for node in code.nodes(scopes):
        match node:
            case ast.ImportFrom():
                module = names.module(node)
                moved = [alias for alias in node.names if module == package and alias.name == name]
                if moved:
                    anchors.append(_anchor(code, node, moved, effects, partial(_split, code, node, edit, moved)))
                elif module == edit.old and not _star(node):
                    anchors.append(
                        _anchor(code, node, node.names, effects, partial(_module, code, node, edit.old, edit.new))
                    )
                elif module == edit.new or any(
                    (module == target and alias.name == new_name)
                    or (module.split(".")[0] in tops and alias.name in (name, new_name))
                    for alias in node.names
                ):
                    effects.append(node)
            case ast.Import():
                moved = [alias for alias in node.names if alias.name == edit.old]
                if moved and (change := _dotted(code, node, edit)) is not None:
                    anchors.append(_anchor(code, node, moved, effects, partial(list, change)))
                elif any(alias.name == edit.new for alias in node.names):
                    effects.append(node)
    return Sites(tuple(anchors), tuple(effects))


def _anchor(
    code: Code,
    node: ast.stmt,
    moved: Sequence[ast.alias],
    effects: Sequence[ast.AST],
    splices: Callable[[], list[Splice]],
) -> Anchor:
    """An import. Another with the effect, or one of the same local names on an error, is a hand's work."""
    local = {alias.asname or alias.name for alias in moved}

    def twin(other: ast.AST) -> bool:
        if not isinstance(other, (ast.Import, ast.ImportFrom)) or not local <= {
            a.asname or a.name for a in other.names
        }:
            return False
        return any(other is effect for effect in effects) or _on_error(code, node, other)

    return Anchor(node, splices, twin)


def _on_error(code: Code, one: ast.AST, two: ast.AST) -> bool:
    """Whether the innermost statement around both imports is a `try`."""
    around = list(code.ancestors(two))
    shared = next((above for above in code.ancestors(one) if above in around), None)
    return isinstance(shared, TRIES)


def _star(node: ast.ImportFrom) -> bool:
    return any(alias.name == "*" for alias in node.names)


def _module(code: Code, node: ast.ImportFrom, old: str, new: str) -> list[Splice]:
    """Name another module in `from … import`."""
    start = code.start(node)
    parts = f"{_GAP}\\.{_GAP}".join(re.escape(part) for part in old.split("."))
    found = re.compile(rf"from{_GAP}({parts})(?!\w)").match(code.text, start)
    if found is None:
        raise AssertionError(f"no module {old} in {code.segment(node)!r}")
    return [Splice(found.start(1), found.end(1), new)]


def _split(code: Code, node: ast.ImportFrom, edit: MoveImport, moved: list[ast.alias]) -> list[Splice]:
    package, _, name = edit.old.rpartition(".")
    target, _, new_name = edit.new.rpartition(".")

    def written(alias: ast.alias) -> str:
        local = alias.asname or alias.name
        return new_name if local == new_name and not alias.asname else f"{new_name} as {local}"

    if len(moved) == len(node.names):
        renamed = [Splice(code.start(alias), code.end(alias), written(alias)) for alias in moved if name != new_name]
        return [*(_module(code, node, package, target) if package != target else []), *renamed]
    if package == target:
        return [Splice(code.start(alias), code.end(alias), written(alias)) for alias in moved]
    items = _alias_items(code, node)
    starts = {code.start(alias) for alias in moved}
    gone = frozenset(index for index, span in enumerate(items.spans) if span[0] in starts)
    statement = f"from {target} import {', '.join(written(alias) for alias in moved)}"
    return [*commas.without(items, gone), *_behind(code, node, statement)]


def _behind(code: Code, node: ast.stmt, statement: str) -> list[Splice]:
    """Put an import behind another, with the other's `noqa` and its like."""
    end = code.end(node)
    if not own_lines(code, [node]):
        return [Splice(end, end, f"; {statement}")]
    stop = code.line_stop(code.line_of(end))
    first_stop = code.line_stop(code.line_of(code.start(node)))
    pragma = _PRAGMA.search(code.text[end:stop]) or _PRAGMA.search(code.text[code.start(node) : first_stop])
    comment = f"  {_without_marker(pragma[0])}" if pragma else ""
    return [Splice(stop, stop, f"{code.newline}{code.indent(code.start(node))}{statement}{comment}")]


def _without_marker(comment: str) -> str:
    return re.split(r"\s+#", comment, maxsplit=1)[0]


def _alias_items(code: Code, node: ast.ImportFrom | ast.Import) -> commas.Items:
    spans = tuple((code.start(alias), code.end(alias)) for alias in node.names)
    end = code.end(node)
    bracketed = code.text[end - 1] == ")"
    start = spans[0][0]
    return commas.Items(code, spans, start, end - 1 if bracketed else end, bracketed)


def _dotted(code: Code, node: ast.Import, edit: MoveImport) -> list[Splice] | None:
    """Change `import old` and, where it binds the package's name, the uses that it was for; None where unsound."""
    splices: list[Splice] = []
    for alias in node.names:
        if alias.name == edit.old:
            splices.append(Splice(code.start(alias), code.start(alias) + _written_length(code, alias), edit.new))
            if not alias.asname:
                uses = _uses(code, node, edit)
                if uses is None:
                    return None
                splices += uses
    return splices


def _written_length(code: Code, alias: ast.alias) -> int:
    return len(re.split(r"[^\w.]", code.segment(alias), maxsplit=1)[0])


def _uses(code: Code, node: ast.Import, edit: MoveImport) -> list[Splice] | None:
    scope = next((a for a in code.ancestors(node) if isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef))), code.tree)
    old = tuple(edit.old.split("."))
    root = old[0]
    splices: list[Splice] = []
    others = 0
    for name in ast.walk(scope):
        if not isinstance(name, ast.Name) or name.id != root:
            continue
        if not isinstance(name.ctx, ast.Load):
            return None
        chain: ast.AST = name
        for part in old[1:]:
            parent = code.parents[chain]
            if not (isinstance(parent, ast.Attribute) and parent.attr == part):
                break
            chain = parent
        else:
            splices.append(Splice(code.start(chain), code.end(chain), edit.new))
            continue
        others += 1
    binders = [
        alias
        for other in ast.walk(scope)
        if isinstance(other, ast.Import)
        for alias in other.names
        if (alias.asname or alias.name.split(".")[0]) == root and alias.name != edit.old
    ]
    still_bound = edit.new.split(".")[0] == root or bool(binders)
    return splices if still_bound or not others else None
