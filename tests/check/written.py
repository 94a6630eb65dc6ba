"""Expressions as Python writes them, for comparisons in tests."""

from __future__ import annotations

from patcher.analysis.expressions import (
    Attribute,
    BinOp,
    BoolOp,
    Call,
    Compare,
    Constant,
    Elements,
    Expression,
    Name,
    Not,
    Subscript,
)


def written(of: Expression) -> str:
    match of:
        case Constant(value=value):
            return repr(value)
        case Name(id=name):
            return name
        case Attribute(of=inner, name=name):
            return f"{written(inner)}.{name}"
        case Call(of=called, positional=positional, keywords=keywords):
            given = [*map(written, positional), *(f"{name}={written(value)}" for name, value in keywords)]
            return f"{written(called)}({', '.join(given)})"
        case Compare(left=left, operators=operators, rights=rights):
            rest = (f" {operator} {written(right)}" for operator, right in zip(operators, rights, strict=True))
            return "".join([written(left), *rest])
        case BoolOp(every=every, values=values):
            return (" and " if every else " or ").join(map(written, values))
        case Not(of=inner):
            return f"not {written(inner)}"
        case BinOp(left=left, operator=operator, right=right):
            return f"{written(left)} {operator} {written(right)}"
        case Subscript(of=inner, key=key):
            return f"{written(inner)}[{written(key)}]"
        case Elements(kind="tuple", values=values):
            return f"({', '.join(map(written, values))})"
        case _:
            raise NotImplementedError(of)
