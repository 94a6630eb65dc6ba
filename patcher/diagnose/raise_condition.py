"""Under which condition a package's code raises the message that nothing else explains, read from its source.

  File ".../site-packages/trl/trainer/dpo_trainer.py", line 262, in __init__
    raise ValueError(
ValueError: You have to pass a reference model with ZeRO-3.       ▶ raised where `zero3 and ref_model is None`
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from patcher.diagnose.diagnosis import Explanation, RaiseCondition
from patcher.diagnose.exception_message import UNREADABLE_CODE
from patcher.diagnose.failed_line import NOT_OF_CODE, package_folder, path_within, release_with
from patcher.diagnose.parties import party
from patcher.diagnose.release_search import final
from patcher.errors import ReleaseError
from patcher.packages.releases import versions

_SHORTEST, _ENOUGH = 12, 48
"""Characters of a text in the code by which a message is known again: a shorter one may be of another message, and
behind so many a release may have other words."""
_LONGEST = 200
"""Characters of a condition that are shown; a longer one is told by its innermost part, or not at all."""
_FOUND_NONE = ""
_MOST_SERIES = 5
"""Releases, far apart, that are searched where the log does not tell the version: messages live long."""


def raise_condition(explanation: Explanation, known: Mapping[str, str]) -> RaiseCondition | None:
    """Find the `raise` in the file of the frame whose text the message has, and the `if` around it.

    None where the file is of no package on the index, several conditions raise the message, or none does: then the
    code does so in any case, or for an exception that it has caught.

    Args:
        known: versions by distribution.
    """
    parts, at = explanation.parts, explanation.at
    name = party(at)
    if parts is None or parts.matter != "words" or at is None or not name or name in NOT_OF_CODE:
        return None
    message, inner = _plain(parts.found), path_within(at, name)
    try:
        releases = final(versions(name))
    except ReleaseError:
        return None

    @cache
    def conditions(release: str) -> frozenset[str] | None:
        package = package_folder(name, release, inner)
        return _conditions(package.parent / inner, message) if package is not None else None

    def stands(release: str) -> bool | None:
        return None if (found := conditions(release)) is None else bool(found)

    release = release_with(releases, known.get(name, ""), stands, most=_MOST_SERIES)
    found = conditions(release) if release else None
    if not found or len(found) > 1 or _FOUND_NONE in found:
        return None
    (test,) = found
    return RaiseCondition(test, name, release)


def _conditions(file: Path, message: str) -> frozenset[str]:
    """The conditions of each `raise` of this message; "" for one that stands under none."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, *UNREADABLE_CODE):
        return frozenset()
    return frozenset(_condition(tests) for node, tests in _raises(tree, ()) if _says(node, message))


_Tests = Sequence[ast.expr]


def _raises(node: ast.AST, tests: _Tests) -> Iterator[tuple[ast.Raise, _Tests]]:
    """Each `raise` below a node with the tests that hold there, innermost last, within its function."""
    if isinstance(node, ast.Raise):
        yield node, tests
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for one in node.body:
            yield from _raises(one, ())
    elif isinstance(node, ast.ExceptHandler):
        # What was caught is the cause, and no test.
        yield from ((found, ()) for one in node.body for found, _ in _raises(one, ()))
    elif isinstance(node, ast.If):
        for one in node.body:
            yield from _raises(one, (*tests, node.test))
        for one in node.orelse:
            yield from _raises(one, (*tests, _opposite(node.test)))
    else:
        for below in ast.iter_child_nodes(node):
            if isinstance(below, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                yield from _raises(below, tests)


_OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def _opposite(test: ast.expr) -> ast.expr:
    """What holds in the `else` of a test: of `labels is not None` it is `labels is None`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[op], comparators=compared) if type(op) in _OPPOSITES:
            return ast.Compare(left, [_OPPOSITES[type(op)]()], compared)
    return ast.UnaryOp(ast.Not(), test)


def _says(node: ast.Raise, message: str) -> bool:
    """Whether a text in the code stands in the message, which holds values in its gaps."""
    texts = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return any(len(text) >= _SHORTEST and text[:_ENOUGH] in message for text in map(_plain, texts))


def _condition(tests: _Tests) -> str:
    """The last two tests as code, `zero3 and ref_model is None`; the last alone where both are too long."""
    both = [ast.BoolOp(ast.And(), list(tests[-2:]))] if len(tests) > 1 else []
    return next((text for one in (*both, *tests[-1:]) if len(text := ast.unparse(one)) <= _LONGEST), _FOUND_NONE)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
