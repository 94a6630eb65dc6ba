"""Read the line of code that failed: which values met there, what was unpacked, where a keyword came from.

q_embed = (q * cos) + (rotate_half(q) * sin)
           ~~^~~~~                                ▶ q and cos, the operands of q * cos
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import UNREADABLE_CODE

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ELLIPSIS = re.compile(r"\s*\.\.\.<\d+ lines?>\.\.\.\s*$")
_QUOTED = re.compile(r"(['\"])(?:\\.|(?!\1).)*\1")
_OPENS_BLOCK = re.compile(r"(?:async )?(?:for|with|while|if)\b")


def statement_of(code: str) -> ast.stmt | None:
    """The statement that begins with these lines of code; None where they are not the beginning of one.

    Of a statement of several lines most logs show the first only, so what it opens is closed.
    """
    lines = [line for line in textwrap.dedent(code).splitlines() if not _ELLIPSIS.match(line)]
    for text in ("\n".join(lines), lines[0] if lines else ""):
        text = text.strip()
        text = re.sub(r"^elif\b", "if", text)
        for whole in _wholes(text):
            try:
                (node,) = ast.parse(whole).body
            except UNREADABLE_CODE:
                continue
            return node
    return None


def is_whole(line: str) -> bool:
    """Whether a line of code is one whole statement."""
    try:
        return len(ast.parse(line.strip()).body) == 1
    except UNREADABLE_CODE:
        return False


def _wholes(text: str) -> Iterator[str]:
    bare = re.sub(r"\s*(?<!['\"])#.*$", "", text)
    closers = _missing_closers(bare)
    for one in (text, bare + closers, bare.rstrip(" ,") + closers):
        yield one
        if _OPENS_BLOCK.match(one):
            yield one.rstrip(":") + ": pass"


def _missing_closers(text: str) -> str:
    """The brackets that are open at the end, closed."""
    open_: list[str] = []
    for sign in _QUOTED.sub("", text):
        if sign in _CLOSING:
            open_.append(_CLOSING[sign])
        elif open_ and sign == open_[-1]:
            open_.pop()
    return "".join(reversed(open_))


def mapping_with(code: str, name: str) -> str:
    """The mapping `x` of the only call `f(**x)` in a line of code that does not write the keyword `name` itself; ""
    where there is no such call."""
    node = statement_of(code)
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)] if node is not None else []
    if any(keyword.arg == name for call in calls for keyword in call.keywords):
        return ""
    found = [keyword.value for call in calls for keyword in call.keywords if keyword.arg is None]
    return ast.unparse(found[0]) if len(found) == 1 else ""


def is_written(names: Sequence[str], calls: Sequence[Call]) -> bool:
    """Whether the innermost line of code itself writes one of these keywords."""
    code = calls[-1].code if calls else ""
    return any(re.search(rf"\b{re.escape(name)}\s*=", code) for name in names)


def arguments_of(code: str) -> list[str]:
    """The arguments of all calls in a line of code, `model_cfg` of `build(model_cfg)`."""
    node = statement_of(code)
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)] if node is not None else []
    values = [value for call in calls for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    return [ast.unparse(value) for value in values if isinstance(value, ast.Name | ast.Attribute | ast.Subscript)]


_HANDED_ON = frozenset(("enumerate", "tqdm", "iter", "list", "tuple", "sorted", "reversed"))


def unpacked(code: str) -> tuple[str, bool]:
    """What a line of code unpacks, `bridge.weights` of `for a, b in bridge.weights(x):`, and whether that is a call; ""
    where it unpacks nothing, or several things."""
    match statement_of(code):
        case ast.For(target=ast.Tuple() | ast.List(), iter=value):
            pass
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            pass
        case _:
            return "", False
    if isinstance(value, ast.Await):
        value = value.value
    while isinstance(value, ast.Call) and called_name(value).rpartition(".")[2] in _HANDED_ON and value.args:
        value = value.args[0]
    if isinstance(value, ast.Call):
        return called_name(value), True
    return (ast.unparse(value), False) if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) else ("", False)


def called_name(call: ast.Call) -> str:
    return ast.unparse(call.func)


def called_in(code: str) -> str:
    """The function that a line of code calls, the outermost of several; "" where it calls none by a name."""
    node = statement_of(code)
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)] if node is not None else []
    return called_name(calls[0]) if calls and isinstance(calls[0].func, ast.Name | ast.Attribute) else ""


def constructed_in(code: str) -> str:
    """The only class that a line of code makes an object of, by its name; "" where that is not to be told."""
    node = statement_of(code)
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)] if node is not None else []
    names = [called_name(one).rpartition(".")[2] for one in calls if isinstance(one.func, ast.Name | ast.Attribute)]
    classes = [name for name in names if name[:1].isupper()]
    return classes[0] if len(classes) == 1 and "super" not in names else ""


def _taken(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What `sequence[place]` and `sequence.pop(place)` take from, and which place."""
    match node:
        case ast.Subscript(value=value, slice=place, ctx=ast.Load()) if not isinstance(place, ast.Slice):
            return value, place
        case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[place], keywords=[]):
            return value, place
    return None


