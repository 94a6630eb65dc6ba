"""Edits of lines: a hunk of a diff, in files of any kind."""

from __future__ import annotations

import pytest
import yaml

from patcher.rewrite import markers_of_edit, rewrite
from patcher.rewrite.edits import Mark, ReplaceLines
from patcher.rewrite.hunk import check_hunk
from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)

MARK = Mark("rec")
SETTINGS = "trainer:\n  nodes: 1\n  epochs: 30\n  seed: 7\nnote: |\n  epochs: 30\n  are many\n"
EPOCHS = "   nodes: 1\n-  epochs: 30\n+  epochs: 3\n   seed: 7\n"


def lines(file: str, hunk: str, text: str, *, may_touch: frozenset[str] = frozenset()) -> Outcome:
    return rewrite(text, ReplaceLines(file=file, hunk=hunk), MARK, may_touch=may_touch)


def made(file: str, hunk: str, text: str) -> str:
    outcome = lines(file, hunk, text)
    assert isinstance(outcome, Rewritten), outcome
    again = lines(file, hunk, outcome.source)
    assert isinstance(again, AlreadyDone), again
    return outcome.source


def test_the_old_line_of_a_yaml_file_stays_as_a_comment() -> None:
    after = made("a.yaml", EPOCHS, SETTINGS)
    assert "  # epochs: 30  # Uky[rec]\n  epochs: 3  # Uky[rec]\n  seed: 7\n" in after
    assert yaml.safe_load(after) == {**yaml.safe_load(SETTINGS), "trainer": {"nodes": 1, "epochs": 3, "seed": 7}}


def test_a_line_in_a_block_of_text_gets_no_comment() -> None:
    after = made("a.yaml", " note: |\n-  epochs: 30\n+  epochs: 3\n   are many\n", SETTINGS)
    assert "note: |\n  epochs: 3\n  are many\n" in after
    assert "Uky" not in after


@pytest.mark.parametrize("file", ["a.json", "a.ini", "Makefile"])
def test_a_format_whose_comments_are_not_known_gets_none(file: str) -> None:
    assert made(file, '-"a": 1\n+"a": 2\n', '{\n"a": 1\n}\n') == '{\n"a": 2\n}\n'


def test_a_command_over_several_lines_gets_no_comment_in_it() -> None:
    script = "set -e\npython train.py \\\n  lr=1 \\\n  seed=2\necho done\n"
    hunk = " python train.py \\\n-  lr=1 \\\n+  lr=3 \\\n   seed=2\n"
    assert made("run.sh", hunk, script) == script.replace("lr=1", "lr=3")
    assert made("run.sh", "-echo done\n+echo over\n", script).endswith(
        "# echo done  # Uky[rec]\necho over  # Uky[rec]\n"
    )


@pytest.mark.parametrize(
    ("hunk", "before", "after"),
    [
        ("-x = 1\n+x = 2\n", "x = 1\n", "# x = 1  # Uky[rec]\nx = 2  # Uky[rec]\n"),
        (
            " f(\n     a,\n-    b,\n+    c,\n",
            "f(\n    a,\n    b,\n)\n",
            "f(\n    a,\n    # b,  # Uky[rec]\n    c,  # Uky[rec]\n)\n",
        ),
        ("-# one\n+# two\n", "# one\nx = 1\n", "# # one  # Uky[rec]\n# two  # Uky[rec]\nx = 1\n"),
        (
            ' s = """\n-a\n+b\n',
            's = """\na\n"""\n',
            '# s = """  # Uky[rec]\n# a  # Uky[rec]\n# """  # Uky[rec]\ns = """\nb\n"""  # Uky[rec]\n',
        ),
        (" a = 1\n+b = 2\n", "a = 1\n", "a = 1\nb = 2  # Uky[rec]\n"),
        (" a = 1\n-b = 2\n", "a = 1\nb = 2\n", "a = 1\n# b = 2  # Uky[rec]\n"),
    ],
)
def test_python_is_marked_where_a_comment_can_stand(hunk: str, before: str, after: str) -> None:
    assert made("verl/a.py", hunk, before) == after


