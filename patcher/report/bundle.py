"""The listing and the report of `bundle`: each file of the archive with its size and how many secrets were replaced in
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.bundle.collecting import as_text, missing_status
from patcher.bundle.contents import Missing, Run, Section
from patcher.errors import UkyError
from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.report.diagnose import lines
from patcher.report.status import status_json
from patcher.terminal.document import Json, Lines, Output, Part, Table
from patcher.terminal.sequences import SEQUENCE
from patcher.terminal.table import Cell
from patcher.visible import unbroken, visible

if TYPE_CHECKING:
    from collections import Counter

    from patcher.bundle.contents import Bundle
    from patcher.session.session import Session

_KINDS = {
    "secrets": phrase("secrets"),
    "users": phrase("names of users"),
    "hosts": phrase("names of machines"),
    "addresses": phrase("addresses"),
    "mails": phrase("mail addresses"),
}
"""What can be replaced, in the order in which it is reported."""


def report_sections(run: Run, session: Session) -> tuple[list[Section], list[Missing]]:
    """The files of the archive that say what `diagnose` and `status` say of the run; and what cannot be known of it."""
    sections: list[Section] = []
    missing: list[Missing] = []
    if run.diagnosis is not None and run.log is not None:
        shown = (SEQUENCE.sub("", line) for line in lines(run.diagnosis, "", language()))
        text = "".join(f"{unbroken(visible(line))}\n" for line in shown)
        text = text.replace(str(run.log.path), run.log.name)
        sections.append(Section("diagnosis.txt", phrase("what diagnose says"), text))
    if run.status is not None:
        holds = phrase("the records and their outcomes on the tree")
        try:
            sections.append(Section("tree/records.json", holds, as_text(status_json(run.status, None, session))))
        except (UkyError, OSError) as error:
            missing.append(missing_status(error))
    return sections, missing


def bundle_listing(bundle: Bundle) -> Iterator[Part]:
    """Each file with its size, what it holds, and what was replaced in it how often."""
    tongue = language()
    yield Table(
        [
            (
                Cell(file.name),
                Cell(_size(file.size)),
                Cell(show(file.holds, tongue)),
                Cell(_counts(file.replaced, tongue)),
            )
            for file in bundle.files
        ]
    )
    yield Lines("")
    for missing in bundle.missing:
        how = f" ({show(missing.how, tongue)})" if missing.how else ""
        yield Lines(show(phrase("missing: {what}", what=missing.what), tongue) + how)
    message = phrase(
        "environment: {shown} {shown:variable|variables} by a closed list; {left} {left:other|others} only counted",
        **_variables(bundle),
    )
    yield Lines(message)
    replaced = _counts(bundle.replaced, tongue)
    nothing = show(phrase("nothing"), tongue)
    yield Lines(phrase("taken out or renamed: {what}", what=replaced or nothing))


def bundle_report(
    bundle: Bundle, top: str, path: Path, size: int | None, output: Output, *, dry: bool
) -> Iterator[Part]:
    """What became of it. `top` is its folder, `size` its bytes, None where none was written."""
    if output == "json":
        report = {
            "archive": str(path),
            "written": size is not None,
            "bytes": size,
            "folder": top,
            "files": [
                {
                    "name": file.name,
                    "bytes": file.size,
                    "holds": str(file.holds),
                    "replaced": {kind: count for kind, count in sorted(file.replaced.items()) if count},
                }
                for file in bundle.files
            ],
            "missing": [{"point": one.point, "what": str(one.what), "how": str(one.how)} for one in bundle.missing],
            "variables": _variables(bundle),
            "replaced": {kind: bundle.replaced[kind] for kind in _KINDS},
            "root": bundle.diagnosis.root.id if bundle.diagnosis is not None and bundle.diagnosis.root else None,
            "verdict": bundle.diagnosis.verdict if bundle.diagnosis is not None else None,
        }
        yield Json(report)
        return
    language()
    if size is not None:
        yield Lines(phrase("written: {path} ({size})", path=path, size=_size(size)))
    elif dry:
        yield Lines(phrase("nothing was written. Without --dry-run it asks, with --yes it writes at once"))
    else:
        yield Lines(phrase("nothing was written; --yes writes {path}", path=path), err=True)


def _variables(bundle: Bundle) -> dict[str, int]:
    return {"shown": bundle.shown, "left": bundle.left}


def _counts(counts: Counter[str], tongue: Language) -> str:
    parts: list[Phrase] = [
        phrase("{count} {what}", count=counts[kind], what=name) for kind, name in _KINDS.items() if counts[kind]
    ]
    return ", ".join(show(one, tongue) for one in parts)


def _size(size: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024  # type: ignore[assignment]
    return f"{size:.1f} GiB"
