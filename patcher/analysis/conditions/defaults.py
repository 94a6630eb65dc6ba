"""The values that a tree's own configuration has by default: yaml composed as hydra does, and its classes' fields."""

from __future__ import annotations

import ast
import posixpath
import re

from patcher.analysis.conditions.plain_job import CONFIGURATION
from patcher.analysis.forest import Forest
from patcher.worktree.python import UnreadableError, parse

_LINE = re.compile(r"^(?P<indent> *)(?P<item>- )?(?P<key>[^\s:#'\"][^:#]*?)\s*:(?:\s+(?P<value>.*))?$")
_ENTRY = re.compile(
    r"^ *- *(?:(?:override|optional) +)*(?P<group>[^\s:@]+)(?:@(?P<package>[^\s:]+))?(?: *: *(?P<name>[^\s#]+))?"
)
_FALLBACK = re.compile(r"\$\{oc\.(?:select|env):[^,{}]+,\s*([^{}]*)\}")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None, "{}": {}, "[]": ()}
_FOLDER = "verl/trainer/config"
_CLASSES = ("verl/workers/config", "verl/trainer/config")


def defaults_of(forest: Forest) -> dict[str, object]:
    """Dotted key -> value. A value that refers to another key is followed; one that is computed is left out."""
    found = _composed(forest, CONFIGURATION, "", 0)
    for key, value in list(found.items()):
        if isinstance(value, str) and "${" in value:
            followed = _followed(value, found)
            if followed is _COMPUTED:
                del found[key]
            else:
                found[key] = followed
    return found


_COMPUTED = object()


def _followed(value: str, found: dict[str, object]) -> object:
    if match := _FALLBACK.fullmatch(value):
        key = value[value.index(":") + 1 :].partition(",")[0].strip()
        other = found.get(key, _COMPUTED)
        if other is not _COMPUTED and not (isinstance(other, str) and "${" in other):
            return other
        return _scalar(match[1])
    if match := re.fullmatch(r"\$\{([\w.]+)\}", value):
        other = found.get(match[1], _COMPUTED)
        return _COMPUTED if isinstance(other, str) and "${" in other else other
    return _COMPUTED


def _composed(forest: Forest, file: str, package: str, depth: int) -> dict[str, object]:
    """The file's values under `package`, over those of the files in its `defaults`."""
    content = forest.content(file)
    if content is None or depth > 6:
        return {}
    own, entries = _read(content.decode(errors="replace"))
    mine = {f"{package}.{key}" if package else key: value for key, value in own.items()}
    found: dict[str, object] = {}
    folder = posixpath.dirname(file)
    said_self = False
    for group, where, name in entries:
        if group == "_self_":
            found |= mine
            said_self = True
            continue
        base = _FOLDER if group.startswith("/") else folder
        group = group.lstrip("/")
        other = posixpath.normpath(f"{base}/{group}/{name}" if name else f"{base}/{group}")
        inside = where if where is not None else (group.replace("../", "").replace("/", ".") if name else "")
        if inside == "_here_":
            inside = ""
        elif inside == "_global_":
            found |= _composed(forest, f"{other.removesuffix('.yaml')}.yaml", "", depth + 1)
            continue
        there = ".".join(part for part in (package, inside) if part)
        found |= _composed(forest, f"{other.removesuffix('.yaml')}.yaml", there, depth + 1)
    return found if said_self else found | mine


def _read(text: str) -> tuple[dict[str, object], list[tuple[str, str | None, str]]]:
    """The values by dotted key, and the entries of `defaults`: group, package, name. Lists are read as not empty."""
    values: dict[str, object] = {}
    entries: list[tuple[str, str | None, str]] = []
    path: list[tuple[int, str]] = []
    for raw in text.splitlines():
        line = raw.rstrip()
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        stripped = line.strip()
        if stripped.startswith("- ") or stripped == "-":
            if path and path[0][1] == "defaults" and (match := _ENTRY.match(line)):
                entries.append((match["group"], match["package"], (match["name"] or "").strip("'\"")))
            elif path:
                values[".".join(name for _, name in path)] = "[…]"
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        while path and path[-1][0] >= indent:
            path.pop()
        path.append((indent, match["key"].strip()))
        if path[0][1] == "defaults":
            continue
        value = re.sub(r"\s+#.*$", "", match["value"] or "").strip()
        if value.startswith("#"):
            value = ""
        dotted = ".".join(name for _, name in path)
        values.pop(dotted.rpartition(".")[0], None)
        if value != "???":
            values[dotted] = _scalar(value)
    return values, entries


def _scalar(text: str) -> object:
    text = text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def fields_of(forest: Forest) -> dict[str, object]:
    """Defaults of the configuration's classes by field name, where all classes agree."""
    found: dict[str, object] = {}
    differing: set[str] = set()
    for folder in _CLASSES:
        for path in sorted((forest.root / folder).glob("**/*.py")):
            content = forest.content(path.relative_to(forest.root).as_posix())
            for name, value in _fields(content or b""):
                if name in found and found[name] != value:
                    differing.add(name)
                found[name] = value
    return {name: value for name, value in found.items() if name not in differing}


def _fields(content: bytes) -> list[tuple[str, object]]:
    try:
        tree = parse(content)
    except UnreadableError:
        return []
    found: list[tuple[str, object]] = []
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            for node in owner.body:
                match node:
                    case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                        found.append((name, value))
                    case ast.AnnAssign(
                        target=ast.Name(id=name), value=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(v)))
                    ):
                        found.append((name, -v))
                    case _:
                        pass
    return found
