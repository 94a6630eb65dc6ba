"""What is kept of a tree's files for the next command: the same as reading gives, and never of another text."""

from __future__ import annotations

import ast
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.analysis import kept_readings, project, reading
from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.project import Project, ReadingCache
from patcher.packages.releases import kept as releases_kept

REPOSITORY = Path(__file__).parents[2]
FILES = {
    "verl/__init__.py": "",
    "verl/a.py": "from vllm import LLM\n\nVALUE = 3 + 4j\n\ndef run(size=...):\n    return LLM(size)\n",
    "verl/b.py": "import vllm\nif vllm.__version__ > '0.8':\n    from vllm.new import X\nelse:\n    X = None\n",
    "verl/c.py": "def broken(:\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    for name, text in FILES.items():
        (tmp_path / "fork" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fork" / name).write_text(text)
    return tmp_path / "fork"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The beginnings of the texts that were parsed since it was last asked."""
    texts: list[str] = []
    parse = project.parse

    def noted(source: bytes) -> ast.Module:
        texts.append(source.decode()[:12])
        return parse(source)

    monkeypatch.setattr(project, "parse", noted)

    def told() -> list[str]:
        found, texts[:] = sorted(texts), []
        return found

    return told


def told_of(root: Path, top: str = "verl", *, apart: bool = False) -> str:
    """All that the files say, as one text."""
    asked = Project(root, known=ReadingCache(kept=KeptReadings([root], apart=apart)), top=top, words=("vllm",))
    files = sorted(path.relative_to(root).as_posix() for path in (root / top).rglob("*.py"))
    found = [(asked.facts(file), asked.summary(file)) for file in files]
    asked.keep()
    return repr(found)


def kept(tree: Path) -> list[Path]:
    return list((tree.parent / "cache" / "readings").iterdir())


def test_a_second_command_reads_what_has_changed_alone(tree: Path, parsed: Callable[[], list[str]]) -> None:
    first = told_of(tree)
    assert len(parsed()) == len(FILES)
    assert told_of(tree) == first
    assert parsed() == []
    (tree / "verl/a.py").write_text("from vllm.x import Y\n")
    assert "vllm.x" in told_of(tree)
    assert parsed() == ["from vllm.x "]
    (tree / "verl/a.py").write_text(FILES["verl/a.py"])
    assert told_of(tree) == first
    assert parsed() == []
    assert not [path for path in tree.rglob("*") if path.is_file() and path.suffix != ".py"]


def test_what_is_kept_of_this_programs_own_files_says_the_same(tree: Path) -> None:
    (tree / "patcher").symlink_to(REPOSITORY / "patcher" / "analysis")
    assert told_of(tree, "patcher") == told_of(tree, "patcher")


class Foreign:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return (os.mkdir, ("ran",))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"\x78\x01", b"\x78\x02"),
        lambda _: b"",
        lambda _: pickle.dumps(dict.fromkeys(range(3), b"x")),
        lambda _: pickle.dumps(Foreign()),
    ],
)
def test_damaged_and_foreign_readings_are_ignored(
    tree: Path, damage: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree.parent)
    first = told_of(tree)
    (file,) = kept(tree)
    file.write_bytes(damage(file.read_bytes()))
    assert told_of(tree) == first
    assert not Path("ran").exists()


def test_a_file_that_others_may_write_to_is_not_believed(tree: Path, parsed: Callable[[], list[str]]) -> None:
    told_of(tree)
    kept(tree)[0].chmod(0o666)
    parsed()
    told_of(tree)
    assert len(parsed()) == len(FILES)


def test_what_is_left_as_bytes_says_the_same(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "verl/b.py").write_text(FILES["verl/a.py"])
    first = told_of(tree)
    monkeypatch.setattr(releases_kept, "_MOST_HELD", 1)
    assert told_of(tree, apart=True) == first  # From the disk, as it was packed before.
    shutil.rmtree(tree.parent / "cache")
    assert [told_of(tree, apart=True), told_of(tree, apart=True), told_of(tree)] == [first, first, first]


def test_there_is_an_end_to_what_is_kept(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_readings, "_MOST_BYTES", 20_000)
    monkeypatch.setattr(kept_readings, "_TREES", 2)
    for number in range(60):
        (tree / "verl/a.py").write_text(FILES["verl/a.py"] + f"N{number} = {number}\n")
        told_of(tree)
    assert kept(tree)[0].stat().st_size < 30_000
    for number in range(4):
        (tree / f"{number}/verl").mkdir(parents=True)
        (tree / f"{number}/verl/a.py").write_text("import vllm\n")
        told_of(tree / str(number))
    assert len(kept(tree)) == 2


def test_all_code_that_reads_a_text_counts_as_a_version_of_it() -> None:
    """What a reading depends on is this room, the parser and how it is packed: `KeptReadings` asks for no more."""
    room = Path(reading.__file__).parent
    modules = [
        *room.glob("*.py"),
        *(room.parent / f"{name}.py" for name in ("summary", "bindings", "statement_walk", "steps", "syntax", "uses")),
    ]
    imported = {
        node.module
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("patcher.")
    }
    others = {name for name in imported if not name.startswith("patcher.analysis.")}
    assert others == {"patcher.packages.releases.kept", "patcher.worktree.python"}
