"""Texts that guides to troubleshooting quote are recognised in the surroundings of other programs."""

from __future__ import annotations

import pytest

from bench.diagnosis.labels import Label, load
from patcher.diagnose.diagnose import diagnose
from patcher.session.session import Session

QUOTED = [label for label in load() if label.origin == "document" and label.part == "tuning"]


@pytest.mark.parametrize("label", QUOTED, ids=lambda label: label.name)
def test_a_quoted_text_names_its_symptom(label: Label) -> None:
    found = diagnose(Session(assume=label.assume), str(label.log))
    assert found.verdict == label.verdict
    if label.root:
        assert found.root is not None
        assert found.root.id in label.root
        assert found.root.place.number in label.lines
    else:
        assert found.findings == ()
