"""Answers about a release's symbols, kept for the next command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from patcher import api
from patcher.analysis.symbols import Symbols
from patcher.packages.releases import wheel
from patcher.session.symbol_answers import SymbolAnswers

SYMBOLS = {"engine.start": True, "engine.start(port)": True, "engine.stop": False, "engine.run.later": None}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "__init__.py").write_text("def start(port): ...\nfrom engine_core import run\n")
    return folder


def asked(package: Path, *, lasting: bool) -> None:
    """A command that asks, and keeps what it was told."""
    answers = SymbolAnswers(package, lasting=lasting)
    assert {symbol: answers.has(symbol) for symbol in SYMBOLS} == SYMBOLS
    answers.keep()


def test_a_release_is_read_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(package, lasting=True)
    monkeypatch.setattr(Symbols, "has", lambda *_: pytest.fail("it was read again"))
    asked(package, lasting=True)


def test_what_is_installed_is_read_again(package: Path) -> None:
    asked(package, lasting=False)
    (package / "__init__.py").write_text("")
    assert SymbolAnswers(package, lasting=False).has("engine.start") is False


def test_what_another_version_kept_is_not_taken(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(package, lasting=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr("patcher.session.symbol_answers.__version__", "0.0.1")
    assert SymbolAnswers(package, lasting=True).has("engine.start") is False


def test_a_cache_that_is_damaged_is_not_believed(package: Path, tmp_path: Path) -> None:
    asked(package, lasting=True)
    [kept] = (tmp_path / "cache" / "symbols").iterdir()
    kept.write_bytes(b"no pickle")
    asked(package, lasting=True)


@pytest.mark.network
def test_a_plan_keeps_what_it_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a release that is assumed; the next plan on any tree takes its answers from there."""
    shutil.copytree(wheel("verl", "0.6.1") / "verl", tmp_path / "verl")
    kept: list[SymbolAnswers] = []
    monkeypatch.setattr(SymbolAnswers, "keep", lambda answers: kept.append(answers))
    api.plan(tmp_path, assume={"vllm": "0.20.2"})
    assert any("vllm.v1.serial_utils.run_method" in one._answers for one in kept)