def test_what_is_no_python_afterwards_is_refused() -> None:
    assert isinstance(lines("verl/a.py", "-x = 1\n+x = (\n", "x = 1\n"), Unparseable)


def test_line_ends_and_the_mark_of_utf8_stay() -> None:
    assert made("a.toml", "-a = 1\n+a = 2\n", "\ufeffa = 1\r\nb = 1\r\n") == (
        "\ufeff# a = 1  # Uky[rec]\r\na = 2  # Uky[rec]\r\nb = 1\r\n"
    )
    assert made("a.toml", " a = 1\n+b = 2\n", "a = 1") == "a = 1\nb = 2  # Uky[rec]"


def test_lines_that_stand_there_twice_are_not_guessed() -> None:
    assert lines("a.yaml", "-  x: 1\n+  x: 2\n", "a:\n  x: 1\nb:\n  x: 1\n") == AnchorAmbiguous(1, (2, 4))


def test_with_other_lines_around_it_the_change_is_still_made() -> None:
    drifted = SETTINGS.replace("nodes: 1", "nodes: 8")
    assert "nodes: 8\n  # epochs: 30  # Uky[rec]\n  epochs: 3  # Uky[rec]\n" in made("a.yaml", EPOCHS, drifted)


def test_a_change_of_the_line_itself_is_in_the_way() -> None:
    found = lines("a.yaml", EPOCHS, SETTINGS.replace("  epochs: 30\n  seed", "  epochs: 50\n  seed"))
    assert isinstance(found, AnchorMissing)
    assert found.nearest is not None
    assert found.nearest.text.startswith("epochs:")


def test_two_changes_of_one_place_that_do_not_meet_are_merged() -> None:
    before = "a:\n  one: 1\n  two: 2\n  three: 3\n  four: 4\n  five: 5\n  six: 6\nb: 1\n"
    hunk = " a:\n   one: 1\n-  two: 2\n+  two: 20\n   three: 3\n   four: 4\n-  five: 5\n+  five: 50\n   six: 6\n b: 1\n"
    # Somebody has put a line between the two that change.
    drifted = before.replace("  three: 3\n", "  three: 3\n  half: 3.5\n")
    after = made_of(lines("b.json", hunk, drifted))
    assert after == "a:\n  one: 1\n  two: 20\n  three: 3\n  half: 3.5\n  four: 4\n  five: 50\n  six: 6\nb: 1\n"


def made_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Rewritten), outcome
    return outcome.source


def test_a_hand_that_did_it_with_its_own_mark_is_recognised() -> None:
    by_hand = SETTINGS.replace("  epochs: 30\n  seed", "  # epochs: 30  # uky\n  epochs: 3  # uky: short runs\n  seed")
    assert lines("a.yaml", EPOCHS, by_hand) == AlreadyDone((4,), marked=True)
    assert markers_of_edit(by_hand, ReplaceLines(file="a.yaml", hunk=EPOCHS), "Uky") == {3, 4}


def test_a_line_of_another_record_is_its_own() -> None:
    other = SETTINGS.replace("  epochs: 30\n  seed", "  epochs: 30  # Uky[other]\n  seed")
    assert lines("a.yaml", EPOCHS, other) == Overlap(3, "other")
    after = made_of(lines("a.yaml", EPOCHS, other, may_touch=frozenset({"other"})))
    assert "  epochs: 3  # Uky[other, rec]\n" in after


@pytest.mark.parametrize(
    ("hunk", "why"),
    [
        ("x = 1\n", "line 1 of the hunk must begin with a space, + or -"),
        (" x = 1\n", "no line that begins with + or -"),
        ("+x = 1\n", "its place is not known"),
    ],
)
def test_a_text_that_is_no_hunk_says_why(hunk: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("+", r"\+")):
        check_hunk(hunk)
