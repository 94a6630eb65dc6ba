"""Repairs of overrides whose base has a new flag for answers that come later: the override hands out finished futures.

    class Own(Executor):
        def collective_rpc(self, method, args=()):                          vLLM now passes non_block=True, and
            return answers                                                   takes the first answer as a Future

What the flag means is read from the base: `@overload` with `flag: Literal[True]` gives a `Future[list[…]]`, with
`Literal[False]` a `list[…]`, and the base's own callers hand out one element of what they get.
"""

from __future__ import annotations

import ast

from patcher.analysis.findings import Finding
from patcher.analysis.symbols import Class, Symbols
from patcher.analysis.syntax import FunctionNode
from patcher.check.drafts.inputs import DraftInputs, Repair
from patcher.check.drafts.parameters import callee_of
from patcher.check.drafts.sites import split_symbol
from patcher.i18n import phrase
from patcher.rewrite.edits import Edit, Insert, Replace, SetParameter
from patcher.worktree.python import UnreadableError, parse

_FINISHED = """\
from concurrent.futures import Future

def finished(result):
    future = Future()
    future.set_result(result)
    return future
"""


def override_repairs(finding: Finding, inputs: DraftInputs) -> list[Repair]:
    """The flag as a parameter, and each answer as a finished future where it is set."""
    parts, text, symbols = split_symbol(finding.symbol), inputs.text(finding.file), inputs.symbols(finding.package)
    if parts is None or text is None or symbols is None:
        return []
    base, flag = parts
    if not _hands_out_futures(symbols, base, flag):
        return []
    found = _method_at(text, finding.line)
    names = _returned(found[1]) if found is not None else None
    if found is None or names is None:
        return []
    within = found[0]
    edits: list[Edit] = [
        SetParameter(file=finding.file, within=within, new=f"{flag}: bool = False"),
        Insert(file=finding.file, within=within, where="start", code=_FINISHED),
    ]
    for name in names:
        futures = f"return [finished(one) for one in {name}] if {flag} else {name}"
        edits.append(
            Replace(file=finding.file, within=within, pattern=f"return {name}", replacement=futures, count=None)
        )
    last = base.rpartition(".")[2]
    return [
        Repair(
            finding,
            tuple(edits),
            cause=base,
            verb=f"{flag}.taken",
            title=phrase("Take {flag} in {method}, and hand out finished futures for it", flag=flag, method=last),
            evidence=phrase(
                "with {flag} the base gives futures, and its callers take one of them as their answer", flag=flag
            ),
            has=tuple(one for one in (f"{base}({flag})",) if symbols.has(one) is True),
        )
    ]


def _hands_out_futures(symbols: Symbols, base: str, flag: str) -> bool:
    callee = callee_of(symbols, base)
    if callee is None or not isinstance(callee.owner, Class):
        return False
    name = base.rpartition(".")[2]
    methods = [node for node in symbols.syntax(callee.owner).body if isinstance(node, FunctionNode)]
    answers = {
        literal: ast.unparse(method.returns)
        for method in methods
        if method.name == name and method.returns is not None and (literal := _literal(method, flag)) is not None
    }
    # `-> list[T]` without the flag, `-> Future[list[T]]` with it.
    if not answers.get(False, "").startswith("list[") or not answers.get(True, "").startswith("Future[list["):
        return False
    return any(_passes_one_on(method, name, flag) for method in methods)


def _literal(method: FunctionNode, flag: str) -> bool | None:
    """The value of `flag: Literal[True]` in an overload; None for another annotation."""
    for argument in (*method.args.args, *method.args.kwonlyargs):
        match argument:
            case ast.arg(arg=name, annotation=ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Constant(value=v))):
                if name == flag and isinstance(v, bool):
                    return v
    return None


def _passes_one_on(method: FunctionNode, name: str, flag: str) -> bool:
    """`output = self.collective_rpc(…, non_block=non_block)`, then `return output[0]`."""
    got = {
        target.id
        for node in ast.walk(method)
        if isinstance(node, ast.Assign) and _passes_flag(node.value, name, flag)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Subscript)
        and isinstance(node.value.value, ast.Name)
        and node.value.value.id in got
        for node in ast.walk(method)
    )


def _passes_flag(value: ast.expr, name: str, flag: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=called), keywords=keywords):
            passed = {one.arg for one in keywords if isinstance(one.value, ast.Name) and one.value.id == flag}
            return called == name and flag in passed
        case _:
            return False


def _method_at(text: str, line: int) -> tuple[str, ast.FunctionDef] | None:
    """The method of a class at the top level that begins on a line, and its qualified name."""
    try:
        tree = parse(text)
    except UnreadableError:
        return None
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and node.lineno == line:
                return f"{owner.name}.{node.name}", node
    return None


def _returned(method: ast.FunctionDef) -> tuple[str, ...] | None:
    """The names that a method returns; None where it returns anything else, or nothing."""
    found: list[str] = []
    todo: list[ast.AST] = list(method.body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Return):
            if not isinstance(node.value, ast.Name):
                return None
            found.append(node.value.id)
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)
    return tuple(dict.fromkeys(found)) or None


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
