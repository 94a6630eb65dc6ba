"""The ledger, `.uky-patch/ledger.json`: which files are patched, by which records; and the notes beside pre-images.

The note `.uky-patch/originals/<sha256>.json` has the part of the ledger that is about this pre-image: paths, mode,
release, the digest after patching, and the records. So a lost ledger can be made again from the notes. A note is
written before the change, and stays if the change is taken back; so it has that part of the ledger twice, as it is
after the change and as it was before. Files that records have created have no pre-image. They share one note, under the
name ABSENT.
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
"""The end of a note's file name; before it stands the digest of the pre-image."""


@dataclass(frozen=True)
class PatchedFile:
    """A file of the tree that records have changed or created."""

    original: str
    """Its SHA-256 before the first record; ABSENT if a record has created it."""
    patched: str
    """Its SHA-256 after the last record."""
    records: tuple[str, ...]
    """The ids of the records, in the order in which they were applied."""
    mode: int | None = None
    """The permission bits of the original."""
    release: str = ""
    """The verl version that the original is from; "" if that is not known."""
    folders: tuple[str, ...] = ()
    """The folders that were made for it, outermost first. When the file goes, they go too if they are empty."""
    made: str = ""
    """The SHA-256 of what the records make, where the file says the same in another layout; "" where it is that."""


@dataclass(frozen=True)
class AppliedRecord:
    """A record as it was when it was applied."""

    source: str
    """Its TOML text."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the packages that it was applied for, by name."""
    at: str = ""
    """The UTC time in ISO 8601."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the text."""
        return digest_of(self.source.encode())


@dataclass(frozen=True)
class Ledger:
    """The patched files by path, and the applied records by id. False as a condition if nothing is applied."""

    files: Mapping[str, PatchedFile] = field(default_factory=dict)
    records: Mapping[str, AppliedRecord] = field(default_factory=dict)
    basis: Mapping[str, Any] = field(default_factory=dict)
    """What the planner keeps to see later that nothing has changed: any JSON values."""
    tool: str = __version__
    """The version of uky-patch that wrote it."""

    def __bool__(self) -> bool:
        return bool(self.files or self.records)

    def of(self, paths: Collection[str]) -> Ledger:
        """The part of the ledger about `paths`: these files, and the records in them."""
        files = {path: file for path, file in self.files.items() if path in paths}
        names = {name for file in files.values() for name in file.records}
        return Ledger(files, {name: record for name, record in self.records.items() if name in names}, tool=self.tool)

    def without(self, paths: Collection[str]) -> Ledger:
        """The part of the ledger about all other files; itself if `paths` is empty."""
        return self.of(self.files.keys() - set(paths)) if paths else self


class DamagedLedgerError(Refusal):
    """The ledger's file exists, but cannot be used."""


@dataclass(frozen=True)
class Note:
    """The note on one pre-image; see the module's docstring."""

    sha256: str
    """Of the pre-image."""
    states: tuple[Ledger, ...]
    """The part of the ledger about it: after the last change, then before it. One if both are the same."""


def now() -> str:
    """The UTC time in ISO 8601, in seconds."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def dump(ledger: Ledger) -> bytes:
    """The bytes of the ledger's file. The same ledger gives the same bytes."""
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
    """The inverse of `pack`. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    return Ledger(
        files={path: _file(entry) for path, entry in data["files"].items()},
        records={id_: _record(id_, entry) for id_, entry in data["records"].items()},
    )


def _packed(file: PatchedFile) -> dict[str, Any]:
    known = {"mode": file.mode, "release": file.release, "folders": list(file.folders), "made": file.made}
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
    """The bytes of the note on the pre-image `sha256`, for the change from the ledger `before` to `after`."""
    states = [pack(ledger.of(_paths(ledger, sha256))) for ledger in (after, before)]
    distinct = [state for number, state in enumerate(states) if state["files"] and state not in states[:number]]
    data = {"format": FORMAT, "tool": __version__, "sha256": sha256, "states": distinct}
    return json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n"


def parse_note(sha256: str, content: bytes) -> Note | None:
    """The note on the pre-image `sha256`; None if `content` is no such note."""
    try:
        data = parse_json(content)
        if data["format"] != FORMAT or data["sha256"] != sha256:
            return None
        states = tuple(unpack(state) for state in data["states"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Note(sha256, tuple(state.of(_paths(state, sha256)) for state in states))


def _paths(ledger: Ledger, sha256: str) -> frozenset[str]:
    """The paths of the files that have this pre-image."""
    return frozenset(path for path, file in ledger.files.items() if file.original == sha256)


def folders_above(path: str) -> list[str]:
    """The folders that a path lies in, outermost first: `a` and `a/b` for `a/b/c.py`."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def folders_of_made(ledger: Ledger, there: Iterable[str]) -> set[str]:
    """The folders in which all files were created by records. `there`: the paths of all files of the tree."""
    made = {path for path, file in ledger.files.items() if file.original == ABSENT}
    others = {folder for path in there if path not in made for folder in folders_above(path)}
    return {folder for path in made for folder in folders_above(path)} - others


def with_folders(ledger: Ledger, made: Collection[str]) -> Ledger:
    """The ledger in which each file that a record has created names those of the folders `made` that it lies in."""
    files = {
        path: replace(file, folders=tuple(folder for folder in folders_above(path) if folder in made))
        if file.original == ABSENT
        else file
        for path, file in ledger.files.items()
    }
    return replace(ledger, files=files)


def is_digest(value: object) -> bool:
    """Whether `value` has the form of a SHA-256 in lower-case hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef")


def _file(entry: Mapping[str, Any]) -> PatchedFile:
    if not (is_digest(entry["original"]) and is_digest(entry["patched"])):
        raise ValueError(phrase("a file's digest is no SHA-256"))
    records = tuple(_text(id_) for id_ in entry["records"])
    mode = entry.get("mode")
    if mode is not None and type(mode) is not int:
        raise TypeError(phrase("{value} is no mode", value=repr(mode)))
    folders = tuple(_text(folder) for folder in entry.get("folders", ()))
    release, made = (_text(entry.get(name, "")) for name in ("release", "made"))
    return PatchedFile(entry["original"], entry["patched"], records, mode, release, folders, made)


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