def taken_from(code: str, marks: str, key: str = "") -> tuple[str, str]:
    """The sequence and the place of the only `sequence[place]` in a line of code, or of the one that Python points at;
    "" where that is not to be told. Of several the one counts whose place is written as `key`."""
    pointed = pointed_at(code, marks)
    node = pointed if pointed is not None else statement_of(code)
    found = [
        (ast.unparse(taken[0]), ast.unparse(taken[1]))
        for one in (ast.walk(node) if node is not None else ())
        if (taken := _taken(one)) is not None
    ]
    if pointed is not None and _taken(pointed) is None:
        return "", ""
    found = found[:1] if pointed is not None else found
    if len(found) > 1 and key:
        found = [one for one in found if one[1] == repr(key)]
    return found[0] if len(found) == 1 and max(map(len, found[0])) <= LONGEST else ("", "")


def pointed_none(code: str, marks: str, name: str, is_not: str = "") -> str:
    """The expression that is None, where Python points at what is done with it: `weight` of `weight.is_cuda`; "" where
    it points at nothing of the kind.

    Args:
        name: the attribute that is asked for.
        is_not: what None is not: `iterable` for `zip(rows, names)`, where either is None.
    """
    match pointed_at(code, marks):
        case ast.Attribute(value=value, attr=attr) if attr == name:
            pass
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr == name:
            pass
        case ast.Subscript(value=value) if not name:
            pass
        case ast.Call(args=args) if is_not == "iterable":
            names = [ast.unparse(one) for one in args if isinstance(one, ast.Name | ast.Attribute | ast.Subscript)]
            shown = " / ".join(names) if len(names) == len(args) else ""
            return shown if len(shown) <= LONGEST else ""
        case ast.Call(func=value) if not name:
            pass
        case _:
            return ""
    shown = ast.unparse(value)
    return shown if len(shown) <= LONGEST else ""


_OPERATORS: Mapping[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
    "@": ast.MatMult,
}


_READS_ALL = frozenset(
    (
        *("update", "extend", "join", "list", "set", "tuple", "dict"),
        *("sorted", "sum", "enumerate", "zip", "any", "all", "map"),
    )
)
"""Functions that go through each argument of theirs."""


