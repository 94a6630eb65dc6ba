"""Forks made of real releases: shipped records by hand in three shapes, and a hundred other edits. Nothing is lost."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.packages.releases import wheel
from patcher.rewrite.marker import without_markers
from patcher.rewrite.texts import same, without_ids
from tests.lanes import ALL_CASES

pytestmark = [pytest.mark.network, pytest.mark.slow]
VERSIONS = ("--assume", "vllm==0.20.2", "--assume", "transformers==4.57.6", "--assume", "triton==3.6.0")
SCRIPT = """\
set -xeu
export NCCL_DEBUG=WARN
NODES=1
python3 -m verl.trainer.main_ppo \\
    trainer.nnodes=$NODES \\
    trainer.total_epochs=15
"""


def git(root: Path, *arguments: str) -> None:
    user = ("-c", "user.name=A User", "-c", "user.email=user@example.invalid")
    subprocess.run(["git", *user, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def base_of(version: str, root: Path) -> Path:
    shutil.copytree(wheel("verl", version) / "verl", root / "verl", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "examples").mkdir()
    for number in range(5):
        (root / f"examples/run_{number}.sh").write_text(SCRIPT)
    (root / ".gitignore").write_text(".uky-patch*\n")
    git(root, "init", "-q", "-b", "fork")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", f"verl {version}")
    return root


def unmarked(text: str) -> str:
    return without_markers(text, "Uky")


def hand_marked(text: str) -> str:
    return re.sub(r"# Uky\[[^\]]*\]", "# Uky", text)


def marked_above(text: str) -> str:
    """One comment above each run of lines that a record has made, the old lines dropped."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        marked = "# Uky[" in line
        if marked and not inside:
            lines.append(f"{line[: len(line) - len(line.lstrip())]}# Uky: for our vLLM\n")
        inside = marked
        if not (marked and line.lstrip().startswith("#")):
            lines.append(re.sub(r"[ \t]*# Uky\[[^\]]*\]", "", line))
    return "".join(lines)


def statements(tree: ast.AST) -> list[tuple[ast.FunctionDef, ast.stmt]]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and len(node.body) > 2)
    return [(node, node.body[1]) for node in found if node.body[1].lineno > (node.body[0].end_lineno or 0)]


def seeded(root: Path, count: int) -> Iterator[str]:
    """Make `count` edits of a dozen kinds, each in a file of its own; yields the files."""
    chosen = random.Random(7)
    files = sorted((root / "verl").rglob("*.py"))
    chosen.shuffle(files)
    made = 0
    for file in files:
        text = file.read_text()
        places = statements(ast.parse(text))
        if made == count or not places or "Uky" in text:
            continue
        function, statement = chosen.choice(places)
        lines = text.splitlines(keepends=True)
        indent, at = " " * statement.col_offset, statement.lineno - 1
        match made % 8:
            case 0:
                lines.insert(at, f"{indent}site_hook_{made}({function.name!r})\n")
            case 1:
                lines.insert(at, f"{indent}if SITE_{made}:\n{indent}    return None\n")
            case 2:
                lines[at:at] = [f"{indent}# our nodes, {made}\n", f"{indent}site_{made} = 1\n"]
            case 3:
                lines.insert(0, f"import site_package_{made}\n") if not text.startswith(("#", '"')) else lines.append(
                    f"\n\ndef site_helper_{made}():\n    return {made}\n"
                )
            case 4:
                lines[at : statement.end_lineno] = [f"{indent}site_value_{made} = site_default_{made}\n"]
            case 5:
                end = function.end_lineno or at
                below = " " * function.col_offset
                lines[end:end] = [f"\n{below}def site_{made}(self, *, flag=False):\n{below}    return flag\n"]
            case 6:
                del lines[at : statement.end_lineno]
            case _:
                lines[at : statement.end_lineno] = [
                    f"{indent}try:\n",
                    *(f"    {line}" if line.strip() else line for line in lines[at : statement.end_lineno]),
                    f"{indent}except SiteError_{made}:\n{indent}    pass\n",
                ]
        after = "".join(lines)
        try:
            ast.parse(after)
        except SyntaxError:
            continue
        file.write_text(after)
        made += 1
        yield file.relative_to(root).as_posix()
    assert made == count


def edit_settings(root: Path) -> Iterator[str]:
    for number in range(3):
        script = root / f"examples/run_{number}.sh"
        script.write_text(script.read_text().replace("NODES=1", "NODES=4").replace("total_epochs=15", "total_epochs=2"))
        yield f"examples/run_{number}.sh"
    for path in sorted((root / "verl/trainer/config").rglob("*.yaml"))[:3]:
        lines = path.read_text().splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if re.search(r": (true|false|null|\d+)$", line, re.IGNORECASE))
        lines[at] = re.sub(r": \w+$", ": 77", lines[at])
        path.write_text("".join(lines))
        yield path.relative_to(root).as_posix()


SHAPES: tuple[Callable[[str], str], ...] = (unmarked, hand_marked, marked_above)


@pytest.mark.parametrize("version", ["0.6.1", "0.7.1"] if ALL_CASES else ["0.7.1"])
def test_every_edit_is_accounted_for(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = base_of(version, tmp_path / "fork")
    assert run(["--root", str(root), *VERSIONS, "apply", "--allow-dirty"]) in (0, 1)
    patched = [path for path in sorted(root.rglob("*.py")) if "# Uky[" in path.read_text()]
    assert patched
    for number, path in enumerate(patched):
        path.write_text(SHAPES[number % len(SHAPES)](path.read_text()))
    shutil.rmtree(root / ".uky-patch")
    edited = [*seeded(root, 94), *edit_settings(root)]
    capsys.readouterr()
    assert run(["--root", str(root), *VERSIONS, "--format", "json", "record", "--yes"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["left"] == []
    assert {file for one in report["records"] for file in one["files"]} >= set(edited)
    # Values of YAML and variables of scripts count as well as edits of Python.
    assert sum(one["specific"] for one in report["records"]) >= 0.9 * len(report["records"])
    # The records on the base, made by `apply`, are the fork.
    fork = {path: path.read_text() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}
    git(root, "checkout", "--", ".")
    with (root / "uky-patch.toml").open("a") as settings:
        settings.write('style = "clean"\n')
    ids = [one["id"] for one in report["records"]] + report["known"]
    assert run(["--root", str(root), *VERSIONS, "apply", *ids]) in (0, 1)
    for path, text in fork.items():
        if path.suffix in (".py", ".yaml", ".sh"):
            made = without_ids(path.read_text(), "Uky")
            assert same(made, without_markers(text, "Uky"), path.name), path
