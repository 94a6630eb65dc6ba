"""git_ignore.py for one host: its paths as constants that the fork's scripts import."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from patcher.errors import RecordError
from patcher.i18n import phrase
from patcher.profiles.forks_own import ForksOwn, evaluate, forks_own, is_path, literal, plain_value, refers, tail
from patcher.profiles.layout import Layout, derived, left_to_default
from patcher.profiles.rendered_file import Rendered, Text, fill, with_hash_line
from patcher.remote.agent.snapshots import newest_snapshot
from patcher.remote.host import Host
from patcher.worktree.python import parse

NAME = "git_ignore.py"
_CORE = ("PROJECT_ROOT", "MODEL_BASE", "DATA_OUTPUT_DIR")


def git_ignore(host: Host, where: Layout, tree_root: Path) -> Rendered:
    """The file for `host`; constants and functions of the fork's own file at `tree_root` are all there.

    Raises RecordError where the result would not be Python with a `validate_paths()`.
    """
    own = forks_own(tree_root)
    notes: list[Text] = []
    paths, values = _constants(own, where, notes)
    functions = _functions(own, {*paths, *(f"{name}_STR" for name in paths), *values}, notes)
    required = dict.fromkeys([*_CORE, *(name for name in where.given if name != "OUTPUT_BASE")])
    text = fill(
        "git_ignore.py.j2",
        host=host.name,
        paths=[(name, path, name in own.texts) for name, path in paths.items()],
        constants=list(values.items()),
        required=sorted(required),
        imports=own.imports if functions else (),
        functions=list(functions.values()),
        validates="validate_paths" in functions,
        aliases=own.aliases,
        newest=source_of(newest_snapshot),
    )
    _check(text)
    return Rendered(NAME, with_hash_line(text), 0o644, tuple(notes))


def source_of(function: Callable[..., object]) -> str:
    """A function of the tool's own as text, to stand in a rendered file."""
    return inspect.getsource(function).rstrip()


def _constants(own: ForksOwn, where: Layout, notes: list[Text]) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """All paths by constant, and the fork's constants that are none."""
    paths: dict[str, str] = dict(where.paths)
    values: dict[str, Any] = {}
    for name, node in own.constants.items():
        if name == "PROJECT_ROOT":
            continue
        known = {**{text: value for text, value in values.items() if isinstance(value, str)}, **paths}
        made = evaluate(node, known)
        if name in where.given:
            if refers(node) and made not in (None, paths[name]):
                template = (
                    "git_ignore.py: the profile sets {name} to {value}; by the fork's own file it would be {made}"
                )
                notes.append(phrase(template, name=name, value=paths[name], made=made))
        elif name not in paths and (plain := plain_value(node)) is not None:
            values[name] = plain
        elif isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set) and (held := literal(node)) is not None:
            values[name] = held
            notes.append(phrase("git_ignore.py: {name} is as in the fork's own file, with its paths", name=name))
        elif made is not None and not made.startswith("~") and (refers(node) or not made.startswith("/")):
            if made.startswith("/") and paths.get(name) != made:
                notes.append(left_to_default(name, made))
            paths[name] = made
        elif name in paths:
            if made != paths[name]:
                notes.append(left_to_default(name, paths[name]))
        elif not is_path(node):
            notes.append(phrase("git_ignore.py: {name} of the fork's own file is computed: left out", name=name))
        else:
            paths[name] = derived(name, tail(node), paths)
            notes.append(left_to_default(name, paths[name]))
    return paths, values


def _functions(own: ForksOwn, defined: set[str], notes: list[Text]) -> dict[str, str]:
    """The fork's functions that can stand in the rendered file: all that they name is there."""
    known = defined | set(own.functions) | {alias.name for alias in own.aliases} | set(dir(builtins))
    known |= {"os", "Path", "newest_snapshot", "newest_model", "REQUIRED", "__file__", "__name__"}
    for line in own.imports:
        known |= {item.asname or item.name.partition(".")[0] for item in ast.parse(line).body[0].names}  # type: ignore[attr-defined]
    found = {}
    for name, text in own.functions.items():
        tree = parse(text)
        bound = {at.id for at in ast.walk(tree) if isinstance(at, ast.Name) and not isinstance(at.ctx, ast.Load)}
        bound |= {at.arg for at in ast.walk(tree) if isinstance(at, ast.arg)}
        bound |= {at.name for at in ast.walk(tree) if isinstance(at, ast.ExceptHandler | ast.FunctionDef) and at.name}
        bound |= {
            item.asname or item.name.partition(".")[0]
            for at in ast.walk(tree)
            if isinstance(at, ast.Import | ast.ImportFrom)
            for item in at.names
        }
        lacking = {at.id for at in ast.walk(tree) if isinstance(at, ast.Name)} - bound - known
        if lacking:
            template = "git_ignore.py: {name}() of the fork's own file is left out: there is no {lacking}"
            notes.append(phrase(template, name=name, lacking=min(lacking)))
        else:
            found[name] = text
    return found


def _check(text: str) -> None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise RecordError(phrase("{file}: does not make Python", file="git_ignore.py.j2"), cause=str(error)) from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == "validate_paths" for node in tree.body):
        raise RecordError(phrase("{file}: makes no validate_paths()", file="git_ignore.py.j2"))
