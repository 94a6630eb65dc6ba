"""What a line of code does with tensors: what it adds, joins, reshapes, indexes, fills, or asks for a dimension."""

from __future__ import annotations

import ast
import re

from patcher.diagnose.failed_code import ARITHMETIC, LONGEST, called_name, in_order, pointed_at, statement_of

_FUNCTIONS = (
    frozenset(("mul", "add", "sub", "div", "maximum", "minimum", "mse_loss", "l1_loss", "kl_div", "broadcast_tensors")),
    frozenset(("matmul", "mm", "linear", "addmm")),
)
_METHODS = (
    frozenset(
        ("mul", "mul_", "add", "add_", "sub", "sub_", "div", "div_", "copy_", "masked_fill", "masked_fill_", "eq")
    ),
    frozenset(("matmul", "mm")),
)
"""Functions and methods that take two tensors: elementwise, and of matrices."""


def operands(code: str, marks: str, matrices: bool = False) -> list[tuple[str, str]]:
    """The two operands of each operation in a line of code at which two tensors may have met, in the order in which
    Python computes them.

    Args:
        marks: the line with which Python points at the operation, "" where there is none.
        matrices: whether a product of matrices is meant.
    """
    pointed = pointed_at(code, marks)
    if pointed is not None:
        found = _operands_of(pointed, matrices)
        return [found] if found is not None else []
    node = statement_of(code)
    if node is None:
        return []
    return [pair for one in in_order(node) if (pair := _operands_of(one, matrices)) is not None]


_OF_DIMENSION = re.compile(
    r"(?P<name>[A-Za-z_][\w.]*)\.(?:size|transpose|permute|movedim|unsqueeze|squeeze|flatten|sum|mean|max|min|argmax|softmax"
    r"|gather|select|narrow|split|chunk|unbind|cumsum|stride|norm|all|any)\("
)


def of_dimension(code: str) -> str:
    """The tensor of which a line of code asks for a dimension: `weight` of `rows = weight.size(2)`; "" for several."""
    names = {found["name"] for found in _OF_DIMENSION.finditer(code)} - {"torch", "F"}
    return names.pop() if len(names) == 1 else ""


def _operands_of(node: ast.AST, matrices: bool) -> tuple[str, str] | None:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ast.MatMult if matrices else ARITHMETIC):
            pass
        case ast.AugAssign(target=left, op=op, value=right) if isinstance(op, ast.MatMult if matrices else ARITHMETIC):
            pass
        case ast.Compare(left=left, comparators=[right]) if not matrices:
            pass
        case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name in _FUNCTIONS[matrices]:
            pass
        case ast.Call(func=ast.Attribute(value=left, attr=name), args=[right, *_]) if name in _METHODS[matrices]:
            pass
        case _:
            return None
    if any(isinstance(one, ast.Constant) for one in (left, right)):
        return None
    shown = [ast.unparse(one) for one in (left, right)]
    if isinstance(node, ast.Call) and called_name(node).endswith("linear"):  # It multiplies by the transposed weight.
        shown[1] += ".T"
    return (shown[0], shown[1]) if max(map(len, shown)) <= LONGEST else None


def reshaped(code: str) -> tuple[str, str]:
    """The tensor and the shape of the only `view` or `reshape` in a line of code; "" where that is not to be told."""
    node = statement_of(code)
    found = []
    for one in ast.walk(node) if node is not None else ():
        match one:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="reshape"), args=[tensor, shape]):
                found.append((ast.unparse(tensor), ast.unparse(shape)))
            case ast.Call(func=ast.Attribute(value=tensor, attr="view" | "reshape" | "view_as"), args=args):
                found.append((ast.unparse(tensor), ", ".join(map(ast.unparse, args))))
    return found[0] if len(found) == 1 and len(found[0][0]) <= LONGEST else ("", "")


def joined(code: str) -> list[str]:
    """The tensors in the list that `cat` or `stack` joins; none where the code has no such list."""
    node = statement_of(code)
    for one in ast.walk(node) if node is not None else ():
        match one:
            case ast.Call(
                func=ast.Attribute(attr="cat" | "stack" | "concat" | "concatenate"),
                args=[ast.List(elts=parts) | ast.Tuple(elts=parts), *_],
            ) if not any(isinstance(part, ast.Starred) for part in parts):
                return [ast.unparse(part)[:LONGEST] for part in parts]
    return []


def indexed(code: str) -> tuple[str, str]:
    """The tensor and its mask, of the only `tensor[mask]` in a line of code."""
    node = statement_of(code)
    found = [
        (ast.unparse(one.value), ast.unparse(one.slice))
        for one in (ast.walk(node) if node is not None else ())
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Name | ast.Attribute | ast.Call | ast.UnaryOp)
    ]
    return found[0] if len(found) == 1 and max(map(len, found[0])) <= LONGEST else ("", "")


def assigned(code: str) -> tuple[str, str]:
    """The two sides of `a[...] = b`, or of `a.copy_(b)`; "" for other code."""
    match statement_of(code):
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            found = ast.unparse(target), ast.unparse(value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="copy_"), args=[value, *_])):
            found = ast.unparse(target), ast.unparse(value)
        case _:
            return "", ""
    return found if max(map(len, found)) <= LONGEST else ("", "")
