"""Import a name, or a module, from where it lives now: the edit `move-import`, in each form of an import.

from vllm.utils import Parser, cdiv     from vllm.utils import cdiv
                                        from vllm.utils.parsers import Parser
import vllm.worker as w                 import vllm.v1.worker as w
import vllm.worker                      import vllm.v1.worker, and each use `vllm.worker.X` with it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import commas, names
from patcher.rewrite.blocks import place
from patcher.rewrite.sites import Anchor, Change, Sites, Splice, Step, is_among
from patcher.rewrite.syntax import IMPORTS, TRIES, only, walk

if TYPE_CHECKING:
    from patcher.rewrite.edits import MoveImport
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope

_PRAGMA = re.compile(r"#\s*(?:noqa|type:\s*ignore|pylint|isort|ruff|fmt|pyright|mypy|pragma)\b.*", re.IGNORECASE)


def move_import(source: Source, scopes: Sequence[Scope], edit: MoveImport) -> Sites:
    """Imports of the old name, or from the old module, are anchors; those from where it lives now, effects."""
    package, _, name = edit.old.rpartition(".")
    target, _, new_name = edit.new.rpartition(".")
    tops = {edit.old.split(".")[0], edit.new.split(".")[0]}
    anchors: list[Anchor] = []
    effects: list[CSTNode] = []
    for node in only(source.nodes(scopes), *IMPORTS):
        match node:
            case cst.ImportFrom():
                module = names.module(node)
                aliases = names.aliases(node)
                moved = [alias for alias in aliases if module == package and names.imported(alias) == name]
                if moved:
                    steps = partial(_split, source, node, edit, moved)
                    anchors.append(_anchor(source, node, moved, effects, steps))
                elif module == edit.old and aliases:
                    step: Step = Change(node, lambda made: _renamed(made, edit.new))
                    anchors.append(_anchor(source, node, aliases, effects, partial(list, [step])))
                elif module == edit.new or any(
                    (module == target and names.imported(alias) == new_name)
                    or (module.split(".")[0] in tops and names.imported(alias) in (name, new_name))
                    for alias in aliases
                ):
                    effects.append(node)
            case cst.Import():
                moved = [alias for alias in node.names if names.imported(alias) == edit.old]
                changes = _dotted(source, node, edit) if moved else None
                if changes is not None:
                    anchors.append(_anchor(source, node, moved, effects, partial(list, changes)))
                elif any(names.imported(alias) == edit.new for alias in node.names):
                    effects.append(node)
    return Sites(tuple(anchors), tuple(effects))


def _anchor(
    source: Source,
    node: cst.Import | cst.ImportFrom,
    moved: Sequence[cst.ImportAlias],
    effects: Sequence[CSTNode],
    steps: Callable[[], list[Step]],
) -> Anchor:
    """An import. Another with the effect, or one of the same local names on an error, is a hand's work."""
    local = {names.local(alias) for alias in moved}

    def twin(other: CSTNode) -> bool:
        if not isinstance(other, IMPORTS) or not local <= {names.local(alias) for alias in names.aliases(other)}:
            return False
        return is_among(other, effects) or _on_error(source, node, other)

    return Anchor(node, steps, twin)


def _on_error(source: Source, one: CSTNode, two: CSTNode) -> bool:
    """Whether the innermost statement around both imports is a `try`."""
    over = {id(above) for above in source.ancestors(two)}
    shared = next((above for above in source.ancestors(one) if id(above) in over), None)
    return isinstance(shared, TRIES)


def _path(name: str) -> cst.Name | cst.Attribute:
    found = cst.parse_expression(name)
    assert isinstance(found, (cst.Name, cst.Attribute))
    return found


def _renamed(node: CSTNode, module: str) -> CSTNode:
    bare = module.lstrip(".")
    return node.with_changes(module=_path(bare) if bare else None, relative=[cst.Dot()] * (len(module) - len(bare)))


def _split(source: Source, node: cst.ImportFrom, edit: MoveImport, moved: Sequence[cst.ImportAlias]) -> list[Step]:
    """Take the moved names out of an import, and put them into one of their own below it, with its `noqa`."""
    package, _, name = edit.old.rpartition(".")
    target, _, new_name = edit.new.rpartition(".")
    assert not isinstance(node.names, cst.ImportStar)

    def written(alias: cst.ImportAlias) -> cst.ImportAlias:
        if name == new_name:
            return alias
        local = cst.AsName(cst.Name(names.local(alias))) if alias.asname or names.local(alias) != new_name else None
        return alias.with_changes(name=cst.Name(new_name), asname=local)

    if len(moved) == len(node.names) or package == target:
        aliases = [written(alias) if is_among(alias, moved) else alias for alias in node.names]

        def whole(made: CSTNode) -> CSTNode:
            made = made if package == target else _renamed(made, target)
            return made.with_changes(names=aliases)

        return [Change(node, whole)]

    def rest(made: CSTNode) -> CSTNode:
        assert isinstance(made, cst.ImportFrom)
        items = commas.of_import(made)
        for index in reversed(range(len(items.items))):
            if is_among(items.items[index], moved):
                items = commas.without(items, index)
        return commas.to_import(made, items)

    aliases = [written(alias).with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in moved]
    statement = cst.ImportFrom(_path(target), aliases)
    block, index = place(source, node)
    line = source.parents[id(node)]
    tail = _pragma(source, line) if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    space = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(tail)) if tail else cst.TrailingWhitespace()
    new = cst.SimpleStatementLine([statement], trailing_whitespace=space)
    return [Change(node, rest), Splice(block, index + 1, index + 1, (new,), behind=True)]


def _pragma(source: Source, line: cst.SimpleStatementLine) -> str | None:
    """A `noqa` and its like, behind an import's first line or its last."""
    first, last = source.lines(line)
    comment = line.trailing_whitespace.comment
    found = _PRAGMA.search(comment.value if comment else "") or (first != last and _PRAGMA.search(source.line(first)))
    return re.split(r"\s+#", found[0], maxsplit=1)[0] if found else None


def _dotted(source: Source, node: cst.Import, edit: MoveImport) -> list[Step] | None:
    """Change `import old` and, where it binds the package's name, the uses that it was for; None where unsound."""
    aliases = [a.with_changes(name=_path(edit.new)) if names.imported(a) == edit.old else a for a in node.names]
    steps: list[Step] = [Change(node, lambda made: made.with_changes(names=aliases))]
    if all(alias.asname for alias in node.names if names.imported(alias) == edit.old):
        return steps
    scope = next((a for a in source.ancestors(node) if isinstance(a, cst.FunctionDef)), source.module)
    old = tuple(edit.old.split("."))
    others = 0
    for name in walk(scope):
        if not isinstance(name, cst.Name) or name.value != old[0]:
            continue
        if isinstance(source.parents[id(name)], (cst.AssignTarget, cst.AsName, cst.For, cst.AugAssign, cst.NamedExpr)):
            return None
        chain: CSTNode = name
        for part in old[1:]:
            above = source.parents[id(chain)]
            if not (isinstance(above, cst.Attribute) and above.attr.value == part):
                break
            chain = above
        else:
            steps.append(Change(chain, lambda _: _path(edit.new)))
            continue
        others += 1
    # `vllm` may be used for more than `vllm.worker`; then another import has to bind the name, or the new one does.
    bound = any(
        names.local(alias).split(".")[0] == old[0] and names.imported(alias) != edit.old
        for other in walk(scope)
        if isinstance(other, cst.Import)
        for alias in other.names
    )
    return steps if edit.new.split(".")[0] == old[0] or bound or not others else None
