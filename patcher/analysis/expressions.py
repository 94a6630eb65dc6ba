"""Expressions of a tree as plain values: the tests that code stands under, and what names are assigned.

The classes have the names of Python's own syntax, and less in them: no columns, no contexts, no text. They are named
tuples, as a tree has 100,000 of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from patcher.analysis.parameters import Signature, signature_in
from patcher.analysis.syntax import parts

_SHARED = 4096
"""Names, and texts, of which one value each is made. A guess: a file has some hundred."""


class Constant(NamedTuple):
    value: object


class Name(NamedTuple):
    id: str


class Attribute(NamedTuple):
    of: Expression
    name: str


class Call(NamedTuple):
    """`spread` are the values of `*x` and `**x`. `line` is where a `hasattr` or `getattr` stands, 0 for any other."""

    of: Expression
    positional: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()
    spread: tuple[Expression, ...] = ()
    line: int = 0


class Compare(NamedTuple):
    """`left operator right operator right`, with the operators as written: `<`, `not in`."""

    left: Expression
    operators: tuple[str, ...]
    rights: tuple[Expression, ...]


class BoolOp(NamedTuple):
    """`a and b`; `a or b` where not `every`."""

    every: bool
    values: tuple[Expression, ...]


class Not(NamedTuple):
    of: Expression


class Negative(NamedTuple):
    of: Expression


class BinOp(NamedTuple):
    left: Expression
    operator: str
    right: Expression


class Elements(NamedTuple):
    """A list, tuple or set that is written out."""

    kind: Literal["list", "tuple", "set"]
    values: tuple[Expression, ...]


class Table(NamedTuple):
    """A dict that is written out; the key of `**other` is None."""

    keys: tuple[Expression | None, ...]
    values: tuple[Expression, ...]


class Subscript(NamedTuple):
    of: Expression
    key: Expression


class Slice(NamedTuple):
    lower: Expression | None
    upper: Expression | None
    step: Expression | None


class IfExp(NamedTuple):
    test: Expression
    body: Expression
    orelse: Expression


class Comprehension(NamedTuple):
    """`[element for name in over if test]`: one loop over one name."""

    element: Expression
    name: str
    over: Expression
    tests: tuple[Expression, ...]


class Generated(NamedTuple):
    """Any other comprehension; of a dict's, `element` is the value."""

    element: Expression
    parts: tuple[Expression, ...]


class Formatted(NamedTuple):
    """An f-string, and what stands in it."""

    parts: tuple[Expression, ...]


class Lambda(NamedTuple):
    signature: Signature
    parts: tuple[Expression, ...]


class Spread(NamedTuple):
    """`*x` in a list, tuple or set."""

    of: Expression


class Other(NamedTuple):
    """What nothing follows, such as `yield x`; what stands in it can still be looked through."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = (
    Constant | Name | Attribute | Call | Compare | BoolOp | Not | Negative | BinOp | Elements | Table | Subscript
    | Slice | IfExp | Comprehension | Generated | Formatted | Lambda | Spread | Other
)  # fmt: skip


def expression(node: ast.expr) -> Expression:
    """The expression that this syntax is. `await x` and `(name := x)` are x."""
    read = _READERS.get(type(node))
    return Other(_parts(node)) if read is None else read(node)


def below(of: Expression) -> Iterator[Expression]:
    """The expression and all that stands in it."""
    waiting: list[object] = [of]
    while waiting:
        one = waiting.pop()
        # Named tuples are tuples too: the keywords of a call are pairs of a text and an expression.
        if isinstance(one, tuple):
            if type(one) is not tuple:
                yield one  # type: ignore[misc]
            if type(one) is not Constant:
                waiting.extend(one)


def replaced(of: Expression, by: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with what `by` gives in the place of each part. Where it gives None, it is asked for its parts."""
    other = by(of)
    if other is not None or isinstance(of, Constant):
        return of if other is None else other
    kind: Callable[..., Expression] = type(of)
    return kind(*(_field(one, by) for one in of))


def _field(of: object, by: Callable[[Expression], Expression | None]) -> object:
    """A field of an expression: an expression, a tuple of such things, or a plain value."""
    if type(of) is tuple:
        return tuple(_field(one, by) for one in of)
    return replaced(cast("Expression", of), by) if isinstance(of, tuple) else of


def last_name(of: Expression) -> str:
    """The last word of a dotted name: `c` for `a.b.c` and for `c`; "" for anything else."""
    return of.id if isinstance(of, Name) else of.name if isinstance(of, Attribute) else ""


def is_none(of: Expression | None) -> bool:
    """Whether it is the constant `None`."""
    return isinstance(of, Constant) and of.value is None


def dotted_or_called(of: Expression) -> Expression:
    """What a decorator or the like names: `cache` for `@cache` and for `@cache()`."""
    return of.of if isinstance(of, Call) else of


