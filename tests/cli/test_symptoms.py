"""`uky-patch symptoms` shows what is known, as a tree, as a card, and one record in full."""

from __future__ import annotations

import json

import pytest

from patcher.cli.app import run
from patcher.records.symptom_parse import load_symptoms

SYMPTOMS = load_symptoms()


def test_the_tree_names_every_symptom(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["symptoms"]) == 0
    shown = capsys.readouterr().out
    assert "The run has ended with an error\n" in shown
    assert all(f"    {symptom.id} " in shown for symptom in SYMPTOMS)


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_a_symptom_is_shown_in_full_in_both_languages(
    symptom: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = next(one for one in SYMPTOMS if one is symptom)
    assert run(["symptoms", known.id]) == 0
    english = capsys.readouterr().out
    assert known.title in english
    assert known.cause in english
    assert all(fix.text in english for fix in known.fixes)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert run(["symptoms", known.id]) == 0
    chinese = capsys.readouterr().out
    assert known.zh.cause in chinese
    assert all(fix.zh in chinese for fix in known.fixes)


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
    assert "Did you mean vllm-no-kv-cache-memory?" in capsys.readouterr().err
