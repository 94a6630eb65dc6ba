"""The decision tree and the quick-fix card are what the symptom records say."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Fix, Match, Symptom, SymptomExample, Words
from patcher.report.documents import SYMPTOM_DOCUMENTS, symptom_document

ROOT = Path(__file__).parents[2]
FULL = Symptom(
    "disk-full",
    "The disk is full",
    "Nothing can be written.",
    "failure",
    Words("磁盘已满", "无法写入。"),
    "checkpoint",
    matches=(Match("No space left"),),
    fixes=(Fix("Look", "看", run="df -h | sort"), Fix("Keep fewer", "少留", when={"verl": ">=0.6"})),
    examples=(SymptomExample("as written", "a\n(W pid=1) ERROR 11-20 21:02:31 [a.py:1] No space left | here\n", 2),),
)
STALL = Symptom("lock", "A lock is held", "By another.", "stall", Words("锁", "他人持有。"), "data", phase=("dataset",))


@pytest.mark.parametrize("name", SYMPTOM_DOCUMENTS)
def test_the_document_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == symptom_document(name, load_symptoms()), "run: make docs"


def test_a_failure_stands_under_its_topic_and_a_stall_under_its_phase() -> None:
    text = symptom_document("docs/symptoms.md", (FULL, STALL))
    tree = text[: text.index("\n## The run has ended")]
    assert "error**\n  - Checkpoints\n    - [The disk is full](#disk-full)\n" in tree
    assert "nothing**\n  - dataset\n    - [A lock is held](#lock)\n" in tree


def test_a_symptom_is_told_with_its_sign_and_its_fixes_in_order() -> None:
    text = symptom_document("docs/symptoms.md", (FULL,))
    assert "**The disk is full.** Nothing can be written.\n\n```\nNo space left | here\n```\n" in text
    assert "\n1. Look\n   - `df -h | sort`\n2. Keep fewer (verl >=0.6)\n" in text


def test_the_card_has_the_line_and_the_first_fix_in_one_row() -> None:
    row = next(
        line for line in symptom_document("docs/quick-fixes.zh-CN.md", (FULL,)).splitlines() if "disk-full" in line
    )
    assert row == ("| `No space left \\| here` | [磁盘已满](symptoms.zh-CN.md#disk-full) | 看<br>`df -h \\| sort` |")
