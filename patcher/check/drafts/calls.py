"""The call that a finding about an argument is at, and how an edit names it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.analysis.model import Finding
from patcher.check.drafts.model import Ground
from patcher.rewrite.code import Code, parse
from patcher.rewrite.names import imports, resolve
from patcher.rewrite.outcome import Unparseable


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A call, and the keyword in question if it is passed by name."""

    code: Code
    call: ast.Call
    keyword: ast.keyword | None
    function: str
    """The qualified name of the function around it; "" at the top level."""

    @property
    def tail(self) -> str:
        """The called name as edits give it: its last two parts, imports resolved."""
        parts = resolve(self.call.func, imports(self.code.parents))[0]
        last = [part for part in parts[-2:] if part]
        owned = len(last) == 2 and (last[0][:1].isupper() or isinstance(self.call.func, ast.Attribute))
        return ".".join(last) if owned and last[0] not in ("self", "cls") else last[-1]


def split_symbol(symbol: str) -> tuple[str, str] | None:
    """`pkg.mod.function(parameter)` as callee and parameter."""
    callee, bracket, parameter = symbol.partition("(")
    return (callee, parameter.rstrip(")")) if bracket and parameter.endswith(")") else None


def keyword_sites(finding: Finding, parameter: str, ground: Ground) -> list[Site]:
    """The calls that pass the parameter by name on the finding's line."""
    return [
        site
        for site in _sites(finding, ground)
        if site.keyword is not None and site.keyword.arg == parameter and _starts(site.keyword, finding.line)
    ]


def call_sites(finding: Finding, callee: str, ground: Ground) -> list[Site]:
    """The calls on the finding's line whose name ends as the callee's does, or its class's."""
    names = callee.rsplit(".", 2)[-2:]
    found = {id(site.call): site for site in _sites(finding, ground) if _starts(site.call, finding.line)}
    return [
        site
        for site in found.values()
        if (parts := resolve(site.call.func, imports(site.code.parents))[0])[-1] == names[-1]
        or (names[-1] == "__init__" and parts[-1] == names[0])
    ]


def _sites(finding: Finding, ground: Ground) -> Iterator[Site]:
    text = ground.text(finding.file)
    code = parse(text.removeprefix("\ufeff")) if text is not None else None
    if code is None or isinstance(code, Unparseable):
        return
    for node in code.parents:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            function = _function(code, node)
            yield Site(code, node, None, function)
            for keyword in node.keywords:
                yield Site(code, node, keyword, function)


def _function(code: Code, node: ast.AST) -> str:
    scopes = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return ".".join(reversed([above.name for above in code.ancestors(node) if isinstance(above, scopes)]))


def _starts(node: ast.expr | ast.keyword, line: int) -> bool:
    return node.lineno == line
