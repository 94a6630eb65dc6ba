"""Folders of records -> records, in the order in which they are applied, or the mistakes of all files at once.

A file of a fork's own folder replaces the shipped one of the same name. What is shipped is parsed once and then kept in
the user's cache (`kept_as_shipped`); it is parsed anew after one of its files, or the code that parses, has changed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

from patcher import __version__
from patcher.data import shipped
from patcher.errors import RecordError
from patcher.i18n import listed, phrase
from patcher.records.model import Record
from patcher.tables.mistakes import Mistake, mistakes_error
from patcher.worktree import files

T = TypeVar("T")


def record_files(extra: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The record files that count: the shipped ones and those of `extra`, which replace shipped ones of the same name.

    Raises RecordError for a folder that is not there, and for one name in two extra folders.
    """
    return _files("patches", extra)


def symptom_files(extra: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The same for symptoms."""
    return _files("symptoms", extra)


def _files(kind: str, extra: Sequence[Path]) -> tuple[Path, ...]:
    chosen = {path.name: path for path in toml_files(shipped(kind), kind)}
    own: dict[str, Path] = {}
    for folder in extra:
        for path in toml_files(folder, kind):
            if path.name in own:
                raise RecordError(
                    phrase("{path}: a record of this name is in {folder} too", path=path, folder=own[path.name].parent),
                    advice="Rename one of them, or leave one folder out.",
                )
            own[path.name] = path
    return tuple(path for _, path in sorted((chosen | own).items()))


def load(extra: Sequence[Path] = ()) -> tuple[Record, ...]:
    """All records, ordered by `after` and then by id. Raises RecordError with all mistakes of all files."""
    return parse_files(record_files(extra))


_OF_VERL = re.compile(r"(?<![\w./-])verl(?=[./]\w)")
"""`verl.utils` and `verl/utils/x.py`, and neither `github.com/volcengine/verl/pull` nor the key `verl = ">=0.6"`."""


def parse_files(paths: Iterable[Path], package: str = "verl") -> tuple[Record, ...]:
    """All records of some files, ordered by `after` and then by id. Raises RecordError with all mistakes.

    For a fork that renamed verl (`package`) each record is read as if it were written for that name, its examples too:
    what is applied and kept in the ledger is the same text.
    """
    renamed = package != "verl"

    def read_as(text: str, path: Path) -> Record | list[Mistake]:
        return _parse(_OF_VERL.sub(package, text) if renamed else text, path)

    known: Mapping[Path, Record] = {} if renamed else _shipped_records()
    records, mistakes = parsed(paths, known, read_as)
    if not mistakes:
        mistakes = [*_unknown_neighbours(records), *_circles(records)]
        own = [record for record in records if record.path not in known]
        mistakes += _unfinished(record for record in own if record.enabled)
    _refuse(mistakes)
    return in_order(records)


def require_finished(records: Iterable[Record]) -> None:
    """Raises RecordError where one of the records is begun only: something of it is to be written still."""
    _refuse(_unfinished(records))


def _refuse(mistakes: Sequence[Mistake]) -> None:
    if mistakes:
        title = phrase("{count} {count:mistake|mistakes} in the records", count=len(mistakes))
        raise mistakes_error(title, mistakes, phrase("The format is described in docs/records.md."))


def _unfinished(records: Iterable[Record]) -> list[Mistake]:
    from patcher.records.unfinished import unfinished

    return [mistake for record in records for mistake in unfinished(record)]


def parsed(
    paths: Iterable[Path], known: Mapping[Path, T], parse: Callable[[str, Path], T | list[Mistake]]
) -> tuple[list[T], list[Mistake]]:
    """What each file holds, from `known` where that is told there; and all mistakes of all files."""
    found: list[T] = []
    mistakes: list[Mistake] = []
    for path in paths:
        if path in known:
            found.append(known[path])
            continue
        text = read(path)
        result = [text] if isinstance(text, Mistake) else parse(text, path)
        if isinstance(result, list):
            mistakes += result
        else:
            found.append(result)
    return found, mistakes


def _parse(text: str, path: Path) -> Record | list[Mistake]:
    # Imported where a file has to be parsed: what is shipped comes from the cache, and `status` often needs no record.
    from patcher.records.parse import parse

    return parse(text, path)


def _shipped_records() -> Mapping[Path, Record]:
    """Those that the tool came with, by file. None where one of them is wrong.

    Parsing and checking 48 files takes 56 ms of processor time, reading them back 10 ms (2026-11-25).
    """

    def compute() -> dict[str, Any] | None:
        found, mistakes = parsed(record_files(), {}, _parse)
        return None if mistakes else {"records": dict(zip(record_files(), found, strict=True))}

    records: Mapping[Path, Record] = kept_as_shipped("patches", compute).get("records", {})
    return records


def kept_as_shipped(kind: str, compute: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    """What the shipped files of a kind come to, from the user's cache where these files and the code are the same.

    Empty where `compute` finds a mistake, which the caller reports with those of other files.
    """
    from patcher.packages.releases.cache import stamps
    from patcher.packages.releases.kept import Kept

    package = Path(__file__).parents[1]
    code = (stamps(package / room) for room in ("records", "rewrite", "tables", "logs"))
    kept = Kept(kind, [__version__, sys.version_info, stamps(shipped(kind), ".toml"), *code], 4)
    values = kept.read()
    if values is None and (values := compute()) is not None:
        kept.keep(values)
    return values or {}


def as_applied(name: str, text: str) -> Record:
    """A record from a ledger's own copy of its text. Raises RecordError where this version cannot read it."""
    result = _parse(text, Path(f"{name}.toml"))
    if isinstance(result, Record):
        return result
    raise mistakes_error(
        phrase("{name}: this version cannot read the record as it was applied", name=name),
        result,
        phrase("Revert with the uky-patch that applied it, and apply anew."),
    )


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Records with each behind those it names in `after`, otherwise by id. Names that are not there do not count."""
    by_id = {record.id: record for record in sorted(records, key=lambda record: record.id)}
    graph = {record.id: [name for name in record.after if name in by_id] for record in by_id.values()}
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    ordered: list[Record] = []
    while ready := sorted(sorter.get_ready()):
        ordered.extend(by_id[name] for name in ready)
        sorter.done(*ready)
    return tuple(ordered)


def digest(paths: Iterable[Path]) -> str:
    """One hash over the names and bytes of record files; changes with any of them, and where one cannot be read."""
    total = hashlib.sha256()
    for path in paths:
        try:
            content = files.read(path, files.SETTINGS_BYTES, follow=True)
        except OSError as error:
            content = repr(error).encode()
        total.update(path.name.encode() + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def toml_files(folder: Path, kind: str) -> list[Path]:
    """The files of a folder of records or symptoms, by name. Raises RecordError where it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml" and not path.name.startswith("."))
    except OSError as error:
        raise RecordError(
            phrase("{folder}: the record folder cannot be read", folder=folder),
            cause=error.strerror or "",
            advice="Check symptoms in uky-patch.toml." if kind == "symptoms" else "Check --patches and uky-patch.toml.",
        ) from error


def read(path: Path) -> str | Mistake:
    """A record's text, or why there is none."""
    try:
        return files.read_text(path, files.SETTINGS_BYTES, follow=True)
    except UnicodeDecodeError as error:
        return Mistake(str(path), 0, "", phrase("is not UTF-8: byte {position}", position=error.start))
    except OSError as error:
        return Mistake(str(path), 0, "", phrase("cannot be read: {problem}", problem=listed(error.strerror or "")))


def _unknown_neighbours(records: Sequence[Record]) -> list[Mistake]:
    known = {record.id for record in records}
    return [
        Mistake(str(record.path), 0, "after", phrase("there is no record {name!r}", name=name))
        for record in records
        for name in record.after
        if name not in known
    ]


def _circles(records: Sequence[Record]) -> list[Mistake]:
    try:
        TopologicalSorter({record.id: record.after for record in records}).prepare()
    except CycleError as error:
        circle = phrase("goes round in a circle: {records}", records=" -> ".join(error.args[1]))
        return [Mistake(str(records[0].path), 0, "after", circle)]
    return []
