"""A module above 500 lines is named, unless it states its reason."""

from __future__ import annotations

from pathlib import Path

from bench.module_length import LIMIT, too_long


def test_a_long_module_is_named_unless_it_says_why(tmp_path: Path) -> None:
    (tmp_path / "patcher/room").mkdir(parents=True)
    place = tmp_path / "patcher/room/long.py"
    place.write_text("x = 1\n" * LIMIT)
    assert list(too_long(tmp_path)) == []
    place.write_text("x = 1\n" * (LIMIT + 1))
    assert [line.partition(":")[0] for line in too_long(tmp_path)] == ["patcher/room/long.py"]
    place.write_text("# long:\n" + "x = 1\n" * LIMIT)
    assert len(list(too_long(tmp_path))) == 1
    place.write_text("# long: one table of one grammar\n" + "x = 1\n" * LIMIT)
    assert list(too_long(tmp_path)) == []
