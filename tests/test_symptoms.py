"""Every symptom record keeps its promises: examples are found, near misses are not, and links lead somewhere."""

from __future__ import annotations

import io

import pytest

from patcher.diagnosis.scanning import Scanner
from patcher.records.load import load
from patcher.records.settings import load_settings
from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Symptom, SymptomExample

SYMPTOMS = load_symptoms()
EXAMPLES = [
    pytest.param(symptom, example, id=f"{symptom.id}: {example.name}")
    for symptom in SYMPTOMS
    for example in symptom.examples
]
PATCHES = {record.id for record in load(())}
SETTINGS = {setting.id for setting in load_settings()}


@pytest.mark.parametrize(("symptom", "example"), EXAMPLES)
def test_the_example_is_found_and_the_near_miss_is_not(symptom: Symptom, example: SymptomExample) -> None:
    evidence = Scanner([symptom]).scan([("example", io.BytesIO(example.log.encode()))])
    found = [hit.first.number for hit in evidence.hits] + ([evidence.wait.first.number] if evidence.wait else [])
    found += [hit.first.number for hit in evidence.trends]
    assert set(found) == ({example.line} if example.line is not None else set())


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_what_a_fix_names_exists(symptom: Symptom) -> None:
    assert {fix.patch for fix in symptom.fixes if fix.patch} <= PATCHES
    assert {fix.setting for fix in symptom.fixes if fix.setting} <= SETTINGS
    assert all(fix.text and fix.zh for fix in symptom.fixes)
