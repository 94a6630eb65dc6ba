"""YAML that somebody else wrote, read within limits, and hydra configs that are composed from such files.

The limits are on the size of a text, on how deep it nests, and on what its aliases stand for. Nine lines of
`b: [*a, *a, *a, *a, *a, *a, *a, *a, *a]`, each about the one before, stand for a thousand million nodes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from patcher.worktree import files

_MOST_CHARACTERS = 2 << 20
"""Characters of a text. The largest of verl has 40 kB."""
_DEEPEST_YAML = 60
"""How deep a text may nest: far more than a config needs, far less than what exhausts the stack of the constructor."""
_MOST_NODES = 200_000
"""Nodes, each as often as an alias stands for it."""
_LONGEST = 1000
"""Characters of a value that is read as a number where it looks like one."""


def documents(text: str) -> list[Any]:
    """The nodes of each document, with their places, as PyYAML composes them.

    Raises:
        yaml.YAMLError: it is no YAML, or more of it than is looked at.
    """
    import yaml

    _check(text)
    try:
        return list(yaml.compose_all(text, Loader=_loader()))
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from error


def load(text: str) -> Any:
    """The content of a text; None if it is no YAML, or more of it than is looked at."""
    import yaml

    try:
        _check(text, numbers=True)
        return yaml.load(text, Loader=_loader())  # noqa: S506
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):  # A key that is a list: TypeError.
        return None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check(text: str, *, numbers: bool = False) -> None:
    """Raises yaml.YAMLError. A parser's events need no stack, whatever the text nests."""
    import yaml

    if len(text) > _MOST_CHARACTERS:
        raise yaml.YAMLError(f"more than {_MOST_CHARACTERS} characters")
    sizes: dict[str, int] = {}
    nodes, open_anchors = [0], [""]
    try:
        for event in yaml.parse(text, Loader=_loader()):
            if isinstance(event, yaml.CollectionStartEvent):
                nodes.append(1)
                open_anchors.append(event.anchor or "")
                if len(nodes) > _DEEPEST_YAML:
                    raise _too_much("it nests too deeply", event)
            elif isinstance(event, yaml.CollectionEndEvent):
                size, anchor = nodes.pop(), open_anchors.pop()
                nodes[-1] += size
                sizes[anchor] = size
            elif isinstance(event, yaml.AliasEvent):
                # `a: &a [*a]` stands for itself without end.
                if event.anchor in open_anchors:
                    raise _too_much("an alias stands for what it is part of", event)
                nodes[-1] += sizes.get(event.anchor, 1)
            elif isinstance(event, yaml.ScalarEvent):
                nodes[-1] += 1
                sizes[event.anchor or ""] = 1
                # A plain scalar of a million digits becomes a number, which takes time that grows with the square of
                # its length.
                if numbers and not event.style and len(event.value) > _LONGEST:
                    raise _too_much("a value is too long", event)
            if nodes[-1] > _MOST_NODES:
                raise _too_much("its aliases stand for too much", event)
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from error


def _too_much(problem: str, event: Any) -> Exception:
    import yaml

    error: Exception = yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
    return error


Config: TypeAlias = dict[str, Any]

_HEADER = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_CHOICE = re.compile(r"\$\{([^}:]+)\}")


