"""May an argument be left out? Only where it had no effect at the call, or has its effect from elsewhere now."""

from __future__ import annotations

import ast

from patcher.analysis.symbols import Symbols
from patcher.check.drafts.callees import Callee, attribute_set_elsewhere
from patcher.check.drafts.shims import said_to_be_ignored
from patcher.i18n import Phrase, phrase


def droppable(
    name: str, value: ast.expr, old: Callee | None, new: Callee | None, symbols: Symbols, called: frozenset[str]
) -> Phrase | None:
    """Why leaving out `name`, passed as `value`, changes nothing; None if nothing says so.

    `called` are the methods that the tree calls in the same file on what the call gives.
    """
    if old is not None and name in old.formals:
        default = old.formals[name].default
        if default is not None and _is_literal(value) and ast.dump(value) == ast.dump(default):
            told = "{name} is passed as {value}, which was its default"
            return phrase(told, name=name, value=ast.unparse(value))
        if default is not None and _is_falsy(value) and _is_falsy(default) and _only_tested(old, name):
            told = "{name} is passed as {value}, its default was {default}, and it was only tested for truth"
            return phrase(told, name=name, value=ast.unparse(value), default=ast.unparse(default))
        if old.node is not None and said_to_be_ignored(old.node, name):
            return phrase("the last release that took {name} says that it has no effect", name=name)
        if old.node is not None and not _reads(old.node, name) and not _forwards(old.node):
            return phrase("the last release that took {name} did nothing with it", name=name)
        if old.node is not None and new is not None and new.owner is not None and not _escapes(old.node, name):
            setter = attribute_set_elsewhere(symbols, new.owner, name)
            if setter is not None and setter in called:
                told = "the constructor did not keep {name}; the object gets it from {method}, which is called here too"
                return phrase(told, name=name, method=setter)
    if new is not None and new.node is not None and (source := _derived(new.node, name)):
        return phrase("it takes {name} from {source} itself now", name=name, source=source)
    return None


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_falsy(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _reads(node: ast.AST, name: str) -> list[ast.Name]:
    body = getattr(node, "body", [])
    return [
        part
        for statement in body
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]


def _forwards(node: ast.AST) -> bool:
    """Whether the function may use its parameters without naming them."""
    return any(isinstance(part, ast.Name) and part.id in ("locals", "vars") for part in ast.walk(node))


def _only_tested(callee: Callee, name: str) -> bool:
    if callee.node is None or _forwards(callee.node):
        return False
    tested: set[int] = set()
    for part in ast.walk(callee.node):
        match part:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                tested |= {id(one) for one in _truths(test)}
            case _:
                pass
    return all(id(read) in tested for read in _reads(callee.node, name))


def _truths(test: ast.expr) -> list[ast.expr]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _truths(inner)
        case ast.BoolOp(values=values):
            return [one for value in values for one in _truths(value)]
        case _:
            return [test]


def _escapes(node: ast.AST, name: str) -> bool:
    """Whether the value itself is kept or passed on, rather than asked for its attributes."""
    asked = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return _forwards(node) or any(id(read) not in asked for read in _reads(node, name))


def _derived(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """The expression on another parameter that the function's own local `name` is set to before all else."""
    parameters = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Attribute(value=ast.Name(id=owner), attr=attr)):
                if target == name and owner in parameters and attr == name:
                    return f"{owner}.{attr}"
            case _:
                pass
    return ""