def none_argument(code: str, is_not: str) -> str:
    """The argument that is None in a line of code that Python does not point into: `self.rows` of `len(self.rows)`,
    where None has no `len`, and of `a.update(self.rows)` and `a in self.rows`, where it is not `iterable`; "" where
    there are several."""
    names = {"len"} if is_not == "len" else _READS_ALL if is_not == "iterable" else frozenset()
    node = statement_of(code)
    found = []
    for one in ast.walk(node) if node is not None else ():
        values: list[ast.expr] = []
        if isinstance(one, ast.Call) and called_name(one).rpartition(".")[2] in names:
            values = one.args
        elif isinstance(one, ast.Compare) and is_not == "iterable" and isinstance(one.ops[0], ast.In | ast.NotIn):
            values = one.comparators
        known = [ast.unparse(value) for value in values if isinstance(value, ast.Name | ast.Attribute | ast.Subscript)]
        found += [known] if values else []
    shown = " / ".join(found[0]) if len(found) == 1 else ""
    return shown if len(shown) <= LONGEST else ""


def none_operand(code: str, operator: str, left: bool) -> str:
    """The only operand of `operator` in a line of code that can be None: `args.size` of `args.size * count * args.gas`,
    where the left one is None; "" where there are several.

    What an operation gives is never None, so only operands count that are no operation themselves.
    """
    kind, node = _OPERATORS.get(operator), statement_of(code)
    if kind is None or node is None:
        return ""
    found = []
    for one in ast.walk(node):
        if isinstance(one, ast.BinOp) and isinstance(one.op, kind):
            side = one.left if left else one.right
            if isinstance(side, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
                found.append(ast.unparse(side))
    return found[0] if len(found) == 1 and len(found[0]) <= LONGEST else ""


def calculated(code: str) -> list[str]:
    """The names that a line of code calculates with by an operator, in order: `a.x` and `b` of `c = a.x * b`."""
    node = statement_of(code)
    found = []
    for one in in_order(node) if node is not None else ():
        if isinstance(one, ast.BinOp) and isinstance(one.op, ARITHMETIC):
            found += [ast.unparse(side) for side in (one.left, one.right) if isinstance(side, ast.Name | ast.Attribute)]
    return list(dict.fromkeys(found))


def literal_raised(code: str) -> str:
    """The text of `raise ValueError("…")`, which says nothing of what was caught; "" for any other code."""
    match statement_of(code):
        case ast.Raise(exc=ast.Call(args=[ast.Constant(value=str(text))])):
            return text
    return ""


LONGEST = 60
"""Characters of an operand that are shown."""
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)


def mixed(code: str, marks: str) -> tuple[str, str]:
    """The two sides of the only operation or comparison in a line of code: `self.ids` and `rows[0]` of `self.ids +=
    rows[0]`; "" where there is none, or several."""
    pointed = pointed_at(code, marks)
    node = statement_of(code)
    found = []
    for one in [pointed] if isinstance(pointed, ast.BinOp | ast.Compare) else ast.walk(node or ast.Pass()):
        match one:
            case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
                found.append((ast.unparse(left), ast.unparse(right)))
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
                found.append((ast.unparse(left), ast.unparse(right)))
            case ast.Call(
                func=ast.Name(id="max" | "min"), args=[left, right]
            ):  # It compares the second with the first.
                found.append((ast.unparse(right), ast.unparse(left)))
    return found[0] if len(found) == 1 and max(map(len, found[0])) <= LONGEST else ("", "")


def used_as(code: str, marks: str, use: str) -> str:
    """What a line of code subscripts, calls or looks into: `os` of `int(os["RANK"])`, `args.debug` of `"a" in
    args.debug`; "" where that is not one name, or is several.

    Args:
        use: "subscriptable", "callable" or "iterable", as Python says of a value that is not.
    """
    pointed = pointed_at(code, marks) if marks else None
    if pointed is None and 0 < len(marks.strip()) < len(marks.rstrip()) <= len(code.partition("\n")[0]):
        return ""  # The marks stand below no expression: the file was edited while the program ran.
    node = pointed if isinstance(pointed, ast.Subscript | ast.Call) else statement_of(code)
    found = []
    for one in ast.walk(node) if node is not None else ():
        if isinstance(one, ast.Subscript) and use == "subscriptable":
            found.append(one.value)
        elif isinstance(one, ast.Call) and use == "callable":
            found.append(one.func)
        elif isinstance(one, ast.Compare) and use == "iterable":
            pairs = zip(one.ops, one.comparators, strict=True)
            found += [value for sign, value in pairs if isinstance(sign, ast.In | ast.NotIn)]
        elif isinstance(one, ast.For | ast.comprehension) and use == "iterable":
            found.append(one.iter)
    names = {ast.unparse(one) for one in found if isinstance(one, ast.Name | ast.Attribute)}
    return names.pop() if len(names) == 1 == len(found) else ""


