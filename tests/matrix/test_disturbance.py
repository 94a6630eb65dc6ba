"""The records land on a tree that was reformatted, commented and shaken without changing its syntax."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from patcher.patching.applying import Order, preview
from patcher.patching.result import ApplyResult
from patcher.records.load import load
from tests.disturb import comment_every, disturb
from tests.lanes import ALL_CASES
from tests.matrix.pairs import OLDER, VERL, copy_of, parsed, session

pytestmark = [pytest.mark.network, pytest.mark.slow]

VLLM = ("0.12.0", "0.20.2")
SEEDS = range(50 if ALL_CASES else 4)
LENGTHS, QUOTES = (60, 88, 120, 200), ("double", "single")
STYLES = [
    (length, quotes)
    for row, length in enumerate(LENGTHS)
    for column, quotes in enumerate(QUOTES)
    if ALL_CASES or (row + column) % 2 == 0
]
"""Of ruff. Half of them have each length and each sort of quotes."""
TREES = VERL if ALL_CASES else (*OLDER[-1:], *[verl for verl in VERL if verl not in OLDER][::2])
FILES = tuple(dict.fromkeys(file for record in load() for file in record.files))


@pytest.fixture(scope="module", params=TREES)
def verl(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tree(verl: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of(verl, tmp_path_factory.mktemp("disturbed"))


@pytest.fixture(scope="module")
def texts(tree: Path) -> dict[str, str]:
    return {file: (tree / file).read_text() for file in FILES if (tree / file).is_file()}


@pytest.fixture(scope="module")
def expected(tree: Path, texts: dict[str, str]) -> dict[str, ApplyResult]:
    assert texts
    return {vllm: planned(tree, vllm) for vllm in VLLM}


def planned(tree: Path, vllm: str) -> ApplyResult:
    here = session(tree, vllm)
    return preview(here, Order(here.request()))


def same(found: ApplyResult, wanted: ApplyResult) -> None:
    """The same outcomes, and the same syntax trees."""
    assert {o.id: o.kind for o in found.plan.outcomes} == {o.id: o.kind for o in wanted.plan.outcomes}
    assert set(found.would_change) == set(wanted.would_change)
    for path in wanted.would_change:
        got, want = (ast.dump(parsed(r.plan.files[path].text)) for r in (found, wanted))
        assert got == want, path


@pytest.mark.parametrize(("length", "quotes"), STYLES)
def test_after_ruff_format(
    tree: Path, texts: dict[str, str], expected: dict[str, ApplyResult], length: int, quotes: str
) -> None:
    settings = ["--isolated", f"--line-length={length}", f"--config=format.quote-style='{quotes}'"]
    paths = [str(tree / file) for file in texts]
    try:
        subprocess.run([sys.executable, "-m", "ruff", "format", "-q", *settings, *paths], check=True)
        if (length, quotes) != (120, "double"):
            assert any((tree / file).read_text() != text for file, text in texts.items())
        for vllm, wanted in expected.items():
            same(planned(tree, vllm), wanted)
    finally:
        restore(tree, texts)


def test_after_a_comment_on_every_anchor_line(
    tree: Path, texts: dict[str, str], expected: dict[str, ApplyResult]
) -> None:
    for vllm, wanted in expected.items():
        try:
            for path in wanted.would_change:
                before, after = wanted.before[path].splitlines(), set(wanted.plan.files[path].text.splitlines())
                gone = [number for number, line in enumerate(before, start=1) if line not in after]
                (tree / path).write_text(comment_every(wanted.before[path], gone))
            same(planned(tree, vllm), wanted)
        finally:
            restore(tree, texts)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_mutations_that_keep_the_syntax(
    tree: Path, texts: dict[str, str], expected: dict[str, ApplyResult], seed: int
) -> None:
    vllm = VLLM[seed % len(VLLM)]
    try:
        for file in expected[vllm].would_change:
            (tree / file).write_text(disturb(texts[file], seed), newline="")
        same(planned(tree, vllm), expected[vllm])
    finally:
        restore(tree, texts)


def restore(tree: Path, texts: dict[str, str]) -> None:
    for file, text in texts.items():
        (tree / file).write_text(text)
