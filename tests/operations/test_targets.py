"""What a tree is held against where nothing is named."""

from __future__ import annotations

from pathlib import Path

from patcher.check.targets import as_installed
from patcher.session.session import Session
from tests.packages.venvs import Venv


def asked(venv: Venv, **assume: str) -> list[tuple[str, str]]:
    root = venv.prefix.parent / "fork"
    (root / "verl").mkdir(parents=True, exist_ok=True)
    (root / "verl/__init__.py").touch()
    session = Session(root, venv.python, assume={name.replace("_", "-"): told for name, told in assume.items()})
    return [(one.name, type(one.source).__name__) for one in as_installed(session)]


def test_what_is_there_and_what_is_missing(tmp_path: Path) -> None:
    venv = Venv(tmp_path / "venv")
    venv.install("torch", "2.11.0")
    venv.install("vllm", "0.20.2")
    venv.install("transformers", "4.57.6")
    missing = [("vllm", "AsInstalled"), ("transformers", "AsInstalled"), ("flash-attn", "NotInstalled")]
    assert asked(venv) == missing
    assert asked(venv, flash_attn="2.8.1") == missing[:2]
    assert asked(venv, transformers="none") == [missing[0], missing[2]]


def test_a_place_that_does_not_train_says_nothing_of_what_is_missing(tmp_path: Path) -> None:
    venv = Venv(tmp_path / "venv")
    assert asked(venv, vllm="0.20.2", transformers="4.57.6") == [("vllm", "AsInstalled")]


def test_without_vllm_transformers_is_what_is_left(tmp_path: Path) -> None:
    venv = Venv(tmp_path / "venv")
    assert asked(venv, vllm="none", transformers="4.57.6") == [("transformers", "AsInstalled")]
    assert asked(venv, vllm="none") == [("vllm", "AsInstalled")]
