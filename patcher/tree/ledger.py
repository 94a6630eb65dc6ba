"""Which files are patched, by which records, and from what: `.uky-patch/ledger.json`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from patcher import __version__
from patcher.errors import TreeError, message_of
from patcher.i18n import phrase
from patcher.tree.source import digest
from patcher.worktree.json_text import parse_json

FORMAT = 1


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """A file's digest before the first record and after the last, and the records in between, in order."""

    original: str
    patched: str
    records: tuple[str, ...]
    mode: int | None = None
    """The permission bits of the original."""
    release: str = ""
    """The verl version that the original is of; "" where that is not known."""


@dataclass(frozen=True, slots=True)
class AppliedRecord:
    """A record as it was when it was applied: `source` is its TOML text, `at` the UTC time in ISO 8601."""

    source: str
    versions: Mapping[str, str] = field(default_factory=dict)
    at: str = ""

    @property
    def digest(self) -> str:
        return digest(self.source.encode())


@dataclass(frozen=True, slots=True)
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


class DamagedLedgerError(TreeError):
    """The ledger's file is there and says nothing that can be used."""


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
    known = {"mode": file.mode, "release": file.release}
    told = {name: value for name, value in known.items() if value not in (None, "")}
    return {"original": file.original, "patched": file.patched, "records": list(file.records), **told}


def parse(content: bytes, where: str) -> Ledger:
    """Read a ledger's file.

    Raises:
        DamagedLedgerError: it is damaged.
        TreeError: it is of a format newer than this tool's.
    """
    try:
        data = parse_json(content)
        found = data["format"]
        if type(found) is not int:
            raise TypeError(phrase("format is no number"))
        if found > FORMAT:
            raise TreeError(
                phrase(
                    "{path}: written by a newer uky-patch ({version})",
                    path=where,
                    version=data.get("tool", phrase("of unknown version")),
                ),
                cause=phrase(
                    "its format is {found}; this is uky-patch {version}, which reads up to {most}",
                    found=found,
                    version=__version__,
                    most=FORMAT,
                ),
                advice="Upgrade uky-patch and run the command again.",
            )
        return replace(unpack(data), basis=_mapping(data["basis"]), tool=_text(data["tool"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedLedgerError(
            phrase("{path}: damaged", path=where),
            cause=phrase("no {key}", key=error) if isinstance(error, KeyError) else message_of(error),
            advice="Restore it from a copy. Or take the patched files back with git, and then remove .uky-patch.",
        ) from error


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
    return PatchedFile(entry["original"], entry["patched"], records, mode, _text(entry.get("release", "")))


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
