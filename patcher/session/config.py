"""The fork's own settings, `uky-patch.toml` at the tree's root: its keys, their defaults, and what is a mistake in
them.

All mistakes are reported at once, each with its line. Folders that it names (`patches`, `symptoms`) must lie in the
tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.errors import RecordError, UsageError, message_of
from patcher.homes import expanded
from patcher.i18n import Phrases, phrase
from patcher.worktree import files
from patcher.worktree.files import leads_into

if TYPE_CHECKING:
    from patcher.packages.chosen_interpreter import NamedPython
    from patcher.rewrite.edits import Style
    from patcher.tables.mistakes import KeyPath
    from patcher.tables.shapes import Mistakes, Shape

NAME = "uky-patch.toml"
STYLES: tuple[Style, ...] = ("comment", "clean")
"""Spelled out, because `patcher.rewrite.edits` takes a tenth of the time of a `status` to import."""
_RECORD_KEYS = ("enable", "disable")
_PACKAGE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Findings of `check` that the fork lives with. `*` stands for any characters."""

    symbol: str
    reason: str
    file: str = "*"


@dataclass(frozen=True, slots=True)
class Config:
    """What a fork sets for itself. Everything has a default, so the file may be absent."""

    package: str = "verl"
    """The import name that the fork gave verl's package."""
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
        raise RecordError(phrase("{path}: cannot be read", path=path), cause=message_of(error)) from error
    return _parse(text, path, root)


def require_known(config: Config, ids: Collection[str]) -> None:
    """Raise RecordError if `enable` or `disable` names a record that does not exist. `ids` are those of all records."""
    named = {key: [name for name in getattr(config, key) if not name.startswith("tag:")] for key in _RECORD_KEYS}
    unknown = {key: [name for name in names if name not in ids] for key, names in named.items()}
    if not any(unknown.values()) or config.root is None:
        return
    # As difflib and tomllib, these are not imported where there is nothing wrong: `status` is to answer at once.
    from difflib import get_close_matches

    from patcher.tables.mistakes import mistakes_error
    from patcher.tables.shapes import Mistakes

    path = config.root / NAME
    mistakes = Mistakes(str(path), files.read_text(files.inside(config.root, path), files.SETTINGS_BYTES))
    for key, names in unknown.items():
        for name in names:
            near = ", ".join(get_close_matches(name, ids, n=3))
            text = phrase("there is no record {name!r}", name=name)
            near_text = phrase("there is no record {name!r}; did you mean {near}?", name=name, near=near)
            mistakes.note((key,), near_text if near else text)
    title = phrase("mistakes in {name}: {count}", count=len(mistakes.found), name=path.name)
    raise mistakes_error(title, mistakes.found, phrase("The records are shown by: uky-patch list"))


def _parse(text: str, path: Path, root: Path) -> Config:
    # Most trees have no uky-patch.toml, and do without tomllib and what checks tables.
    from patcher.tables.mistakes import mistakes_error
    from patcher.tables.shapes import read_file

    found = read_file(text, path, file_shape(root))
    if isinstance(found, Config):
        return found
    if [mistake.key for mistake in found] == [""]:
        raise RecordError(found[0].sentence)
    raise mistakes_error(phrase("mistakes in {name}: {count}", count=len(found), name=path.name), found)


def file_shape(root: Path) -> Shape[Config]:
    """What `root`/uky-patch.toml may hold."""
    from patcher.tables.shapes import Field, Matching, Shape, choice, mapping, tables, text, texts

    def lies_in_tree(folder: str) -> None:
        """By no `..` and no link does it lead out of it: the tree names no other data."""
        if "\0" in folder or not leads_into(root / folder, root):
            raise ValueError(phrase("{folder!r} must lie in the tree", folder=folder))

    def make(patches: tuple[str, ...], symptoms: tuple[str, ...], **others: Any) -> Config:
        below = [tuple(root / folder for folder in folders) for folders in (patches, symptoms)]
        return Config(patches=below[0], symptoms=below[1], **others, root=root)

    acceptance = Shape(Acceptance, {"symbol": text(), "file": text(default="*"), "reason": text()})
    word = Matching(_WORD, "{marker!r} must be one word of letters, digits, '-' and '_', a letter first", "marker")
    package = Matching(_PACKAGE, "{package!r} must be the name of a package that Python can import", "package")
    fields = {
        "package": text(package, default="verl"),
        "marker": text(word, default="Uky"),
        "style": choice(STYLES, default="comment"),
        "python": Field(partial(_python, root), None, None, schema=text().schema),
        "patches": texts(lies_in_tree),
        "symptoms": texts(lies_in_tree),
        "enable": texts(),
        "disable": texts(),
        "accept": tables(acceptance),
        "pins": mapping(lambda _: None, _not_blank),
        "hosts": Field(_hosts, {}, {}),
    }
    return Shape(make, fields)


def _not_blank(_: str, version: str) -> None:
    if not version.strip():
        raise ValueError(phrase("must not be empty"))


def _hosts(mistakes: Mistakes, path: KeyPath, written: Any) -> Mapping[str, Any]:
    from patcher.remote.host_table import check_hosts

    check_hosts(mistakes, path, written)
    return written if isinstance(written, dict) else {}


def _python(root: Path, mistakes: Mistakes, path: KeyPath, written: Any) -> NamedPython | None:
    """The interpreter that trains; a relative path is one from the root. It may lie outside: /opt/venv/bin/python does.

    Whether there is one is looked at when it is needed, as `list` and a `--python` do not need it.
    """
    from patcher.packages.chosen_interpreter import NamedPython
    from patcher.tables.shapes import text

    named = text().read(mistakes, path, written)
    if not named:
        return None
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in named):
        mistakes.note(path, "must have no line break and no other control character")
        return None
    try:
        return NamedPython(root / expanded(named), f"{NAME}:{mistakes.line(path)}", root)
    except UsageError as error:
        mistakes.note(path, Phrases((error.title,)))
        return None
