"""Every symptom record keeps its promises: examples are found, near misses are not, and links lead somewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.diagnose.evidence import Evidence
from patcher.diagnose.scanner import Scanner
from patcher.records.load import load
from patcher.records.settings import load_settings
from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Symptom
from tests.lanes import ALL_CASES

LOGS = Path(__file__).parent / "jobs" / "logs"
HEALTHY = ["verl-0.6.1.log", "verl-0.7.0.log", "verl-0.8.0.log"]
SYMPTOMS = load_symptoms()
PATCHES = {record.id for record in load(())}
SETTINGS = {setting.id for setting in load_settings()}


def of_ray(line: str) -> str:
    return f"\x1b[36m(WorkerDict pid=12, ip=10.0.0.2)\x1b[0m {line}"


def of_a_logger(line: str) -> str:
    return f"2026-01-11 10:00:00,123 {line}"


def of_a_rank(line: str) -> str:
    return f"[rank3]: {line}"


def of_windows(line: str) -> str:
    return f"{line}\r"


SURROUNDINGS: list[Callable[[str], str]] = [of_ray, of_a_logger, of_a_rank, of_windows]


def scanned(scanner: Scanner, log: str) -> Evidence:
    return scanner.scan([("log", io.BytesIO(log.encode()))])


def signs(evidence: Evidence) -> set[int]:
    """The lines in which a sign was found."""
    waits = [evidence.wait] if evidence.wait is not None else []
    return {hit.first.number for hit in (*evidence.hits, *waits, *evidence.trends)}


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_the_examples_are_found_and_the_near_misses_are_not_also_in_foreign_surroundings(symptom: Symptom) -> None:
    scanner = Scanner([symptom])
    for example in symptom.examples:
        wanted = {example.line} if example.line is not None else set()
        assert signs(scanned(scanner, example.log)) == wanted, example.name
        for surround in SURROUNDINGS:
            if surround is not of_ray and re.match(r"\(\w+ pid=", example.log.lstrip()):
                continue
            log = "\n".join(surround(line) for line in example.log.removesuffix("\n").split("\n")) + "\n"
            assert signs(scanned(scanner, log)) == wanted, (example.name, surround.__name__)


def test_examples_are_found_in_the_middle_of_a_real_run() -> None:
    log = (LOGS / HEALTHY[1]).read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(log) if "Total training steps" in line)
    head, tail = "".join(log[:at]), "".join(log[-3:])
    missed = []
    for symptom in SYMPTOMS[:: 1 if ALL_CASES else 3]:
        if symptom.waits or symptom.trends or any(match.after_steps for match in symptom.matches):
            continue
        for example in symptom.examples:
            found = {hit.first.number - at for hit in scanned(Scanner([symptom]), head + example.log + tail).hits}
            if found != ({example.line} if example.line is not None else set()):
                missed.append(f"{symptom.id}: {example.name}: {found}")
    assert not missed


@pytest.mark.parametrize("name", HEALTHY)
def test_no_symptom_is_seen_in_a_healthy_log(name: str) -> None:
    evidence = Scanner(SYMPTOMS).scan([(name, io.BytesIO((LOGS / name).read_bytes()))])
    assert [(hit.symptom.id, hit.first.text) for hit in (*evidence.hits, *evidence.trends)] == []
    assert evidence.wait is None


def test_what_the_fixes_name_exists() -> None:
    fixes = [(symptom.id, fix) for symptom in SYMPTOMS for fix in symptom.fixes]
    assert [(name, fix.patch) for name, fix in fixes if fix.patch and fix.patch not in PATCHES] == []
    assert [(name, fix.setting) for name, fix in fixes if fix.setting and fix.setting not in SETTINGS] == []
    assert [name for name, fix in fixes if not (fix.text and fix.zh)] == []
