"""verl's own rollout server answers with a tiny model on vLLM's CPU build, once the records are applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.lane.running import HERE, apply, copied, named
from tests.runtime.running import Ran, ran

pytestmark = [pytest.mark.runtime, pytest.mark.network]
PAIRS = [("0.8.0", "0.28.0"), ("0.9.1", "0.29.0")]


def serve(python: Path, toy: Path, *paths: Path) -> Ran:
    return ran(python, [python, "-m", "inside.serving", toy / "model"], [*paths, HERE], 500, {})


@pytest.mark.parametrize(("verl", "build"), PAIRS)
def test_the_patched_server_answers(
    verl: str, build: str, python: Callable[[str], Path], toy: Path, tmp_path: Path
) -> None:
    interpreter = python(build)
    tree, _ = apply(verl, build, interpreter, tmp_path)
    done = serve(interpreter, toy, tree)
    answers = [line for line in done.text.splitlines() if line.startswith("ANSWER ")]
    assert len(answers) == 1, done.end
    answer = json.loads(answers[0].removeprefix("ANSWER "))
    assert answer["served"] == str(toy / "model")
    assert 1 <= len(answer["tokens"]) <= 8


def test_untouched_the_server_fails_at_what_the_records_repair(
    python: Callable[[str], Path], toy: Path, tmp_path: Path
) -> None:
    interpreter, root = python("0.28.0"), copied("0.8.0", tmp_path / "untouched")
    assert "ValueError: vllm version None not supported" in serve(interpreter, toy, root).text
    known = serve(interpreter, toy, root, named("0.28.0", tmp_path))
    assert "ImportError: cannot import name 'FusedMoE'" in known.text
