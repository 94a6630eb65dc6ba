"""Read one file: a single walk over its syntax."""

from __future__ import annotations

import ast
import re
from collections import Counter

from patcher.analysis.reading.calls import CALLS
from patcher.analysis.reading.definitions import DEFINITIONS, LAMBDAS
from patcher.analysis.reading.expressions import EXPRESSIONS
from patcher.analysis.reading.file_traversal import Walk
from patcher.analysis.reading.local_values import union_of
from patcher.analysis.reading.settings import engine_flag_uses, environment_uses
from patcher.analysis.reading.statements import STATEMENTS
from patcher.analysis.syntax import bound_names, module_name
from patcher.analysis.uses import FileFacts, Named, Union
from patcher.packages.releases.kept import Packed
from patcher.worktree.python import UnreadableError, parse

_EVALUATORS = {**EXPRESSIONS, **CALLS, **LAMBDAS}
_EXECUTORS = {**STATEMENTS, **DEFINITIONS}
_GLOBAL = re.compile(r"^[ \t]+global[ \t]+(.*)$", re.MULTILINE)


def read_file(content: bytes, file: str) -> FileFacts:
    """What the file says. One that is no Python says so in `problem`."""
    try:
        return read_syntax(parse(content), content, file)
    except UnreadableError as error:
        return unreadable(file, error)


def unreadable(file: str, error: UnreadableError) -> FileFacts:
    """What is known of a file that is no Python."""
    return FileFacts(file, module_name(file), problem=str(error))


def read_syntax(tree: ast.Module, content: bytes, file: str, *, uses: bool = True) -> FileFacts:
    """What the file of this text and syntax says; without its `uses` where nobody asks about them."""
    walk = Walk(file, module_name(file), _EVALUATORS, _EXECUTORS)
    walk.silent = not uses
    try:
        _visit(walk, tree, content)
        if uses:
            walk.uses += environment_uses(content, tree, file, walk.context_of)
            walk.uses += engine_flag_uses(content, tree, file, walk.context_of)
    # A file that nests too deeply for the walk, such as 1,000 chained calls, is reported as unreadable.
    except RecursionError:
        return unreadable(file, UnreadableError("it nests too deeply", walk.line))
    return FileFacts(
        file,
        walk.module,
        Packed(tuple(walk.uses)),
        {name: tuple(bounds) for name, bounds in walk.bindings.items()},
        {key: class_draft.facts() for key, class_draft in walk.classes.items()},
        walk.functions,
        tuple(walk.stars),
    )


def _visit(walk: Walk, tree: ast.Module, content: bytes) -> None:
    counted = Counter(bound_names(tree))
    walk.again = frozenset(name for name, count in counted.items() if count > 1)
    # `from __future__ import annotations` puts annotations off, so that an import for them alone may fail unseen. The
    # statement must stand at the top: the first three statements allow for a docstring and another future import.
    walk.annotations_run = not any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
        for node in tree.body[:3]
    )
    # What the module's body assumes behind a `return` or `raise` under a condition ends with it.
    with walk.under():
        walk.run(tree.body)
    # Functions are visited after the module body, so what they declare `global` must be known beforehand. A search in
    # the text is enough: a name too many only stands for itself.
    statements = _GLOBAL.findall(content.decode(errors="replace")) if b"global " in content else []
    _bind_shared_names(walk, {name for statement in statements for name in re.findall(r"\w+", statement)})
    while walk.later:
        walk.later.popleft()()
    while walk.last:
        # Functions that a patch has put into a class come first. The others never get a `self` that is known.
        known = next((dotted for dotted in walk.last if dotted in walk.patched), None)
        walk.last.pop(known or next(iter(walk.last)))()


def _bind_shared_names(walk: Walk, shared: set[str]) -> None:
    """Give the module's names the values that functions see: those that are bound in several ways, or by functions too
    (`shared`), stand for themselves, so that each release takes its own."""
    for name, bounds in walk.bindings.items():
        value = union_of((bound.value, ()) for bound in bounds)
        if name in shared or (len(bounds) > 1 and isinstance(value, Union)):
            walk.scope.names[name] = Named(walk.dotted(name))
        elif len(bounds) > 1:
            walk.scope.names[name] = value
