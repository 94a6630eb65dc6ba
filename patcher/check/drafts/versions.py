"""Repairs of versions that are compared as text: `"0.20.2" <= "0.6.3"` is true, of versions it is false."""

from __future__ import annotations

import libcst as cst

from patcher.analysis.findings import Finding
from patcher.check.drafts.inputs import DraftInputs, Repair
from patcher.check.drafts.sites import fitted, text_of, written
from patcher.i18n import phrase
from patcher.rewrite.edits import Insert, Replace
from patcher.rewrite.source import Source

_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_MODULE = "packaging.version"


def version_repairs(finding: Finding, inputs: DraftInputs) -> list[Repair]:
    """Both sides as versions: `packaging.version.Version(a) <= packaging.version.Version("0.6.3")`."""
    code = inputs.code(finding.file)
    if code is None:
        return []
    comparisons = (node for node in code.everything if isinstance(node, cst.Comparison) and len(node.comparisons) == 1)
    orders = (node for node in comparisons if isinstance(node.comparisons[0].operator, _ORDERS))
    found = [node for node in orders if code.lines(node)[0] == finding.line]
    # Two comparisons begin on the line: which one is meant cannot be known.
    if len(found) != 1 or _binds_package(code):
        return []
    compared = found[0]
    target = compared.comparisons[0]
    left, right = (f"{_MODULE}.Version({text_of(code, side)})" for side in (compared.left, target.comparator))
    operator = code.code(target.operator).strip()
    edit = fitted(
        Replace(file=finding.file, pattern=written(code, compared), replacement=f"{left} {operator} {right}"),
        code.text,
        frozenset({finding.line}),
        finding.function,
    )
    if edit is None:
        return []
    edits = (Insert(file=finding.file, where="prologue", code=f"import {_MODULE}"), edit)
    title = phrase("Compare versions as versions: {test}", test=text_of(code, compared))
    evidence = phrase("texts are compared letter by letter, so that 0.20 comes before 0.6")
    return [Repair(finding, edits, f"{finding.package}.__version__", "compared", title, evidence)]


def _binds_package(code: Source) -> bool:
    """Whether the file has `packaging` for something else, as in `packaging = load()`."""
    binding = (node for node in code.everything if isinstance(node, cst.AssignTarget | cst.Param))
    bound = (node.target if isinstance(node, cst.AssignTarget) else node.name for node in binding)
    return any(isinstance(one, cst.Name) and one.value == "packaging" for one in bound)
