"""Data, model files and paths, judged by the programs that run in the interpreter that trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patcher.messages import english
from patcher.preflight.agent.run_programs import Program
from tests.agent.preflight_programs.standins import Told, told

ROW: dict[str, Any] = {
    "data_source": "openai/gsm8k",
    "prompt": [{"role": "user", "content": "1 + 2? " + "why " * 100}],
    "reward_model": {"style": "rule", "ground_truth": "3"},
}


def places(root: Path, **args: Any) -> Told:
    given = {"data": None, "model": None, "usual": {}, **args}
    return told(root, Program(["places"], ["git_ignore.py", "data"], given))


def rows(root: Path, *items: dict[str, Any]) -> Told:
    file = root / "train.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    return told(root, Program(["rows"], ["rows", "columns"], {"data": str(file)}))


def weights(root: Path) -> Told:
    return told(root, Program(["weights"], ["config", "weights"], {"model": str(root)}))


def safetensors(path: Path, cut: int = 0) -> None:
    head = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes((len(head).to_bytes(8, "little") + head + bytes(16))[: -cut or None])


def test_the_data_file_is_found_by_the_tree_s_own_git_ignore(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(b"x" * 12)
    (tmp_path / "git_ignore.py").write_text(
        f"from pathlib import Path\nDATA_OUTPUT_DIR = Path({str(tmp_path)!r})\n"
        "DATA_OUTPUT_DIR_STR = str(DATA_OUTPUT_DIR)\n"
        "def validate_paths():\n    return True\n"
    )
    found = places(tmp_path)
    assert found.said("git_ignore.py") == "1 path, validate_paths() holds"
    assert found.said("data") == f"{tmp_path}/train.parquet, 12 bytes"
    assert found["data"]["values"]["data"] == f"{tmp_path}/train.parquet"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise FileNotFoundError('not there: MODEL_BASE = /m')", "FileNotFoundError: not there: MODEL_BASE = /m"),
        ("return False", "validate_paths() fails"),
        ("return ['MODEL_BASE']", "validate_paths() fails: ['MODEL_BASE']"),
    ],
)
def test_paths_that_do_not_hold(tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "git_ignore.py").write_text(f"def validate_paths():\n    {body}\n")
    found = places(tmp_path)
    assert found.status("git_ignore.py") == "fail"
    assert found.said("git_ignore.py").startswith(said)
    assert found.status("data") == "warn"


@pytest.mark.parametrize("host", [None, "h100"])
def test_a_git_ignore_is_rendered_anew_for_the_host_that_was_checked(tmp_path: Path, host: str | None) -> None:
    (tmp_path / "git_ignore.py").write_text("raise FileNotFoundError('not there: DATA_OUTPUT_DIR = /d')\n")
    fix = english(places(tmp_path, host=host)["git_ignore.py"]["fix"])
    assert fix.endswith("uky-patch render git_ignore.py --write" + (f" --host {host}" if host else ""))


def test_a_git_ignore_that_does_not_compile_leaves_the_data_named(tmp_path: Path) -> None:
    (tmp_path / "git_ignore.py").write_text("MODEL_BASE = (\n")
    found = places(tmp_path, usual={"DATA_OUTPUT_DIR": "/nowhere"})
    assert found.said("git_ignore.py").startswith("SyntaxError")
    assert found.said("data") == "/nowhere/train.parquet: no such file"


def test_the_rows_are_counted_and_the_first_is_shown_shortened(tmp_path: Path) -> None:
    found = rows(tmp_path, ROW, ROW)
    assert found.said("rows").startswith('2 rows; the first: {"data_source": "openai/gsm8k"')
    assert len(found.said("rows")) < 220
    assert found.status("columns") == "ok"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reward_model": None}, "reward_model holds no ground_truth"),
        ({"prompt": "1 + 2?"}, "prompt is no list of turns with role and content, but str"),
        ({"images": [{"bytes": ""}, {"bytes": ""}]}, "0 times <image> in the prompt, and 2 images"),
    ],
)
def test_a_row_that_verl_would_stumble_over(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert rows(tmp_path, {**ROW, **change}).said("columns") == said


def test_columns_that_are_missing_are_named(tmp_path: Path) -> None:
    found = rows(tmp_path, {"prompt": []})
    assert found.said("columns") == "verl needs data_source, reward_model; there are prompt"


def test_no_rows(tmp_path: Path) -> None:
    assert rows(tmp_path).status("rows") == "fail"


def test_weights_that_are_whole(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text('{"architectures": ["Qwen2ForCausalLM"]}')
    safetensors(snapshot / "model.safetensors")
    found = weights(tmp_path)
    assert found.said("config") == f"Qwen2ForCausalLM at {snapshot}"
    assert found.said("weights").startswith("1 file,")


def test_weights_that_are_cut_off_or_missing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    safetensors(tmp_path / "model-1.safetensors", cut=5)
    assert weights(tmp_path).said("weights") == "1 of 2 files is missing: model-2.safetensors"
    safetensors(tmp_path / "model-2.safetensors")
    assert weights(tmp_path).said("weights").startswith("not whole: model-1.safetensors (")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    assert "holds no model" in weights(tmp_path).said("config")
