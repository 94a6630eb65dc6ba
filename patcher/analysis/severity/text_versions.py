"""Versions compared as text: `"0.9.2" > "0.11.0"` is true."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patcher.analysis.bindings import Binding
from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.names import EvalContext
from patcher.analysis.conditions.target_queries import TargetQueries
from patcher.analysis.conditions.terms import (
    COMPARISONS,
    UNKNOWN,
    Known,
    Raised,
    Term,
    Unknown,
    is_misordered,
    is_version_text,
)
from patcher.analysis.expressions import Expression
from patcher.analysis.findings import Finding
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.severity.guards import guards_of
from patcher.analysis.summary import Body, FileSummary, Ordering
from patcher.i18n import phrase

_ORDER = re.compile(rb"[<>]")


def text_comparisons(program: Program, file: str) -> Iterator[Finding]:
    """Comparisons by order of versions of the target's packages, or of two texts that look like versions, as text."""
    summaries = guards_of(program).summaries
    summary = summaries.file(file) if _may_compare(program.project, file) else None
    if summary is None:
        return
    anywhere = _VersionTexts(summaries, _Anywhere())
    for body in summary.bodies.values():
        for ordering in body.orderings:
            if (found := _finding(ordering, summary, body, anywhere, program)) is not None:
                yield found


def _may_compare(project: Project, file: str) -> bool:
    """Whether its text has both a version and an order: parsing every file for that would take seconds."""

    def found() -> bool:
        content = project.content(file) or b""
        return (b"ersion" in content or b"VERSION" in content) and _ORDER.search(content) is not None

    return project.answers.once(("may compare versions", file), found)


class _VersionTexts(Evaluator):
    """Tells what may be the text of a version. One binding of a name that is one is enough:

    package_version = get_version("vllm")
    if "ROCM_PATH" in os.environ:
        package_version = re.match(PATTERN, package_version).group(1)
    """

    def _merged(self, key: tuple[str, str, str], alternatives: list[Binding], context: EvalContext) -> Term:
        term = super()._merged(key, alternatives, context)
        if not isinstance(term, Unknown):
            return term
        found = (self._assigned(alternative, context) for alternative in alternatives)
        return next((one for one in found if isinstance(one, Known) and one.package), UNKNOWN)


class _Anywhere(TargetQueries):
    """Has every distribution, in some version: enough to tell what is the text of a version."""

    def version(self, distribution: str) -> Known | None:
        return Known("0.0.0", distribution.replace("-", "_"))


def _finding(
    ordering: Ordering, summary: FileSummary, body: Body, anywhere: Evaluator, program: Program
) -> Finding | None:
    test = ordering.test
    if len(test.operators) != 1:
        return None
    local: dict[str, Term] = {}
    # `def at_least(version, minimum="0.11.0")`: the default tells that the parameter is a version.
    defaults = body.content.defaults
    for name in body.parameters:
        if name in defaults:
            local[name] = anywhere.term(defaults[name], EvalContext(summary))
    context = EvalContext(summary, body.qualname, local)
    left, right = _side(test.left, context, anywhere), _side(test.rights[0], context, anywhere)
    texts = [side for side in (left, right) if is_version_text(side)]
    packages = {side.package for side in texts if isinstance(side, Known) and side.package}
    # One side parsed (`Version(a) > "0.9"`) raises at once, which nobody overlooks.
    if len(texts) != 2 or (packages and packages.isdisjoint(program.target.against)):
        return None
    package = packages.pop() if packages else ""
    guards = guards_of(program, package)
    here = EvalContext(summary, body.qualname)
    # For the plain job on this target: does the order of the texts differ from that of the versions?
    one, other = _side(test.left, here, guards.plain), _side(test.rights[0], here, guards.plain)
    wrong = is_misordered(one, test.operators[0], other)
    reached = guards.runs_plainly((summary.file, body.qualname))
    # `if config.mtp.enable: if sglang.__version__ < "0.5.6":`
    reached = reached and guards.plain.runs((*body.conditions, *ordering.conditions), here) is not False
    if wrong:
        result = str(COMPARISONS[test.operators[0]](one, other))
        detail = phrase("{test} compares versions as text: here it is {result}", test=ordering.text, result=result)
    else:
        detail = phrase("{test} compares versions as text", test=ordering.text)
    return Finding(
        summary.file,
        ordering.line,
        f"{package}.__version__" if package else "packaging.version",
        "version-compared-as-text",
        "break" if wrong and reached else "optional",
        detail,
        phrase("compare them with packaging.version.Version"),
        function=body.qualname,
    )


def _side(of: Expression, context: EvalContext, evaluator: Evaluator) -> Term:
    try:
        return evaluator.term(of, context)
    except Raised:
        return UNKNOWN
