from __future__ import annotations

import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import Mark, RenameAttribute
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, AnchorMissing, Rewritten
from tests.rewrite.cases import FILE, made

EDIT = RenameAttribute(file=FILE, old="engine.old_name", new="new_name")


def test_the_last_part_is_renamed() -> None:
    assert made("x = self.engine.old_name(1)\n", EDIT) == (
        "# x = self.engine.old_name(1)  # Uky[rec]\nx = self.engine.new_name(1)  # Uky[rec]\n"
    )


def test_only_the_line_of_the_attribute_changes() -> None:
    assert made("x = (\n    self.engine\n    .old_name\n)\n", EDIT) == (
        "x = (\n    self.engine\n    # .old_name  # Uky[rec]\n    .new_name  # Uky[rec]\n)\n"
    )


def test_an_alias_is_resolved() -> None:
    assert "e.new_name" in made("import vllm.engine as e\ne.old_name\n", EDIT)


def test_columns_count_bytes_but_text_does_not() -> None:
    assert "f('模型', self.engine.new_name)" in made("f('模型', self.engine.old_name)\n", EDIT)


def test_another_tail_is_not_meant() -> None:
    outcome = rewrite("self.motor.old_name\nself.engine.old_names\n", EDIT, Mark("rec"))
    assert isinstance(outcome, AnchorMissing)
    assert outcome.nearest is not None


def test_a_guard_by_hand_is_seen() -> None:
    source = "f = self.engine.new_name if hasattr(self.engine, 'new_name') else self.engine.old_name\n"
    assert isinstance(rewrite(source, EDIT, Mark("rec")), AlreadyDone)


@pytest.mark.parametrize(
    "source",
    [
        'x = f"{self.engine.old_name}"\n',
        'x = f"""\n  {a} {self.engine.old_name}"""\n',
        'x = ("a"\n  f"模 {self.engine.old_name!r:>{w}}")\n',
    ],
)
def test_an_expression_in_an_f_string_is_renamed(source: str) -> None:
    kept = [line for line in made(source, EDIT).splitlines(keepends=True) if not line.lstrip().startswith("# ")]
    assert "".join(kept).replace("  # Uky[rec]", "") == source.replace("old_name", "new_name")


def test_two_alike_in_one_f_string_are_renamed_both_or_refused() -> None:
    edit = RenameAttribute(file=FILE, old="engine.old_name", new="new_name", count=2)
    outcome = rewrite('x = f"{engine.old_name} {engine.old_name}"\n', edit, Mark("rec"))
    if isinstance(outcome, Rewritten):
        assert 'x = f"{engine.new_name} {engine.new_name}"' in outcome.source
    else:
        assert isinstance(outcome, AnchorAmbiguous)
