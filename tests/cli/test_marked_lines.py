"""`verify` of marked lines in a clone, which has no ledger."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Uky

SERVER = "verl/server.py"


@pytest.fixture
def clone(uky: Uky, tree: Path) -> Path:
    assert uky("apply").code == 0
    shutil.rmtree(tree / ".uky-patch")
    return tree


def verdicts(uky: Uky) -> dict[str, tuple[str, str]]:
    rows = uky("verify").json["checks"]
    return {one["name"]: (one["status"], one["detail"]) for one in rows if one["name"].startswith("record ")}


def edit(clone: Path, old: str, new: str) -> None:
    text = (clone / SERVER).read_text()
    assert text.count(old) == 1
    (clone / SERVER).write_text(text.replace(old, new))


def test_lines_as_the_records_make_them_hold(uky: Uky, clone: Path) -> None:
    assert {status for status, _ in verdicts(uky).values()} <= {"ok", "skip"}
    edit(clone, "def launch(self, args):", "def launch(self, args, other=None):")
    edit(clone, "            config=args.config,\n", "            config=args.config,\n\n            # by hand\n")
    assert {status for status, _ in verdicts(uky).values()} <= {"ok", "skip"}


@pytest.mark.parametrize(
    ("record", "old", "new"),
    [
        ("log-flag", "enable_log=args.enable_log,", "enable_log=not args.enable_log,"),
        ("utils-moved", "parsers import Parser  # Uky", "parsers import Parser, Lexer  # Uky"),
    ],
)
def test_a_marked_line_with_another_effect_fails(uky: Uky, clone: Path, record: str, old: str, new: str) -> None:
    edit(clone, old, new)
    line = next(n for n, text in enumerate((clone / SERVER).read_text().splitlines(), 1) if new in text)
    found = verdicts(uky)
    assert found.pop(f"record {record}") == ("fail", f"{SERVER}:{line} carries its mark, and is not what it makes")
    assert {status for status, _ in found.values()} <= {"ok", "skip"}
    assert uky("verify").code == 1


def test_another_layout_says_the_same(uky: Uky, clone: Path) -> None:
    edit(
        clone,
        "            enable_log=args.enable_log,  # Uky[log-flag]\n",
        "            enable_log=(\n                args.enable_log  # Uky[log-flag]\n            ),\n",
    )
    assert {status for status, _ in verdicts(uky).values()} <= {"ok", "skip"}
