"""How long `record` takes on a fork with edits in many files."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.clock import Trial, once
from bench.measures import Amount
from bench.trees import UKY_PATCH, fresh
from patcher.packages.releases import wheel

_FILES = 300
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.invalid")


def recording(folder: Path) -> Iterator[Amount]:
    """One edit in each file of verl that has a function to edit, up to 300."""
    tree = folder / "recorded"
    fresh(tree, wheel("verl", "0.9.1"))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "verl")):
        subprocess.run([*_GIT, *words], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    count = _edited(tree / "verl")
    asked = [UKY_PATCH, "--root", str(tree), "record", "--dry-run"]
    seconds = once(Trial(asked, exits=frozenset({1})))
    yield Amount(f"record of {count} changed files of verl 0.9.1", seconds, "s", 60)


def _edited(package: Path) -> int:
    """Put a statement, a condition or a comment into a function of each file; how many files there were."""
    count = 0
    for file in sorted(package.rglob("*.py")):
        text = file.read_text()
        functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
        statement = next((node.body[-1] for node in functions if len(node.body) > 1), None)
        if statement is None or count == _FILES:
            continue
        indent, lines = " " * statement.col_offset, text.splitlines(keepends=True)
        added = (
            f"site_hook({count})",
            f"if SITE_{count}:\n{indent}    return None",
            f"# our nodes\n{indent}site = {count}",
        )
        lines.insert(statement.lineno - 1, f"{indent}{added[count % 3]}\n")
        file.write_text("".join(lines))
        count += 1
    return count
