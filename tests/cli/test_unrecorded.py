"""Marked lines that no record covers, beside edits made by hand that one does: before, during and after an apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SERVER, Uky
from tests.lanes import one_in

OLD = "            disable_log=args.disable_log,\n"
BY_HAND = {
    "the line": "            enable_log=args.enable_log,  # Uky\n",
    "old line above": "            # disable_log=args.disable_log,  # uky\n"
    "            enable_log=args.enable_log,  # Uky\n",
    "comment above": "            # Uky: the flag was renamed\n            enable_log=args.enable_log,\n",
    "both": "            # Uky: renamed\n            # disable_log=args.disable_log,  # uky\n"
    "            enable_log=args.enable_log,  # uky\n",
    "old line below": "            enable_log=args.enable_log,  # Uky\n"
    "            # disable_log=args.disable_log,  # uky\n",
    "over several lines": "            enable_log=(  # Uky\n"
    "                args.enable_log  # uky\n            ),  # Uky\n",
}


def places(report: Any) -> list[int]:
    assert {mark["file"] for mark in report["unrecorded"]} <= {"verl/server.py"}
    return [mark["line"] for mark in report["unrecorded"]]


def line_of(tree: Path, text: str) -> int:
    return next(n for n, line in enumerate((tree / "verl/server.py").read_text().splitlines(), 1) if text in line)


def follows(uky: Uky, tree: Path, wanted: str | None) -> None:
    """Before and after an apply that moves lines, `wanted` alone is told as covered by no record, where it stands."""
    for _ in ("before", "after"):
        report = uky("status")
        assert report.outcomes["log-flag"] == "adopted"
        assert places(report.json) == ([line_of(tree, wanted)] if wanted else [])
        row = next(line for line in uky("status", json=False).out.splitlines() if "log-flag" in line)
        assert f"server.py:{line_of(tree, 'enable_log=')}" in row
        if wanted:
            assert f"verl/server.py:{line_of(tree, wanted)}" in uky("verify", json=False).out
        assert uky("apply").code == 0
    assert uky("status").outcomes["utils-moved"] == "applied"


@pytest.mark.parametrize("style", BY_HAND)
def test_an_adopted_edit_is_found_where_it_stands(uky: Uky, tree: Path, style: str) -> None:
    (tree / "verl/server.py").write_text(SERVER.replace(OLD, BY_HAND[style]))
    follows(uky, tree, None)


BESIDE = [(side, far, comment) for side in ("above", "below") for far in range(1, 9) for comment in (False, True)]


@pytest.mark.parametrize(("side", "distance", "comment"), one_in(5, BESIDE))
def test_another_marked_edit_beside_an_adopted_one_is_told(
    uky: Uky, tree: Path, side: str, distance: int, comment: bool
) -> None:
    mine = "            # UKY mine\n            limit=3,\n" if comment else "            limit=3,  # uky mine\n"
    between = "".join(f"            x{n}=args.x{n},\n" for n in range(distance - 1))
    edit = BY_HAND["old line above"]
    text = f"{mine}{between}{edit}" if side == "above" else f"{edit}{between}{mine}"
    (tree / "verl/server.py").write_text(SERVER.replace(OLD, text))
    follows(uky, tree, "mine")


def test_imports_mended_by_hand_account_for_their_markers(uky: Uky, tree: Path) -> None:
    guarded = (
        "# Uky: vLLM 2.0 moved it\ntry:  # Uky\n    from vllm.utils import Parser\nexcept ImportError:  # uky\n"
        "    from vllm.utils.parsers import Parser  # Uky\n    LIMIT = 3  # Uky mine\n"
    )
    (tree / "verl/server.py").write_text(
        SERVER.replace("from vllm.utils import Parser, get_uri\n", f"{guarded}from vllm.utils import get_uri\n")
    )
    assert uky("status").outcomes["utils-moved"] == "adopted"
    assert places(uky("status").json) == [line_of(tree, "mine")]
    assert uky("apply").outcomes == {"log-flag": "applied", "utils-moved": "adopted"}
    assert places(uky("status").json) == [line_of(tree, "mine")]


def test_a_place_edited_by_hand_of_a_record_that_makes_the_others_is_covered(
    uky: Uky, tree: Path, records: Path
) -> None:
    record = (records / "log-flag.toml").read_text().replace('value = "args', 'count = 2\nvalue = "args')
    (records / "log-flag.toml").write_text(record.partition("[resolved]")[0])
    again = "        Engine.start(\n" + BY_HAND["old line above"] + "        )\n"
    (tree / "verl/server.py").write_text(SERVER.replace("        return parser", f"{again}        return parser"))
    for outcome in ("pending", "applied"):
        report = uky("status")
        assert (report.outcomes["log-flag"], places(report.json)) == (outcome, [])
        assert uky("apply").code == 0


def test_a_drifted_record_names_lines_of_the_file_that_is_there(uky: Uky, tree: Path) -> None:
    uky("apply", "utils-moved")
    text = (tree / "verl/server.py").read_text()
    (tree / "verl/server.py").write_text(text.replace("disable_log=", "quiet="))
    assert uky("apply", "utils-moved", "--merge").code == 0
    answer = uky("explain", "log-flag", json=False).out
    assert f"verl/server.py:{line_of(tree, 'Engine.start(')}" in answer
