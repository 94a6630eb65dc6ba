"""Which files are patched, by which records, and from what: `.uky-patch/ledger.json`, and the notes beside pre-images.

A note, `.uky-patch/originals/<sha256>.json`, is the part of the ledger that is about its pre-image: the paths, the
mode, the release, what the file was made into, and the records that did so. So the ledger can be made again from the
pre-images alone. A note holds that part as it is after a change and as it was before, for it is there before the change
is made, and stays if it is taken back. All files that records have made share one note, of the pre-image ABSENT, which
is no file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Collection, Iterable, Mapping

from patcher import __version__
from patcher.messages import Refusal, message_of, phrase
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.json_text import parse_json

FORMAT = 1
NOTE = ".json"
"""What a note's name has after its pre-image's digest."""


@dataclass(frozen=True)
class PatchedFile:
    """A file's digest before the first record and after the last, and the records in between, in order.

    `original` is ABSENT of a file that a record has made.
    """

    original: str
    patched: str
    records: tuple[str, ...]
    mode: int | None = None
    """The permission bits of the original."""
    release: str = ""
    """The verl version that the original is of; "" where that is not known."""
    folders: tuple[str, ...] = ()
    """The folders that were made for it, from the outermost; without the file they go where they are empty."""


@dataclass(frozen=True)
class AppliedRecord:
    """A record as it was when it was applied: `source` is its TOML text, `at` the UTC time in ISO 8601."""

    source: str
    versions: Mapping[str, str] = field(default_factory=dict)
    at: str = ""

    @property
    def digest(self) -> str:
        return digest_of(self.source.encode())


@dataclass(frozen=True)
class Ledger:
    """The state of a tree as the tool left it. Falsy when nothing is applied."""

    files: Mapping[str, PatchedFile] = field(default_factory=dict)
    records: Mapping[str, AppliedRecord] = field(default_factory=dict)
    basis: Mapping[str, Any] = field(default_factory=dict)
    """Whatever the planner needs to know that nothing has changed since: any JSON values."""
    tool: str = __version__

    def __bool__(self) -> bool:
        return bool(self.files or self.records)

    def of(self, paths: Collection[str]) -> Ledger:
        """The part of it that is about `paths`: these files, and the records in them."""
        files = {path: file for path, file in self.files.items() if path in paths}
        names = {name for file in files.values() for name in file.records}
        return Ledger(files, {name: record for name, record in self.records.items() if name in names}, tool=self.tool)

    def without(self, paths: Collection[str]) -> Ledger:
        """The part of it that is not about `paths`; itself where there are none."""
        return self.of(self.files.keys() - set(paths)) if paths else self


class DamagedLedgerError(Refusal):
    """The ledger's file is there and says nothing that can be used."""


@dataclass(frozen=True)
class Note:
    """A pre-image's digest, and what is known of its files: as it is, then as it was before the last change."""

    sha256: str
    states: tuple[Ledger, ...]


def now() -> str:
    """The UTC time, as the ledger writes it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def dump(ledger: Ledger) -> bytes:
    """The ledger's file; the same ledger gives the same bytes."""
    data = {"format": FORMAT, "tool": ledger.tool, **pack(ledger), "basis": dict(ledger.basis)}
    return json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n"


def pack(ledger: Ledger) -> dict[str, Any]:
    """The ledger's files and records as JSON values."""
    return {
        "files": {path: _packed(file) for path, file in ledger.files.items()},
        "records": {
            id_: {"digest": record.digest, "versions": dict(record.versions), "at": record.at, "source": record.source}
            for id_, record in ledger.records.items()
        },
    }


def unpack(data: Mapping[str, Any]) -> Ledger:
    """The ledger with these files and records. Raises ValueError, KeyError, TypeError or AttributeError for others."""
    return Ledger(
        files={path: _file(entry) for path, entry in data["files"].items()},
        records={id_: _record(id_, entry) for id_, entry in data["records"].items()},
    )


def _packed(file: PatchedFile) -> dict[str, Any]:
    known = {"mode": file.mode, "release": file.release, "folders": list(file.folders)}
    given = {name: value for name, value in known.items() if value not in (None, "", [])}
    return {"original": file.original, "patched": file.patched, "records": list(file.records), **given}


