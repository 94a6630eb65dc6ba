"""Against an independent look at the syntax: nothing that is asked of an imported name goes unnoticed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.analysis.reading import read_file
from patcher.analysis.uses import CallOf, ImportOf, MemberOf
from patcher.packages.releases import sources
from tests.lanes import one_in

_PACKAGES = ("vllm", "transformers", "torch", "ray")


def _never_run(tree: ast.Module) -> set[int]:
    """Nodes under `if TYPE_CHECKING` and in annotations."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            parts += node.body
        elif isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
        for part in parts:
            found |= {id(inner) for inner in ast.walk(part)} if part is not None else set()
    return found


def _bound_otherwise(tree: ast.Module) -> set[str]:
    """Names that parameters, assignments or loops give another value somewhere."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return names | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _expected(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and kind of what must be a use: attributes and calls on the names that imports of the packages bind."""
    skipped = _never_run(tree)
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (getattr(node, "module", None) or alias.name).partition(".")[0] in _PACKAGES and alias.name != "*":
                    imported.add(alias.asname or alias.name.partition(".")[0])
                    if id(node) not in skipped:
                        yield alias.lineno, "import"
    imported -= _bound_otherwise(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield node.end_lineno or 0, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in imported:
            yield node.lineno, "call"


@pytest.mark.network
@pytest.mark.parametrize("version", one_in(3, ["0.9.1", "0.7.0", "0.5.0"]))
def test_every_reference_to_an_imported_name_is_covered(version: str) -> None:
    root = sources("verl", version)
    missed, seen = [], 0
    for path in sorted(Path(root).rglob("*.py")):
        content = path.read_bytes()
        if b"vllm" not in content:
            continue
        file = path.relative_to(root).as_posix()
        facts = read_file(content, file)
        noted: set[tuple[int, str]] = set()
        for use in facts.uses:
            match use.need:
                case ImportOf():
                    noted.add((use.line, "import"))
                case MemberOf(name=name):
                    noted.add((use.line, name))
                case CallOf():
                    noted.add((use.line, "call"))
                case _:
                    pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = set(_expected(ast.parse(content)))
        seen += len(wanted)
        missed += [(file, *each) for each in sorted(wanted - noted)]
    assert seen > 300
    assert missed == []


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("version", ["0.9.1", "0.8.0", "0.6.1", "0.5.0"])
def test_no_file_of_a_release_is_refused(version: str) -> None:
    root = Path(sources("verl", version))
    problems = {}
    for path in root.rglob("*.py"):
        facts = read_file(path.read_bytes(), path.relative_to(root).as_posix())
        if facts.problem:
            problems[facts.file] = facts.problem
    assert problems == {}
