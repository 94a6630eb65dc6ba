from __future__ import annotations

from patcher.records.model import Mark, RenameAttribute
from patcher.rewriting import rewrite
from patcher.rewriting.outcome import AlreadyDone, AnchorMissing
from tests.rewriting.cases import FILE, made

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