def parse(content: bytes, where: str) -> Ledger:
    """Read a ledger's file.

    Raises:
        DamagedLedgerError: it is damaged.
        Refusal: it is of a format newer than this tool's.
    """
    try:
        data = parse_json(content)
        found = data["format"]
        if type(found) is not int:
            raise TypeError(phrase("format is no number"))
        if found > FORMAT:
            raise Refusal(
                "ledger",
                phrase(
                    "{path}: written by a newer uky-patch ({version})",
                    path=where,
                    version=data.get("tool", phrase("of unknown version")),
                ),
                phrase(
                    "its format is {found}; this is uky-patch {version}, which reads up to {most}",
                    found=found,
                    version=__version__,
                    most=FORMAT,
                ),
                phrase("Upgrade uky-patch and run the command again."),
            )
        return replace(unpack(data), basis=_mapping(data["basis"]), tool=_text(data["tool"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedLedgerError(
            "ledger",
            phrase("{path}: damaged", path=where),
            phrase("no {key}", key=str(error)) if isinstance(error, KeyError) else message_of(error),
            phrase("Restore it from a copy. Or take the patched files back with git, and then remove .uky-patch."),
        ) from error


def dump_note(sha256: str, after: Ledger, before: Ledger) -> bytes:
    """The note of the pre-image `sha256` once `before` has become `after`."""
    states = [pack(ledger.of(_paths(ledger, sha256))) for ledger in (after, before)]
    distinct = [state for number, state in enumerate(states) if state["files"] and state not in states[:number]]
    data = {"format": FORMAT, "tool": __version__, "sha256": sha256, "states": distinct}
    return json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n"


def parse_note(sha256: str, content: bytes) -> Note | None:
    """The note of the pre-image `sha256`; None where `content` is no such note."""
    try:
        data = parse_json(content)
        if data["format"] != FORMAT or data["sha256"] != sha256:
            return None
        states = tuple(unpack(state) for state in data["states"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Note(sha256, tuple(state.of(_paths(state, sha256)) for state in states))


def _paths(ledger: Ledger, sha256: str) -> frozenset[str]:
    return frozenset(path for path, file in ledger.files.items() if file.original == sha256)


def folders_above(path: str) -> list[str]:
    """The folders of a path, from the outermost: `a` and `a/b` of `a/b/c.py`."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def folders_of_made(ledger: Ledger, there: Iterable[str]) -> set[str]:
    """The folders in which there are only files that records have made; `there` are the paths of all files."""
    made = {path for path, file in ledger.files.items() if file.original == ABSENT}
    others = {folder for path in there if path not in made for folder in folders_above(path)}
    return {folder for path in made for folder in folders_above(path)} - others


def with_folders(ledger: Ledger, made: Collection[str]) -> Ledger:
    """The ledger with those of some folders that the files which records have made lie in."""
    files = {
        path: replace(file, folders=tuple(folder for folder in folders_above(path) if folder in made))
        if file.original == ABSENT
        else file
        for path, file in ledger.files.items()
    }
    return replace(ledger, files=files)


def is_digest(value: object) -> bool:
    """Whether `value` can be the SHA-256 of a file."""
    return isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef")


def _file(entry: Mapping[str, Any]) -> PatchedFile:
    if not (is_digest(entry["original"]) and is_digest(entry["patched"])):
        raise ValueError(phrase("a file's digest is no SHA-256"))
    records = tuple(_text(id_) for id_ in entry["records"])
    mode = entry.get("mode")
    if mode is not None and type(mode) is not int:
        raise TypeError(phrase("{value} is no mode", value=repr(mode)))
    folders = tuple(_text(folder) for folder in entry.get("folders", ()))
    return PatchedFile(entry["original"], entry["patched"], records, mode, _text(entry.get("release", "")), folders)


def _record(id_: str, entry: Mapping[str, Any]) -> AppliedRecord:
    versions = {name: _text(version) for name, version in entry["versions"].items()}
    record = AppliedRecord(_text(entry["source"]), versions, _text(entry["at"]))
    if entry["digest"] != record.digest:
        raise ValueError(phrase("the text of record {id} does not have its digest", id=id_))
    return record


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(phrase("{value} is no text", value=repr(value)))
    return value


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(phrase("basis is no table"))
    return value
