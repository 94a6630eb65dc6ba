"""The call that a finding about an argument is at, and how an edit names that place and no other."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from patcher.analysis.findings import Finding
from patcher.check.drafts.inputs import DraftInputs
from patcher.rewrite import rewrite
from patcher.rewrite.edits import Edit, Mark
from patcher.rewrite.names import imports, resolve
from patcher.rewrite.outcome import AnchorAmbiguous, Overlap, Rewritten
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import bare
from patcher.worktree import python


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A call."""

    code: Source
    call: cst.Call

    @property
    def function(self) -> str:
        """The qualified name of the function around it; "" at the top level."""
        return self.code.qualified_name(self.call)

    @property
    def positional(self) -> list[cst.Arg]:
        """The arguments that are not passed by name, `*rest` included."""
        return [arg for arg in self.call.args if arg.keyword is None and arg.star != "**"]

    @property
    def tail(self) -> str:
        """The called name as edits give it: its last two parts, imports resolved."""
        parts = resolve(self.call.func, imports(self.code.everything))[0]
        last = [part for part in parts[-2:] if part]
        # `LLM.generate` and `engine.generate` tell more than `generate`; `self.generate` does not.
        owned = len(last) == 2 and (last[0][:1].isupper() or isinstance(self.call.func, cst.Attribute))
        return ".".join(last) if owned and last[0] not in ("self", "cls") else last[-1]


def split_symbol(symbol: str) -> tuple[str, str] | None:
    """`pkg.mod.function(parameter)` as callee and parameter."""
    callee, bracket, parameter = symbol.partition("(")
    return (callee, parameter.rstrip(")")) if bracket and parameter.endswith(")") else None


def keyword_sites(finding: Finding, parameter: str, inputs: DraftInputs) -> list[tuple[Site, cst.Arg]]:
    """The calls that pass the parameter by name on the finding's line, and how."""
    return [
        (site, arg)
        for site in _sites(finding, inputs)
        for arg in site.call.args
        if arg.keyword is not None and arg.keyword.value == parameter and site.code.lines(arg)[0] == finding.line
    ]


def call_sites(finding: Finding, callee: str, inputs: DraftInputs) -> list[Site]:
    """The calls on the finding's line whose name ends as the callee's does, or its class's."""
    names = callee.rsplit(".", 2)[-2:]
    found = [site for site in _sites(finding, inputs) if site.code.lines(site.call)[0] == finding.line]
    return [
        site
        for site in found
        if (parts := resolve(site.call.func, imports(site.code.everything))[0])[-1] == names[-1]
        # A constructor is called by the name of its class.
        or (names[-1] == "__init__" and parts[-1] == names[0])
    ]


def _sites(finding: Finding, inputs: DraftInputs) -> Iterator[Site]:
    """The calls in the finding's file."""
    code = inputs.code(finding.file)
    if code is None:
        return
    for node in code.everything:
        if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
            yield Site(code, node)


def text_of(code: Source, node: cst.CSTNode) -> str:
    """An expression as it is written, without parentheses around it."""
    return code.code(bare(node))


def expression(code: Source, node: cst.CSTNode) -> ast.expr:
    """An expression as Python's own syntax tree, which the analysis of values and signatures works on.

    Raises:
        UnreadableError: this interpreter does not know its syntax.
    """
    return python.parse_expression(f"({text_of(code, node)})")


def written(code: Source, node: cst.CSTNode) -> str:
    """An expression on one line, as a pattern in a record has it."""
    return ast.unparse(expression(code, node))


_TRIAL = Mark("draft")


def fitted(edit: Edit, text: str, lines: frozenset[int], function: str) -> Edit | None:
    """The edit with its count, limited to `function` where it would reach beyond `lines`; None if it has no place."""
    outcome = rewrite(text, edit, _TRIAL)
    match outcome:
        # Overlap: another record's mark is on the line; `after` settles that later.
        case Rewritten() | Overlap():
            return edit
        case AnchorAmbiguous(lines=found):
            every = dataclasses.replace(edit, count=len(found))
            # All places are on the finding's lines, so that the whole file can be meant. Else the edit is limited to
            # the function.
            if set(found) <= lines or edit.within is not None or not function:
                return every
            inside = dataclasses.replace(edit, within=function)
            return fitted(inside, text, lines, function) or every
        case _:
            return None
