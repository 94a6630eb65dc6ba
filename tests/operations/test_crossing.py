"""Pairs on real releases: by one process and by two, with a release that cannot be had, and killed half way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patcher.check import matrix
from patcher.check.matrix import Missing, Works, fetch_sources
from patcher.check.matrix_run import MatrixInputs, judge_pairs
from patcher.errors import EnvironmentProbeError
from patcher.packages.releases import sources
from patcher.records.load import load
from patcher.report.matrix import matrix_json


def silent(_message: object, _done: int = 0, _total: int | None = None) -> None:
    return


def package(folder: Path, name: str, **files: str) -> Path:
    (folder / name).mkdir(parents=True)
    for file, text in {"__init__": "", **files}.items():
        (folder / name / f"{file}.py").write_text(text)
    return folder / name


@pytest.fixture
def inputs(tmp_path: Path) -> MatrixInputs:
    """verl 1 uses vllm.a.f, which vLLM 3 no longer has; vLLM 2 cannot be had, nor can verl 2."""
    return MatrixInputs(
        "vllm",
        {"1": package(tmp_path / "v1", "verl", use="from vllm.a import f\n"), "2": Missing("2", "gone")},
        {
            "1": package(tmp_path / "w1", "vllm", a="def f(): ...\n"),
            "2": Missing("2", "gone"),
            "3": package(tmp_path / "w3", "vllm", a=""),
        },
    )


def test_a_release_that_cannot_be_had_stops_no_other(inputs: MatrixInputs) -> None:
    found = judge_pairs(inputs, silent, processes=1)
    assert set(found.cells) == {("1", "1"), ("1", "3")}
    assert found.cells["1", "1"].state == Works()
    assert [one.symbol for one in found.cells["1", "3"].findings] == ["vllm.a.f"]
    assert [one.since for one in found.cells["1", "3"].findings] == ["3"]
    assert (set(found.missing_verl), set(found.missing)) == ({"2"}, {"2"})
    assert found.releases == ("1", "2", "3")


def test_two_processes_find_what_one_finds(inputs: MatrixInputs) -> None:
    told: list[str] = []
    both = judge_pairs(inputs, lambda message, _done, _total: told.append(str(message)), processes=2)
    assert matrix_json(both) == matrix_json(judge_pairs(inputs, silent, processes=1))
    assert told == ["checking on vllm: 1 of 2 releases", "checking on vllm: 2 of 2 releases", ""]


def test_a_killed_process_is_one_clear_mistake(inputs: MatrixInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.check.matrix_run._start", _die)
    with pytest.raises(EnvironmentProbeError, match="ended from outside"):
        judge_pairs(inputs, silent, processes=2)


def _die(*_given: object) -> None:
    os._exit(9)


def test_sources_are_fetched_and_failures_kept_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from patcher.errors import ReleaseError

    package(tmp_path / "1.0", "demo")
    (tmp_path / "2.0").mkdir()

    def fetched(name: str, version: str) -> Path:
        if version == "3.0":
            raise ReleaseError("there is no demo 3.0", cause="looked in vain")
        return tmp_path / version

    monkeypatch.setattr(matrix, "sources", fetched)
    found = fetch_sources("demo", ("1.0", "2.0", "3.0"), silent)
    assert list(found) == ["1.0", "2.0", "3.0"]
    assert found["1.0"] == tmp_path / "1.0" / "demo"
    assert {str(one.reason) for one in found.values() if isinstance(one, Missing)} == {
        "its files hold no package demo",
        "there is no demo 3.0; looked in vain",
    }


@pytest.mark.network
def test_known_pairs(subtests: pytest.Subtests) -> None:
    """verl 0.7.0 needs records on vLLM 0.20.2; 0.8.0 runs there as it is."""
    records = tuple(record for record in load() if record.enabled)
    verl = {version: sources("verl", version) / "verl" for version in ("0.7.0", "0.8.0")}
    found = judge_pairs(MatrixInputs("vllm", verl, {"0.20.2": sources("vllm", "0.20.2") / "vllm"}, records), silent)
    with subtests.test(verl="0.7.0"):
        cell = found.cells["0.7.0", "0.20.2"]
        lines = {(one.file.rpartition("/")[2], one.line) for one in cell.findings if one.severity == "break"}
        assert lines == {("vllm_rollout.py", 205), ("vllm_rollout.py", 218)}
        assert cell.left == 0
    with subtests.test(verl="0.8.0"):
        assert found.cells["0.8.0", "0.20.2"].state == Works()
