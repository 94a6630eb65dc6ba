"""Fill a template with what a pattern bound; where the two are alike, change only what they differ in.

What takes a metavariable's place gets the parentheses that it needs there: `$X.attr` with `a + b` is `(a + b).attr`.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import commas
from patcher.rewrite.blocks import attached, own_line
from patcher.rewrite.matching import Bindings, meta, run_of
from patcher.rewrite.syntax import BLOCKS, index_of, parts

if TYPE_CHECKING:
    from patcher.rewrite.pattern import Pattern
    from patcher.rewrite.source import Source

_ATOMS = (
    cst.Name, cst.BaseString, cst.Ellipsis, cst.Call, cst.Attribute, cst.Subscript, cst.BaseList, cst.BaseDict,
    cst.BaseSet, cst.Tuple, cst.GeneratorExp,
)  # fmt: skip
_TIGHT = (
    cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation, cst.Comparison, cst.ComparisonTarget, cst.Attribute,
    cst.Await, cst.IfExp, cst.StarredElement, cst.Lambda,
)  # fmt: skip
_ENCLOSED = (cst.Tuple, cst.GeneratorExp)
_UNPACKED = (cst.Arg, cst.StarredElement)


def loose(node: CSTNode) -> bool:
    """Whether an expression needs parentheses beside an operator."""
    return not isinstance(node, _ATOMS)


def tight(above: CSTNode | None, child: CSTNode) -> bool:
    """Whether what stands in the place of `child` below `above` must hold together by itself.

    `$X.attr` with `a + b` for `$X` is `(a + b).attr`; `f($X)` is `f(a + b)`.
    """
    match above:
        case cst.Call(func=inner) | cst.Subscript(value=inner):
            return inner is child
        case cst.Arg(star="*"):
            return True
    return isinstance(above, _TIGHT)


def in_parentheses(node: CSTNode) -> CSTNode:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


class Filler:
    """Makes templates into nodes of one source."""

    def __init__(self, source: Source, bindings: Bindings) -> None:
        self.source, self.bindings = source, bindings

    def lines(self, template: Pattern) -> list[CSTNode]:
        """The template's lines, as lines of a block."""
        body = list(template.module.body)
        header = [line for line in template.module.header if line.comment]
        if body and header:
            body[0] = body[0].with_changes(leading_lines=[*header, *body[0].leading_lines])
        found = self._items(body, None)
        return [_unindented(line) for line in found]

    def node(self, node: CSTNode, above: CSTNode | None = None) -> CSTNode:
        """One node with its metavariables filled."""
        if variable := meta(node):
            return self._bound(variable.name, tight(above, node))
        if isinstance(node, cst.SimpleString) and "\n" in node.value:
            return node.with_changes(value=node.value.replace("\n", self.source.newline))
        if isinstance(node, cst.Parameters) and (run := run_of(node.star_arg)):
            return self._parameters(node, self._of(run.name))
        new: dict[str, object] = {}
        for name in parts(type(node)):
            value = getattr(node, name)
            if isinstance(value, CSTNode):
                new[name] = self.node(value, node)
            elif value.__class__ in (list, tuple) and value:
                new[name] = self._items(value, node)
        if isinstance(node, cst.SimpleStatementSuite) and any(isinstance(s, _LINES) for s in new["body"]):  # type: ignore[attr-defined]
            return cst.IndentedBlock(new["body"])  # type: ignore[arg-type]
        return node.with_changes(**new) if new else node

    def _bound(self, name: str, tightly: bool) -> CSTNode:
        (bound,) = self._of(name)
        if getattr(bound, "lpar", ()) and not isinstance(bound, _ENCLOSED):
            bound = bound.with_changes(lpar=[], rpar=[])
        if (tightly and loose(bound)) or not _holds(self.source.code(bound)):
            bound = in_parentheses(bound)
        return bound

    def _of(self, name: str) -> Sequence[CSTNode]:
        if name not in self.bindings:
            raise ValueError(f"${name} is bound by nothing")
        return self.bindings[name]

    def _items(self, items: Sequence[CSTNode], above: CSTNode | None) -> list[CSTNode]:
        """The items of a list; an empty run takes its comma with it."""
        found: list[CSTNode] = []
        for item in items:
            if name := _statement_variable(item):
                found += self._lines(self._of(name))
            elif run := run_of(item):
                several = list(self._of(run.name))
                if several and hasattr(item, "comma"):
                    several[-1] = _plain(several[-1]).with_changes(comma=item.comma)
                found += several
            elif isinstance(item, (cst.Arg, cst.Element)) and isinstance(whole := self._whole(item), _UNPACKED):
                found.append(_plain(whole).with_changes(comma=item.comma))
            else:
                found.append(self.node(item, above))
        if found and items and hasattr(found[-1], "comma") and hasattr(items[-1], "comma"):
            found[-1] = found[-1].with_changes(comma=items[-1].comma)
        return found

    def _parameters(self, node: cst.Parameters, bound: Sequence[CSTNode]) -> CSTNode:
        """A list of parameters with others in the place of its `$$$X`: each goes where the text then has it.

        `def f(a, $$$X, c)` and `b, /` make `def f(a, b, /, c)`; what is bound last, `**rest`, stays last.
        """
        slash = [node.posonly_ind] if isinstance(node.posonly_ind, cst.ParamSlash) else []
        before = [*self._items(node.posonly_params, node), *slash, *self._items(node.params, node)]
        behind = [*self._items(node.kwonly_params, node), *([self.node(node.star_kwarg)] if node.star_kwarg else [])]
        if before and not bound and not behind:  # `def f(a, $$$X)` without any `$$$X` is `def f(a)`.
            before[-1] = before[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return node.with_changes(**commas.parameter_fields([*before, *bound, *behind]))  # type: ignore[list-item]

    def _whole(self, item: cst.Arg | cst.Element) -> CSTNode | None:
        variable = meta(item.value)
        return self._of(variable.name)[0] if variable else None

    def _lines(self, bound: Sequence[CSTNode]) -> list[CSTNode]:
        """Statements as lines, with the comments above the first, between them and behind the last."""
        found: list[CSTNode] = []
        for index, node in enumerate(bound):
            line = self.source.parents[id(node)]
            whole = node if isinstance(line, BLOCKS) else line
            if isinstance(whole, cst.SimpleStatementSuite) or (whole is not node and len(whole.body) > 1):  # type: ignore[attr-defined]
                whole = own_line(node)
            lead = attached(whole)[1] if index == 0 else whole.leading_lines  # type: ignore[attr-defined]
            found.append(whole.with_changes(leading_lines=lead))
        return found


_LINES = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


def _statement_variable(item: CSTNode) -> str | None:
    match item:
        case cst.SimpleStatementLine(body=[cst.Expr() as only]) | (cst.Expr() as only):
            found = run_of(only) or meta(only.value)
            return found.name if found else None
    return None


def _plain(item: CSTNode) -> CSTNode:
    return item.with_changes(whitespace_after_arg=commas.NOTHING) if isinstance(item, cst.Arg) else item


def _holds(text: str) -> bool:
    """Whether an expression over several lines needs no parentheses around it."""
    if "\n" not in text and "\r" not in text:
        return True
    try:
        cst.parse_expression(text)
    except cst.ParserSyntaxError:
        return False
    return True


def _unindented(line: CSTNode) -> CSTNode:
    """Blank lines of a template carry no indentation."""

    class Blank(cst.CSTTransformer):
        def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:  # noqa: N802, ARG002
            return updated_node if updated_node.comment else updated_node.with_changes(indent=False)

    made = line.visit(Blank())
    assert isinstance(made, CSTNode)
    return made


@lru_cache(maxsize=4096)
def _key(node: CSTNode) -> str:
    """What a part of a pattern says, white space left out."""
    written = []
    for name in parts(type(node)):
        value = getattr(node, name)
        several = value if value.__class__ in (list, tuple) else (value,)
        written.append(",".join(_key(item) if isinstance(item, CSTNode) else str(item) for item in several))
    return f"{type(node).__name__}({';'.join(written)})"


def reshaped(fill: Filler, old: CSTNode, new: CSTNode, given: CSTNode, above: CSTNode | None) -> CSTNode | None:
    """`given`, which `old` matches, made into what `new` says; None where it must be written anew.

    For the pattern `f($X, old=$V)` and the template `f($X, new=$V)` only the name of one argument changes, so that the
    call keeps its lines, its comments and the order of its arguments.
    """
    if _key(old) == _key(new):
        return given
    if type(old) is type(new) is type(given) and not meta(old) and not meta(new):
        made = _call(fill, old, new, given) if isinstance(given, cst.Call) else _fields(fill, old, new, given)  # type: ignore[arg-type]
        if made is not None:
            return made
    if isinstance(new, cst.BaseExpression) and isinstance(given, cst.BaseExpression):
        return fitting(fill.node(new, above), new, given, above)
    return None


def fitting(made: CSTNode, template: CSTNode, given: CSTNode, above: CSTNode | None) -> CSTNode:
    """An expression in another's place: in its parentheses, or in some of its own where it needs them."""
    if not isinstance(given, _ENCLOSED) and given.lpar:  # type: ignore[attr-defined]
        return made.with_changes(lpar=[*given.lpar, *made.lpar], rpar=[*made.rpar, *given.rpar])  # type: ignore[attr-defined]
    if not meta(template) and not made.lpar and loose(made) and tight(above, given):  # type: ignore[attr-defined]
        return in_parentheses(made)
    return made


def _fields(fill: Filler, old: CSTNode, new: CSTNode, given: CSTNode) -> CSTNode | None:
    """`given` with the parts changed that differ between `old` and `new`; None where one differs in more than that."""
    changed: dict[str, object] = {}
    for name in parts(type(old)):
        one, two, mine = getattr(old, name), getattr(new, name), getattr(given, name)
        several = one.__class__ in (list, tuple)
        if any((part.__class__ in (list, tuple)) != several for part in (two, mine)):
            return None  # `f"{a:.2f}"` has a format, `f"{a}"` has none.
        if not several and not isinstance(one, CSTNode):
            if one != two:
                return None
            continue
        ones, twos, mines = (one, two, mine) if several else ((one,), (two,), (mine,))
        if any(not isinstance(item, CSTNode) for item in (*ones, *twos, *mines)):
            return None
        if [*map(_key, ones)] == [*map(_key, twos)]:
            continue
        if not len(ones) == len(twos) == len(mines) or any(run_of(item) for item in (*ones, *twos)):
            return None
        inner = [reshaped(fill, a, b, c, given) for a, b, c in zip(ones, twos, mines, strict=True)]
        if any(item is None for item in inner):
            return None
        changed[name] = inner if several else inner[0]
    return given.with_changes(**changed)


def _call(fill: Filler, old: cst.Call, new: cst.Call, given: cst.Call) -> cst.Call | None:
    """The call with those arguments changed that differ between `old` and `new`; its order and layout stay."""
    func = reshaped(fill, old.func, new.func, given.func, given)
    partners = _partners(old, given)
    if func is None or partners is None:
        return None
    made: dict[int, CSTNode] = {}
    gone: list[int] = []
    appended: list[cst.Arg] = []
    codes = SequenceMatcher(None, [*map(_key, old.args)], [*map(_key, new.args)], autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            continue
        if any(run_of(item) for item in (*old.args[i1:i2], *new.args[j1:j2])):
            return None
        if tag == "insert" and i1 == len(old.args):
            appended += [fill.node(item) for item in new.args[j1:j2]]  # type: ignore[misc]
            continue
        if j2 - j1 > i2 - i1:  # Something new in between, `f(a, b)` to `f(a, x, b)`: the call is written anew.
            return None
        for one, two in zip(old.args[i1:i2], new.args[j1:j2], strict=False):
            inner = reshaped(fill, one, two, partners[id(one)], given)
            if inner is None:
                return None
            made[id(partners[id(one)])] = inner
        gone += [index_of(given.args, partners[id(item)]) for item in old.args[i1 + j2 - j1 : i2]]
    if appended and (gone or not given.args):  # `f(a)` to `f(b=1)`: there is no style of the call's own to keep.
        return None
    items = commas.of_call(given)
    # What takes an argument's place goes in first: taking others out gives those beside them other commas.
    items = commas.Items(tuple(made.get(id(item), item) for item in items.items), items.before, items.behind)  # type: ignore[misc]
    for index in sorted(gone, reverse=True):
        items = commas.without(items, index)
    return commas.to_call(given.with_changes(func=func), commas.with_appended(items, appended))


def _partners(old: cst.Call, given: cst.Call) -> dict[int, cst.Arg] | None:
    """The argument of the matched call for each argument of the pattern; runs have none."""
    keyed = {arg.keyword.value: arg for arg in given.args if arg.keyword}
    mine = [arg for arg in old.args if not arg.keyword and arg.star != "**"]
    theirs = [arg for arg in given.args if not arg.keyword and arg.star != "**"]
    runs = [index for index, item in enumerate(mine) if run_of(item)]
    if len(runs) > 1 or len(mine) - len(runs) > len(theirs):
        return None
    head, tail = (mine[: runs[0]], mine[runs[0] + 1 :]) if runs else (mine, [])
    pairs = [*zip(head, theirs, strict=False), *zip(reversed(tail), reversed(theirs), strict=False)]
    found = {id(one): two for one, two in pairs}
    for arg in old.args:
        if arg.keyword and arg.keyword.value in keyed:
            found[id(arg)] = keyed[arg.keyword.value]
        elif id(arg) not in found and not run_of(arg):
            return None
    return found
