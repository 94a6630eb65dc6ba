"""What `[when]` may name is what is looked for, and what the documents list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patcher.packages.agent.folders import MODULES
from patcher.records.rules import DISTRIBUTIONS

DOCS = Path(__file__).parents[2] / "docs"


def test_each_is_looked_for() -> None:
    assert set(DISTRIBUTIONS) == {*MODULES, "python", "cuda"}


@pytest.mark.parametrize("document", ["records.md", "records.zh-CN.md"])
def test_the_documents_list_them(document: str) -> None:
    listed = re.search(r"`(verl vllm torch [^`]+)`", (DOCS / document).read_text(encoding="utf-8"))
    assert listed
    assert set(listed[1].split()) == set(DISTRIBUTIONS)