def divisor(code: str, marks: str) -> str:
    """What a line of code divides by; "" where that is not one name or expression."""
    pointed = pointed_at(code, marks) if marks else None
    node = pointed if isinstance(pointed, ast.BinOp) else statement_of(code)
    found = []
    for one in ast.walk(node) if node is not None else ():
        match one:
            case ast.BinOp(left=ast.Constant(value=str()) | ast.JoinedStr()):
                continue
            case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
                found.append(right)
            case ast.AugAssign(op=ast.Div() | ast.FloorDiv() | ast.Mod(), value=right):
                found.append(right)
    names = {ast.unparse(one) for one in found if not isinstance(one, ast.Constant)}
    return names.pop() if len(names) == 1 else ""


def zero_in(message: str, code: str) -> str:
    """What a message gives as 0, as the code calls it: `len(shards)` of `f"MP={len(shards)}"` and `MP=0`; "" where it
    gives no 0, or several."""
    node = statement_of(code)
    for text in (one for one in ast.walk(node or ast.Pass()) if isinstance(one, ast.JoinedStr)):
        zeros = {name for name, value in _filled_in(text, message).items() if value.strip(" .,;()") == "0"}
        if zeros:
            return zeros.pop() if len(zeros) == 1 else ""
    return ""


def _filled_in(text: ast.JoinedStr, message: str) -> dict[str, str]:
    """The values that an f-string has put between its words; empty where the message is another one."""
    found: dict[str, str] = {}
    name, at = "", 0
    for part in text.values:
        if isinstance(part, ast.FormattedValue):
            if name:
                return {}  # Between `{rank}{size}` nothing parts the values.
            name = ast.unparse(part.value)
        elif isinstance(part, ast.Constant):
            begin = message.find(str(part.value), at)
            if begin < 0:
                return {}
            if name:
                found[name] = message[at:begin] if at else message[:begin].rpartition(": ")[2]
            name, at = "", begin + len(str(part.value))
    return {**found, name: message[at:]} if name else found


def in_order(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield from in_order(child)
    yield node


def pointed_at(code: str, marks: str) -> ast.expr | None:
    """The expression below which Python printed `~~^~~` or `^^^^`."""
    line = code.splitlines()[0] if code else ""
    begin, end = len(marks) - len(marks.lstrip()), len(marks.rstrip())
    if not marks.strip() or end > len(line):
        return None
    try:
        return ast.parse(line[begin:end].strip(), mode="eval").body
    except UNREADABLE_CODE:
        return None


def expected_and_message(code: str) -> tuple[list[str], list[str]]:
    """The two sides of the comparison that an assertion makes, and the values that its message gives, where the code
    shows them: `assert a == b, (a, b)` or `assert a == b, f"{a} {b}"`."""
    node = statement_of(code)
    if not isinstance(node, ast.Assert):
        return [], []
    sides = [ast.unparse(one) for one in _sides(node.test)]
    match node.msg:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return sides, [ast.unparse(part) for part in parts]
        case ast.JoinedStr(values=parts):
            return sides, [ast.unparse(part.value) for part in parts if isinstance(part, ast.FormattedValue)]
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
            return sides, [ast.unparse(node.msg)]
    return sides, []


def _sides(test: ast.expr) -> list[ast.expr]:
    return [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
