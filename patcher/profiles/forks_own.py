"""Which constants and functions the fork's own git_ignore.py (or its example) defines, read with `ast`; nothing of it
runs.

Scripts of the fork import these names, so the rendered file must define them as well: `MODEL_BASE + "/llama"` needs a
`str`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from patcher.profiles.agent.write_files import is_untouched
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse

FILES = ("git_ignore.py.example", "git_ignore.py")
_NEWEST = re.compile(r"newest|latest|snapshot")
_OF_TEXT = frozenset({"join", "abspath", "realpath", "expanduser", "expandvars", "normpath", "dirname", "basename"})
"""Functions of os.path that give a `str`."""
_OURS = frozenset({"newest_snapshot", "newest_model", "REQUIRED"})


@dataclass(frozen=True, slots=True)
class Alias:
    """A function of the fork's that finds the newest snapshot; `text`: it gives a str, not a Path."""

    name: str
    text: bool


@dataclass(frozen=True, slots=True)
class ForksOwn:
    """Names of the fork's file: scripts import them, so the rendered file has them too."""

    constants: Mapping[str, ast.expr] = field(default_factory=dict)
    """By name, without the _STR exports of others."""
    aliases: tuple[Alias, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    """Source text of its other functions."""
    imports: tuple[str, ...] = ()
    """The import statements that these functions need."""
    texts: frozenset[str] = frozenset()
    """The constants that are a `str`, as in `MODEL_BASE = "/models"`; scripts add to them: `MODEL_BASE + "/llama"`."""


def forks_own(root: Path) -> ForksOwn:
    """What the files in the tree at `root` define, the example before the other; a file that is no Python counts for
    nothing, nor does one that was rendered here and is as it was."""
    found = ForksOwn()
    for name in FILES:
        try:
            text = files.read_text(files.inside(root, root / name), files.SOURCE_BYTES, encoding="utf-8-sig")
            tree = parse(text)
        except (OSError, ValueError, UnreadableError):
            continue
        # What this tool has rendered itself is no wish of the fork's: its paths would never change again.
        if not is_untouched(text):
            found = _both(found, _read(text, tree))
    return found


def _both(first: ForksOwn, second: ForksOwn) -> ForksOwn:
    names = {alias.name for alias in first.aliases}
    return ForksOwn(
        {**first.constants, **{name: node for name, node in second.constants.items() if name not in first.constants}},
        (*first.aliases, *(alias for alias in second.aliases if alias.name not in names)),
        {**second.functions, **first.functions},
        tuple(dict.fromkeys((*first.imports, *second.imports))),
        first.texts | (second.texts - set(first.constants)),
    )


def _read(text: str, tree: ast.Module) -> ForksOwn:
    constants: dict[str, ast.expr] = {}
    functions: dict[str, ast.FunctionDef] = {}
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                constants[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name.isupper():
                constants[name] = value
            case ast.FunctionDef(name=name) if name not in _OURS:
                functions[name] = node
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.Import() | ast.ImportFrom():
                imports.append(node)
    aliases = {name for name in functions if _NEWEST.search(name.lower())}
    plain = {
        name: value
        for name, value in constants.items()
        if name not in _OURS and not (name.endswith("_STR") and name.removesuffix("_STR") in constants)
    }
    carried = {name: node for name, node in functions.items() if name not in aliases}
    used = {at.id for node in carried.values() for at in ast.walk(node) if isinstance(at, ast.Name)}
    return ForksOwn(
        plain,
        tuple(Alias(name, _gives_text(functions[name])) for name in sorted(aliases)),
        {name: _source(text, node) for name, node in carried.items()},
        tuple(ast.unparse(node) for node in imports if _binds(node) & used),
        frozenset(name for name, node in plain.items() if _is_text(node, constants)),
    )


def _is_text(node: ast.expr, constants: Mapping[str, ast.expr]) -> bool:
    """Whether an expression makes a `str` rather than a Path, as far as its syntax tells."""
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id="str") | ast.Attribute(attr="getenv" | "fspath" | "as_posix")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="path"), attr=name)):
            return name in _OF_TEXT  # os.path.join(…)
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get" | "setdefault")):
            return True
        case ast.Subscript(value=ast.Attribute(attr="environ")):
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(left, constants) or _is_text(right, constants)
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            return True
        case ast.Name(id=name) if name in constants and constants[name] is not node:
            return name.endswith("_STR") or _is_text(constants[name], {k: v for k, v in constants.items() if k != name})
        case _:
            return False