def shown(of: Expression) -> str:
    """The expression as code, for messages and for what is looked up by its text; "…" for what is not followed."""
    match of:
        case Name(id=name):
            return name
        case Constant(value=value):
            return "..." if value is ... else repr(value)
        case Attribute(of=inner, name=name):
            return f"{shown(inner)}.{name}"
        case Call(of=called, positional=positional, keywords=words, spread=spread):
            given = [*map(shown, positional), *(f"{name}={shown(value)}" for name, value in words)]
            return f"{shown(called)}({', '.join([*given, *(f'*{shown(one)}' for one in spread)])})"
        case Subscript(of=inner, key=Elements(kind="tuple", values=(_, *_) as values)):
            return f"{shown(inner)}[{', '.join(map(shown, values))}]"
        case Subscript(of=inner, key=key):
            return f"{shown(inner)}[{shown(key)}]"
        case Elements(kind=kind, values=values):
            begin, end = {"list": ("[", "]"), "set": ("{", "}"), "tuple": ("(", ")")}[kind]
            return f"{begin}{', '.join(map(shown, values))}{',' if kind == 'tuple' and len(values) == 1 else ''}{end}"
        case BinOp(left=left, operator=operator, right=right) if operator:
            return f"{shown(left)} {operator} {shown(right)}"
        case _:
            return "…"


class Place:
    """An expression as the key of an answer. Equal ones are told apart, as the name `x` equals the text "x"."""

    __slots__ = ("of",)

    def __init__(self, of: Expression) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)


OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.BitOr: "|",
}  # fmt: skip
"""Operators that are asked for; any other is written ""."""


# A tree mentions `self` and `self.config` thousands of times: one value stands for all of them, in memory and in what
# is kept on the disk.
_name = lru_cache(_SHARED)(Name)
_text = lru_cache(_SHARED)(Constant)


@lru_cache(_SHARED)
def _attribute_of_name(of: str, name: str) -> Attribute:
    return Attribute(_name(of), name)


def _attribute(node: ast.Attribute) -> Attribute:
    if isinstance(node.value, ast.Name):
        return _attribute_of_name(node.value.id, node.attr)
    return Attribute(expression(node.value), node.attr)


def _parts(node: ast.AST) -> tuple[Expression, ...]:
    """What stands right below a node that is not followed."""
    found: list[Expression] = []
    for part in parts(node):
        found += (expression(part),) if isinstance(part, ast.expr) else _parts(part)
    return tuple(found)


def _every(nodes: list[ast.expr]) -> tuple[Expression, ...]:
    return tuple(expression(node) for node in nodes)


def maybe(node: ast.expr | None) -> Expression | None:
    """The expression, where there is one."""
    return None if node is None else expression(node)


def _call(node: ast.Call) -> Call:
    asks = isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr")
    positional, keywords, spread = [], [], []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            spread.append(expression(argument.value))
        else:
            positional.append(expression(argument))
    for word in node.keywords:
        if word.arg is None:
            spread.append(expression(word.value))
        else:
            keywords.append((word.arg, expression(word.value)))
    line = node.lineno if asks else 0
    return Call(expression(node.func), tuple(positional), tuple(keywords), tuple(spread), line)


def _unary(node: ast.UnaryOp) -> Expression:
    inner = expression(node.operand)
    if isinstance(node.op, ast.Not):
        return Not(inner)
    return Negative(inner) if isinstance(node.op, ast.USub) else Other((inner,))


def _elements(node: ast.List | ast.Tuple | ast.Set) -> Elements:
    kind: Literal["list", "tuple", "set"] = (
        "list" if isinstance(node, ast.List) else "set" if isinstance(node, ast.Set) else "tuple"
    )
    return Elements(kind, _every(node.elts))


def _comprehension(node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Expression:
    match node.generators:
        case [ast.comprehension(target=ast.Name(id=name), iter=over, ifs=tests)]:
            return Comprehension(expression(node.elt), name, expression(over), _every(tests))
        case _:
            element, *rest = _parts(node)
            return Generated(element, tuple(rest))


def _dict_comprehension(node: ast.DictComp) -> Expression:
    key, value, *rest = _parts(node)
    return Generated(value, (key, *rest))


_READERS: Mapping[type[ast.AST], Callable[[Any], Expression]] = {
    ast.Constant: lambda node: _text(node.value) if type(node.value) is str else Constant(node.value),
    ast.Name: lambda node: _name(node.id),
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Compare: lambda node: Compare(
        expression(node.left), tuple(OPERATORS[type(op)] for op in node.ops), _every(node.comparators)
    ),
    ast.BoolOp: lambda node: BoolOp(isinstance(node.op, ast.And), _every(node.values)),
    ast.UnaryOp: _unary,
    ast.BinOp: lambda node: BinOp(expression(node.left), OPERATORS.get(type(node.op), ""), expression(node.right)),
    ast.List: _elements,
    ast.Tuple: _elements,
    ast.Set: _elements,
    ast.Dict: lambda node: Table(tuple(maybe(key) for key in node.keys), _every(node.values)),
    ast.Subscript: lambda node: Subscript(expression(node.value), expression(node.slice)),
    ast.Slice: lambda node: Slice(maybe(node.lower), maybe(node.upper), maybe(node.step)),
    ast.IfExp: lambda node: IfExp(expression(node.test), expression(node.body), expression(node.orelse)),
    ast.GeneratorExp: _comprehension,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.JoinedStr: lambda node: Formatted(_parts(node)),
    ast.Lambda: lambda node: Lambda(signature_in(node.args), _parts(node)),
    ast.Starred: lambda node: Spread(expression(node.value)),
    ast.Await: lambda node: expression(node.value),
    ast.NamedExpr: lambda node: expression(node.value),
}
