"""Import a name, or a module, from where it lives now."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patcher.records.model import MoveImport
from patcher.rewriting import commas, names
from patcher.rewriting.code import Code, Scope
from patcher.rewriting.embedding import own_lines
from patcher.rewriting.marking import Splice
from patcher.rewriting.sites import Anchor, Sites

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
                    locals_ = {alias.asname or alias.name for alias in moved}
                    anchors.append(_anchor(code, node, edit, moved, locals_))
                elif module == edit.old and not _star(node):
                    locals_ = {alias.asname or alias.name for alias in node.names}
                    anchors.append(
                        Anchor(
                            node,
                            lambda node=node: _module(code, node, edit.old, edit.new),  # type: ignore[misc]
                            lambda other, node=node, own=locals_: _imports(other, own, node),  # type: ignore[misc]
                        )
                    )
                elif module == edit.new or any(
                    (module == target and alias.name == new_name)
                    or (module.split(".")[0] in tops and alias.name in (name, new_name))
                    for alias in node.names
                ):
                    effects.append(node)
            case ast.Import():
                if any(alias.name == edit.old for alias in node.names):
                    if (change := _dotted(code, node, edit)) is not None:
                        own = {alias.asname for alias in node.names if alias.name == edit.old and alias.asname}
                        anchors.append(
                            Anchor(
                                node,
                                lambda change=change: change,  # type: ignore[misc]
                                lambda other, node=node, own=own: _imports(other, own, node),  # type: ignore[misc]
                            )
                        )
                elif any(alias.name == edit.new for alias in node.names):
                    effects.append(node)
    return Sites(tuple(anchors), tuple(effects))


def _star(node: ast.ImportFrom) -> bool:
    return any(alias.name == "*" for alias in node.names)


def _imports(other: ast.AST, local: set[str], node: ast.AST) -> bool:
    """Whether another statement imports one of the local names."""
    return (
        other is not node
        and isinstance(other, (ast.Import, ast.ImportFrom))
        and any((alias.asname or alias.name) in local for alias in other.names)
    )


def _anchor(code: Code, node: ast.ImportFrom, edit: MoveImport, moved: list[ast.alias], own: set[str]) -> Anchor:
    return Anchor(node, lambda: _split(code, node, edit, moved), lambda other: _imports(other, own, node))


def _module(code: Code, node: ast.ImportFrom, old: str, new: str) -> list[Splice]:
    """Name another module in `from … import`."""
    start = code.start(node)
    parts = f"{_GAP}\\.{_GAP}".join(re.escape(part) for part in old.split("."))
    found = re.compile(rf"from{_GAP}({parts})(?!\w)").match(code.text, start)
    assert found is not None
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
    return [Splice(stop, stop, f"{code.newline}{code.indent(end if False else code.start(node))}{statement}{comment}")]


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
    found = re.match(r"[\w.]+", code.text[code.start(alias) : code.end(alias)])
    assert found is not None
    return found.end()


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
