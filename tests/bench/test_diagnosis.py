"""The labelled logs are well-formed, and the bench counts on them what it says it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.diagnosis.answers import Answer, last_error
from bench.diagnosis.figures import Share, score
from bench.diagnosis.labels import FOLDER, PARTS, Label, load, parse, part_of
from bench.diagnosis.report import met, misses, table
from patcher.records.symptom_parse import load_symptoms

LABELS = load()
LARGEST = 90_000
GOOD = """
verdict = "failed"
phase = "rollout"
root = ["unknown"]
lines = [3]
origin = "real"
made = "A run was broken."
"""


def test_every_log_has_a_label_and_lies_where_its_name_says() -> None:
    for part in PARTS:
        logs, labels = ({path.stem for path in (FOLDER / part).glob(f"*.{kind}")} for kind in ("log", "toml"))
        assert logs == labels
        assert {part_of(name) for name in labels} <= {part}


def test_every_root_is_a_symptom_and_every_line_is_there() -> None:
    known = {symptom.id for symptom in load_symptoms()} | {"unknown"}
    for label in LABELS:
        assert set(label.root) <= known, label.name
        count = label.log.read_bytes().count(b"\n") + 1
        assert all(1 <= number <= count for number in label.lines), label.name


def test_logs_are_small() -> None:
    sizes = {label.name: label.log.stat().st_size for label in LABELS}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
    assert sum(sizes.values()) < 4_000_000


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"failed"', '"broken"', "no verdict"),
        ('"rollout"', '"roll"', "no phase"),
        ('"real"', '"dreamt"', "no origin"),
        ("lines = [3]", "lines = []", "a root without lines"),
        ('root = ["unknown"]\nlines = [3]', "root = []\nlines = []", "names no root"),
        ("A run was broken.", "broken", "no sentence"),
        ("origin", "source", "lacks origin"),
        ("lines = [3]", "lines = [3]\nline = 3", "no label has: line"),
    ],
)
def test_a_label_that_is_wrong_is_told(old: str, new: str, fault: str) -> None:
    read = parse(GOOD.replace(old, new), Path("one.toml"), "tuning")
    assert not isinstance(read, Label)
    assert any(fault in each for each in read)


def label(name: str, part: str, verdict: str, root: tuple[str, ...] = (), lines: tuple[int, ...] = ()) -> Label:
    return Label(name, part, verdict, "loop", root, lines, "real", "Made.")  # type: ignore[arg-type]


def test_what_is_right_is_counted_among_what_was_asked() -> None:
    sick = label("a", "frozen", "failed", ("full-disk",), (7, 9))
    well = label("b", "frozen", "ok")
    found = score(
        [
            Answer(sick, "failed", "loop", "full-disk", 9),
            Answer(sick, "failed", "actor", "unknown", 3),
            Answer(well, "ok", "loop", "", 0),
        ]
    )
    assert (found.root, found.line, found.verdict, found.phase) == (Share(1, 2), Share(1, 2), Share(3, 3), Share(2, 3))
    assert found.alarms == Share(0, 1)
    assert not met({"frozen": found})
    assert met({"frozen": score([Answer(sick, "failed", "loop", "full-disk", 9)]), "tuning": found})


def test_an_alarm_on_a_healthy_log_misses_the_goal_in_either_part() -> None:
    well = label("b", "tuning", "running")
    assert not met({"frozen": score([]), "tuning": score([Answer(well, "running", "loop", "nan-loss", 4)])})


def test_misses_are_told_with_what_was_expected() -> None:
    sick = label("a", "tuning", "failed", ("full-disk",), (7, 9))
    (_, _, row) = misses([Answer(sick, "failed", "actor", "unknown", 3, text="OSError: a|b")])
    assert (
        row == "| a | root, line, phase | failed, loop, full-disk at 7, 9 | failed, actor, unknown at 3 OSError: a/b |"
    )
    assert list(misses([Answer(sick, "failed", "loop", "full-disk", 7)])) == []


def test_a_baseline_names_a_line_and_no_symptom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.diagnosis.labels.FOLDER", tmp_path)
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning" / "a.log").write_text("ValueError: one\nOSError: two\nbye\n")
    answer = last_error(label("a", "tuning", "failed", ("full-disk",), (2,)))
    assert (answer.verdict, answer.line) == ("failed", 2)
    rows = list(table({"the last line": {"tuning": score([answer])}}))
    assert rows[-1] == "| the last line | tuning | 1 |  | 1.000 (1 of 1) | 1.000 (1 of 1) |  | 0 of 0 |"