@dataclass(slots=True)
class Composition:
    """`groups`: what each config group of the defaults is set to, by its key (`actor@actor_rollout_ref.actor`)."""

    config: Config = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Configs that the defaults ask for and that are not there, or are no yaml."""


ReadText: TypeAlias = Callable[[str], "str | None"]
"""The text of a config by its path, `actor/dp_actor.yaml`; None if there is none that can be read."""
_DEEPEST_DEFAULTS = 30
"""How many configs may name one another in their defaults; they may do so in a circle."""
_MOST_CONFIGS = 2000


@dataclass(frozen=True, slots=True)
class _Default:
    """One entry of a defaults list. `group` is a folder, `package` a dotted path in the config."""

    key: str
    group: str
    name: str
    package: str | None
    override: bool
    optional: bool


class _Composer:
    def __init__(self, read: ReadText, picked: Mapping[str, str]) -> None:
        self._read = read
        self._picked = {group_key(key): name for key, name in picked.items()}
        self.made = Composition()
        self._added = self._depth = 0

    def add(self, path: str, package: str, *, primary: bool = False, optional: bool = False) -> None:
        """Merge the config at `path` (`actor/dp_actor`) into the config at `package`."""
        self._added += 1
        read = self.read(path) if self._added <= _MOST_CONFIGS and self._depth < _DEEPEST_DEFAULTS else None
        if read is None:
            if not optional:
                self.made.missing.append(path)
            return
        text, own = read
        header = _HEADER.search(text)
        # `# @package _global_` in the first lines puts the file's values at the top. Other headers say what the
        # defaults say.
        if header is not None and not primary:
            package = "" if header[1] == "_global_" else package
        entries = list(_entries(own.pop("defaults", None) or [], posixpath.dirname(path)))
        for entry in entries:
            # `override /model: big` in a deeper file changes what a file above picks, unless the command line picked
            # already.
            if entry.override:
                self._picked.setdefault(entry.key, entry.name)
        done = False
        for entry in entries:
            # `_self_` says where the file's own values come among its defaults; without it they come last and win.
            if entry.name == "_self_":
                done = True
                _merge(_at(self.made.config, package), own)
            elif not entry.override:
                self._follow(entry, package)
        if not done:
            _merge(_at(self.made.config, package), own)

    def _follow(self, entry: _Default, package: str) -> None:
        name = self._picked.get(entry.key, entry.name)
        # `optimizer/${model}`: the choice of another group is part of the name.
        name = _CHOICE.sub(lambda choice: self.made.groups.get(choice[1], choice[0]), name)
        if entry.key:
            self.made.groups[entry.key] = name
        # A group set to null takes no file.
        if name in ("null", "None", ""):
            return
        path = posixpath.normpath(posixpath.join(entry.group, name))
        self._depth += 1
        self.add(path, _joined(package, entry), optional=entry.optional)
        self._depth -= 1

    def read(self, path: str) -> tuple[str, Config] | None:
        text = self._read(f"{path.removesuffix('.yaml')}.yaml")
        content = load(text) if text is not None else None
        if text is None or not isinstance(content, dict | None):
            return None
        return text, content or {}


def compose(read: ReadText, name: str, picked: Mapping[str, str]) -> Composition | None:
    """The config `name` with groups picked as the command line does; None if there is no such config."""
    composer = _Composer(read, picked)
    if composer.read(name) is None:
        return None
    composer.add(name, "", primary=True)
    return composer.made


def below(*folders: Path) -> ReadText:
    """Reads from the first of some folders that has such a file, and no file outside of that folder."""

    def read(path: str) -> str | None:
        for folder in folders:
            if (folder / path).is_file():
                try:
                    return files.read_text(files.inside(folder, folder / path), files.SETTINGS_BYTES, errors="replace")
                except OSError:
                    return None
        return None

    return read


def group_key(written: str) -> str:
    """How hydra calls a config group: `engine` for `engine@engine`, as that is where the group's values go anyhow."""
    group, _, package = written.partition("@")
    return group if package == group.strip("/").replace("/", ".") else written


def _entries(defaults: object, home: str) -> Iterator[_Default]:
    for item in defaults if isinstance(defaults, list) else []:
        if isinstance(item, str):
            group, _, name = item.rpartition("/")
            name, _, package = name.partition("@")
            yield _Default("", posixpath.join(home, group), name, package or "_here_", override=False, optional=False)
        elif isinstance(item, dict):
            for written, value in item.items():
                words = str(written).split()
                key = group_key(words[-1])
                group, _, package = words[-1].partition("@")
                folder = group.lstrip("/") if group.startswith("/") else posixpath.normpath(posixpath.join(home, group))
                for name in value if isinstance(value, list) else [value]:
                    text = "null" if name is None else str(name)
                    yield _Default(
                        key, folder, text, package or None, override="override" in words, optional="optional" in words
                    )


def _joined(package: str, entry: _Default) -> str:
    if entry.package is None:
        own = entry.group.replace("/", ".")
    elif entry.package == "_here_":
        own = ""
    elif entry.package.startswith("_global_"):
        return entry.package.removeprefix("_global_").lstrip(".")
    else:
        own = entry.package
    return ".".join(filter(None, (package, own)))


def _at(config: Config, package: str) -> Config:
    for part in filter(None, package.split(".")):
        below = config.get(part)
        if not isinstance(below, dict):
            below = config[part] = {}
        config = below
    return config


def _merge(into: Config, other: Mapping[Any, Any]) -> None:
    for key, value in other.items():
        there = into.get(str(key))
        if isinstance(there, dict) and isinstance(value, dict):
            _merge(there, value)
        elif isinstance(value, dict):
            into[str(key)] = {}
            _merge(into[str(key)], value)
        else:
            into[str(key)] = value
