"""The fork's own settings, `uky-patch.toml` at the tree's root: the one place that reads them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from patcher.error_messages import said
from patcher.errors import RecordError, UsageError
from patcher.homes import expanded
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.model import NamedPython
from patcher.records.model import Style
from patcher.worktree import files
from patcher.worktree.within import leads_into

if TYPE_CHECKING:
    from patcher.tables.mistakes import Checker

NAME = "uky-patch.toml"
_KEYS = ("marker", "style", "python", "patches", "symptoms", "enable", "disable", "accept", "pins", "hosts")
_RECORD_KEYS = ("enable", "disable")
_MARKER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Findings of `check` that the fork lives with. `*` stands for any characters."""

    symbol: str
    reason: str
    file: str = "*"


@dataclass(frozen=True, slots=True)
class Config:
    """What a fork sets for itself. Everything has a default, so the file may be absent."""

    marker: str = "Uky"
    style: Style = "comment"
    patches: tuple[Path, ...] = ()
    """Extra record folders, absolute."""
    symptoms: tuple[Path, ...] = ()
    """Extra symptom folders, absolute."""
    enable: tuple[str, ...] = ()
    """Record ids and `tag:NAME`s switched on here that are off by default."""
    disable: tuple[str, ...] = ()
    accept: tuple[Acceptance, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    python: NamedPython | None = None
    """The interpreter that trains here."""
    root: Path | None = field(default=None, compare=False)
    """The tree that says so."""
    text: str = field(default="", compare=False, repr=False)
    """The file's own text, for mistakes that are found later to name their line."""


def load(root: Path) -> Config:
    """Read `root`/uky-patch.toml. Raises RecordError with all of its mistakes."""
    path = root / NAME
    try:
        text = files.read_text(files.inside(root, path), files.SETTINGS_BYTES)
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(phrase("{path}: cannot be read", path=path), cause=said(error)) from error
    return _parse(text, path, root)


def require_known(config: Config, ids: Collection[str]) -> None:
    """Raise RecordError if `enable` or `disable` names a record that does not exist. `ids` are those of all records."""
    named = {key: [name for name in getattr(config, key) if not name.startswith("tag:")] for key in _RECORD_KEYS}
    unknown = {key: [name for name in names if name not in ids] for key, names in named.items()}
    if not any(unknown.values()) or config.root is None:
        return
    from difflib import get_close_matches  # Only for a mistake: 6 ms.

    from patcher.tables.mistakes import Checker

    path = config.root / NAME
    check = Checker(str(path), config.text)
    for key, names in unknown.items():
        for name in names:
            near = ", ".join(get_close_matches(name, ids, n=3))
            text = phrase("there is no record {name!r}", name=name)
            meant = phrase("there is no record {name!r}; did you mean {near}?", name=name, near=near)
            check.note((key,), meant if near else text)
    raise _mistakes(check, path, phrase("The records are shown by: uky-patch list"))


def _mistakes(check: Checker, path: Path, advice: Phrase | str = "") -> RecordError:
    return RecordError(
        phrase("mistakes in {name}: {count}", count=len(check.mistakes), name=path.name),
        cause=Phrases(tuple(mistake.told for mistake in check.mistakes), "\n  "),
        advice=advice,
    )


def _parse(text: str, path: Path, root: Path) -> Config:
    # Most trees have no uky-patch.toml: reading TOML and its mistakes costs 20 ms (tomllib, difflib, inspect).
    from patcher.tables.mistakes import Checker, Mistake
    from patcher.tables.toml import decode

    data = decode(text, path)
    if isinstance(data, Mistake):
        raise RecordError(data.told)
    check = Checker(str(path), text)
    check.table(data, (), _KEYS)
    marker = check.string(data, (), "marker") if "marker" in data else "Uky"
    if marker and not _MARKER.fullmatch(marker):
        rule = "{marker!r} must be one word of letters, digits, '-' and '_', a letter first"
        check.note(("marker",), phrase(rule, marker=marker))
    style = check.choice(data, (), "style", get_args(Style)) if "style" in data else "comment"
    pins = check.table(
        data.get("pins", {}), ("pins",), data.get("pins", {}) if isinstance(data.get("pins"), dict) else ()
    )
    for name in pins:
        check.string(pins, ("pins",), name)
    hosts = data.get("hosts", {})
    if hosts != {}:
        from patcher.remote.host_table import check_hosts  # A tree without hosts does not pay for them.

        check_hosts(hosts, check)
    config = Config(
        marker=marker or "Uky",
        style=style or "comment",  # type: ignore[arg-type]
        patches=tuple(_folders(data, check, "patches", root)),
        symptoms=tuple(_folders(data, check, "symptoms", root)),
        enable=check.strings(data, (), "enable"),
        disable=check.strings(data, (), "disable"),
        accept=tuple(_acceptances(data, check)),
        pins=pins,
        python=_python(data, check, root),
        hosts=hosts if isinstance(hosts, dict) else {},
        root=root,
        text=text,
    )
    if check.mistakes:
        raise _mistakes(check, path)
    return config


def _python(data: Mapping[str, Any], check: Checker, root: Path) -> NamedPython | None:
    """The interpreter that trains; a relative path is one from the root. It may lie outside: /opt/venv/bin/python does.

    Whether there is one is looked at when it is needed, as `list` and a `--python` do not need it.
    """
    written = check.string(data, (), "python") if "python" in data else None
    if written is None:
        return None
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in written):
        check.note(("python",), "must have no line break and no other control character")
        return None
    try:
        return NamedPython(root / expanded(written), f"{NAME}:{check.line(('python',))}", root)
    except UsageError as error:
        check.note(("python",), Phrases((error.title,)))
        return None


def _folders(data: Mapping[str, Any], check: Checker, key: str, root: Path) -> Iterator[Path]:
    """Folders in the tree. One that leads out of it, by `..` or a link, is a mistake: the tree names no other data."""
    for folder in check.strings(data, (), key):
        if "\0" not in folder and leads_into(root / folder, root):
            yield root / folder
        else:
            check.note((key,), phrase("{folder!r} must lie in the tree", folder=folder))


def _acceptances(data: Mapping[str, Any], check: Checker) -> Iterator[Acceptance]:
    for path, item in check.tables(data, "accept"):
        table = check.table(item, path, ("symbol", "file", "reason"))
        symbol, reason = check.string(table, path, "symbol"), check.string(table, path, "reason")
        file = check.string(table, path, "file") if "file" in table else "*"
        if symbol and reason and file:
            yield Acceptance(symbol, reason, file)
