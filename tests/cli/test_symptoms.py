"""`uky-patch symptoms` shows what is known, as a tree, as a card, and one record in full."""

from __future__ import annotations

import json

import pytest

from patcher.cli.app import run
from patcher.i18n import Language
from patcher.records.symptom_parse import load_symptoms
from patcher.report.symptoms import symptom_report, words
from patcher.terminal.document import print_report

SYMPTOMS = load_symptoms()


def test_the_tree_names_every_symptom(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symptoms"]) == 0
    shown = capsys.readouterr().out
    assert "The run has ended with an error\n" in shown
    assert all(f"    {symptom.id} " in shown for symptom in SYMPTOMS)


@pytest.mark.parametrize("tongue", ["en", "zh"])
def test_every_symptom_can_be_shown_in_full(tongue: Language, capsys: pytest.CaptureFixture[str]) -> None:
    for symptom in SYMPTOMS:
        print_report(symptom_report(symptom, tongue))
        shown = capsys.readouterr().out
        text = words(symptom, tongue)
        assert text.title in shown
        assert text.cause in shown
        assert all((fix.zh if tongue == "zh" else fix.text) in shown for fix in symptom.fixes)


def test_one_of_them_by_its_id(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert run(["symptoms", "cuda-oom"]) == 0
    assert capsys.readouterr().out.startswith("cuda-oom: 显存不足")


def test_the_card_has_the_first_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symptoms", "--card"]) == 0
    shown = capsys.readouterr().out
    assert "No available memory for the cache blocks" in shown
    assert "actor_rollout_ref.rollout.gpu_memory_utilization=0.6" in shown


def test_programs_get_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symptoms", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["symptoms"]
    assert [one["id"] for one in found] == [symptom.id for symptom in SYMPTOMS]
    assert all(one["cause"] and one["kind"] for one in found)


def test_an_unknown_one_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symptoms", "vllm-no-kv-cache-memori"]) == 2
    assert "Did you mean vllm-no-kv-cache-memory" in capsys.readouterr().err