def _source(text: str, node: ast.FunctionDef) -> str:
    decorators = "".join(f"@{ast.unparse(item)}\n" for item in node.decorator_list)
    return decorators + (ast.get_source_segment(text, node) or "")


def _binds(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {(item.asname or item.name).partition(".")[0] for item in node.names}


def _gives_text(node: ast.FunctionDef) -> bool:
    if isinstance(node.returns, ast.Name):
        return node.returns.id == "str"
    for at in ast.walk(node):
        match at:
            case ast.Return(value=ast.JoinedStr() | ast.Call(func=ast.Name(id="str"))):
                return True
            case ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Attribute(attr="path"), attr="join"))):
                return True
    return False


def evaluate(node: ast.expr, paths: Mapping[str, str]) -> str | None:
    """The path or text that an expression of constants, Path, `/` and texts comes to; None if it is anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return paths.get(name, paths.get(name.removesuffix("_STR")))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = evaluate(left, paths), evaluate(right, paths)
            return first + second if first is not None and second is not None else None
        case ast.Call(func=ast.Name(id="Path" | "str") | ast.Attribute(attr="Path"), args=[one], keywords=[]):
            return evaluate(one, paths)
        case ast.Call(func=ast.Name(id="Path") | ast.Attribute(attr="join" | "joinpath" | "Path"), keywords=[]):
            return _joined(node, paths)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            first, second = evaluate(left, paths), evaluate(right, paths)
            return str(PurePosixPath(first, second)) if first is not None and second is not None else None
        case ast.Attribute(value=value, attr="parent"):
            inner = evaluate(value, paths)
            return str(PurePosixPath(inner).parent) if inner is not None else None
        case ast.JoinedStr(values=values):
            parts = [evaluate(v.value if isinstance(v, ast.FormattedValue) else v, paths) for v in values]
            return "".join(part for part in parts if part is not None) if None not in parts else None
        case _:
            return None


def _joined(call: ast.Call, paths: Mapping[str, str]) -> str | None:
    first = []
    if isinstance(call.func, ast.Attribute) and call.func.attr == "joinpath":
        first = [evaluate(call.func.value, paths)]
    parts = [*first, *(evaluate(part, paths) for part in call.args)]
    known = [part for part in parts if part is not None]
    return str(PurePosixPath(*known)) if known and len(known) == len(parts) else None


def refers(node: ast.expr) -> bool:
    """Whether an expression builds on other constants."""
    return any(isinstance(at, ast.Name) and at.id.isupper() for at in ast.walk(node))


def literal(node: ast.expr) -> object | None:
    """The value of an expression without names and calls; None for any other."""
    try:
        return ast.literal_eval(node)  # type: ignore[no-any-return]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def plain_value(node: ast.expr) -> object | None:
    """A value that is the same on every host; None for anything else.

    A number, a flag, a text without a place of one machine in it: `"mcq"`, `"Qwen/Qwen2.5-VL-3B-Instruct"`,
    `"https://hf-mirror.com"`, `"data/train.parquet"`; not `"/data"`, `"~/data"`, `["/data/a.parquet"]`.
    """
    value = literal(node)
    texts = [at.value for at in ast.walk(node) if isinstance(at, ast.Constant) and isinstance(at.value, str)]
    if any(text.startswith(("/", "~")) for text in texts):
        return None
    return value if isinstance(value, str | int | float | bool | list | tuple | dict) else None


def is_path(node: ast.expr) -> bool:
    """Whether an expression is one of paths: it names Path, or a text with a slash."""
    for at in ast.walk(node):
        match at:
            case ast.Name(id="Path") | ast.Attribute(attr="path" | "Path" | "environ"):
                return True
            case ast.Constant(value=str(text)) if "/" in text:
                return True
    return refers(node)


def tail(node: ast.expr) -> str:
    """The last part of the path that an expression spells, empty where it spells none."""
    texts = [at.value for at in ast.walk(node) if isinstance(at, ast.Constant) and isinstance(at.value, str)]
    return PurePosixPath(texts[-1]).name if texts else ""
