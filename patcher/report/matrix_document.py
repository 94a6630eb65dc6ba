"""docs/matrix.md and its Chinese twin, from a matrix of all releases: `python -m patcher.report.matrix_document`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.check.matrix import Cell, Matrix
from patcher.i18n import Language
from patcher.report.matrix import mark, mark_as_is, missing_lines, spans
from patcher.templating import environment
from patcher.terminal.report_file import write_whole

if TYPE_CHECKING:
    from patcher.check.matrix_run import MatrixRequest

DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "docs/matrix.md": ("matrix.md.j2", "en"),
    "docs/matrix.zh-CN.md": ("matrix.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""


def render(name: str, matrix: Matrix, *, command: str, date: str) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, language = DOCUMENTS[name]
    engine = environment()
    text = engine.get_template(template).render(
        package=matrix.package,
        command=command,
        date=date,
        with_records=table(matrix, mark),
        as_is=table(matrix, mark_as_is),
        missing=missing_lines(matrix, language),
    )
    return text.rstrip("\n") + "\n"


def table(matrix: Matrix, marked: Callable[[Cell | None], str]) -> str:
    """A Markdown table with a row for each span of releases that have the same marks."""
    rows = [(span.shown, *(_sign(marked(cell)) for cell in span.cells)) for span in spans(matrix, marked)]
    head = (matrix.package, *(f"verl {verl}" for verl in matrix.verl))
    rule = ("---", *("---" for _ in matrix.verl))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def asked_in(document: str) -> MatrixRequest:
    """The order that a document was made with. Raises ValueError where it holds none."""
    from patcher.check.matrix_run import MatrixRequest

    words = shlex.split(document.partition("```\n")[2].partition("\n```")[0])
    return MatrixRequest(words[words.index("--verl") + 1], (words[words.index("--against") + 1],))


def _sign(text: str) -> str:
    return {"ok": "✓"}.get(text, text.replace("x", "×"))


def _newest() -> MatrixRequest:
    """All that there is today, with both ends named, so that the document can be made again."""
    from patcher.check.matrix import FIRST, known_to_records, wanted_releases
    from patcher.check.matrix_run import MatrixRequest
    from patcher.packages.releases import versions
    from patcher.records.load import load

    verl = wanted_releases("verl", known_to_records(load()), versions("verl"))
    vllm = wanted_releases("vllm", f">={FIRST['vllm']}", versions("vllm"))
    return MatrixRequest(f">={verl[0]},<={verl[-1]}", (f"vllm>={vllm[0]},<={vllm[-1]}",))


def main(arguments: Sequence[str]) -> int:
    """Write the documents beside the package, and with an argument the page too."""
    from datetime import date

    from patcher.check.matrix_run import survey_releases
    from patcher.records.load import load
    from patcher.report.matrix_page import write_page
    from patcher.session.session import Session
    from patcher.terminal.progress import progress

    request = _newest()
    matrix = survey_releases(Session(), request, progress)
    today, root = date.today().isoformat(), Path(__file__).parents[2]
    for name in DOCUMENTS:
        write_whole(root / name, render(name, matrix, command=request.command, date=today))
        print(f"wrote {name}")
    for page in arguments:
        write_page(matrix, load(), Path(page), command=request.command, date=today)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
