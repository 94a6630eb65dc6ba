"""Write the documents that are made from records and from releases: `python -m bench.documents records|matrix`.

`records` renders MIGRATION.md, docs/symptoms.md, docs/quick-fixes.md and their Chinese twins; `matrix` docs/matrix.md
and its twin, which fetches all releases and takes minutes, and with a further argument the page too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from patcher.check.matrix import FIRST, known_to_records, wanted_releases
from patcher.check.matrix_run import MatrixRequest, survey_releases
from patcher.packages.releases import versions
from patcher.records.load import load
from patcher.records.settings import load_settings
from patcher.records.symptom_parse import load_symptoms
from patcher.report.documents import (
    MATRIX_DOCUMENTS,
    RECORD_DOCUMENTS,
    SYMPTOM_DOCUMENTS,
    matrix_document,
    record_document,
    symptom_document,
)
from patcher.report.matrix_page import matrix_page
from patcher.session.session import Session
from patcher.terminal.progress import progress
from patcher.terminal.report_file import write_whole

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> int:
    """Write the documents of one kind; name those that have changed."""
    if arguments[:1] == ["records"]:
        records, settings, symptoms = load(), load_settings(), load_symptoms()
        texts = {name: record_document(name, records, settings) for name in RECORD_DOCUMENTS}
        texts |= {name: symptom_document(name, symptoms) for name in SYMPTOM_DOCUMENTS}
    elif arguments[:1] == ["matrix"]:
        order, today = newest_order(), date.today().isoformat()
        matrix = survey_releases(Session(), order, progress)
        texts = {name: matrix_document(name, matrix, command=order.command, date=today) for name in MATRIX_DOCUMENTS}
        for page in arguments[1:]:
            write_whole(Path(page), matrix_page(matrix, load(), command=order.command, date=today))
    else:
        sys.stderr.write(f"{__doc__}")
        return 2
    for name, text in texts.items():
        path = ROOT / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
            sys.stdout.write(f"wrote {name}\n")
    return 0


def newest_order() -> MatrixRequest:
    """All that there is today, with both ends named, so that the document can be made again."""
    verl = wanted_releases("verl", known_to_records(load()), versions("verl"))
    vllm = wanted_releases("vllm", f">={FIRST['vllm']}", versions("vllm"))
    return MatrixRequest(f">={verl[0]},<={verl[-1]}", (f"vllm>={vllm[0]},<={vllm[-1]}",))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
