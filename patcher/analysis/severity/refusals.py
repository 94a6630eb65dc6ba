"""Modules that refuse a release: they raise while they are imported, after a test of versions.

    if SHIMS.get(version("vllm")) is None:
        raise ValueError("vllm version not supported")

Nothing behind such a line runs on that release.
"""

from __future__ import annotations

from collections.abc import Iterator

from patcher.analysis.conditions.names import EvalContext
from patcher.analysis.findings import Finding
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.severity.guards import guards_of
from patcher.i18n import phrase


def _raises(project: Project, file: str) -> bool:
    """Whether its text has the word: where it has not, the file need not be parsed for it."""
    return project.answers.once(("raises", file), lambda: b"raise" in (project.content(file) or b""))


def refusals(program: Program, file: str) -> Iterator[Finding]:
    """The `raise` statements that importing a file of the tree certainly reaches on this target.

    One that no question about the target's packages leads to is no matter of a release, and is left out.
    """
    guards = guards_of(program)
    against = program.target.against
    # The target's versions decide: with several packages, the one that the test names is not looked for.
    package = "vllm" if "vllm" in against else next(iter(against), "")
    summary = guards.summaries.file(file) if _raises(program.project, file) else None
    if summary is None:
        return
    evaluator = guards.target
    for one in summary.raises:
        evaluator.asked = False
        if evaluator.runs(one.conditions, EvalContext(summary)) is not True or not evaluator.asked:
            continue
        yield Finding(
            file,
            one.line,
            f"{package}.__version__",
            "import-raises",
            "break" if guards.runs_plainly((file, "")) else "optional",
            phrase(
                "importing {module} raises {exception} on this release: {test}",
                module=summary.module,
                exception=one.exception or "an exception",
                test=one.test,
            ),
            phrase("nothing after this line runs; adapt the test, or use a release that the tree names"),
        )
