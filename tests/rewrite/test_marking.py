from __future__ import annotations

from patcher.rewrite import rewrite
from patcher.rewrite.edits import Mark, RemoveArgument, RenameArgument, Replace
from patcher.rewrite.outcome import Overlap, Rewritten, Unparseable
from tests.rewrite.cases import FILE, made

RENAME = RenameArgument(file=FILE, call="f", old="old", new="new")
WHOLE = Replace(file=FILE, pattern="f(old=$X)", replacement="g($X)")


def test_a_line_that_ends_inside_a_string_is_told_as_a_whole_statement() -> None:
    assert made('x = f(old=1, s="""a\n  b""",\n      t=2)\ny = 1\n', RENAME) == (
        '# x = f(old=1, s="""a  # Uky[rec]\n'
        '  # b""",  # Uky[rec]\n'
        "      # t=2)  # Uky[rec]\n"
        'x = f(new=1, s="""a\n'
        '  b""",\n'
        "      t=2)  # Uky[rec]\n"
        "y = 1\n"
    )


def test_a_line_behind_a_backslash_is_told_as_a_whole_statement() -> None:
    assert made("x = 1 + \\\n    f(old=1)\n", RENAME) == (
        "# x = 1 + \\  # Uky[rec]\n    # f(old=1)  # Uky[rec]\nx = 1 + \\\n    f(new=1)  # Uky[rec]\n"
    )


def test_a_header_is_marked_and_its_body_is_not() -> None:
    assert made('if f(old="""a\nb"""):\n    pass\n', RENAME) == (
        '# if f(old="""a  # Uky[rec]\n# b"""):  # Uky[rec]\nif f(new="""a\nb"""):  # Uky[rec]\n    pass\n'
    )


def test_the_comment_behind_a_line_stays_before_the_marker() -> None:
    assert made("f(old=1)  # noqa: E501\n", RENAME).endswith("f(new=1)  # noqa: E501  # Uky[rec]\n")


def test_newlines_and_all_else_stay_as_they_are() -> None:
    source = "a = 1\r\n\x0c\r\nb = 'x'\rc = 2\nf(old=1)\r\nd = '''\r\n'''\nlast"
    outcome = rewrite(source, RENAME, Mark("rec"))
    assert isinstance(outcome, Rewritten)
    assert outcome.source == source.replace("f(old=1)\r\n", "# f(old=1)  # Uky[rec]\r\nf(new=1)  # Uky[rec]\r\n")


def test_a_byte_order_mark_stays() -> None:
    assert made("\ufefff(old=1)\n", RENAME) == "\ufeff# f(old=1)  # Uky[rec]\nf(new=1)  # Uky[rec]\n"


def test_a_line_of_another_record_is_left_alone() -> None:
    source = "# f(older=1)  # Uky[other]\nf(old=1)  # Uky[other]\n"
    assert rewrite(source, RENAME, Mark("rec")) == Overlap(2, "other")
    assert rewrite(source.lower(), RENAME, Mark("rec")) == Overlap(2, "other")


def test_a_record_that_comes_after_another_may_edit_its_lines() -> None:
    result = made("f(old=1)  # Uky[other]\n", RENAME, may_touch=frozenset({"other"}))
    assert result == "# f(old=1)  # Uky[other, rec]\nf(new=1)  # Uky[other, rec]\n"


def test_a_line_beside_another_records_line_is_free() -> None:
    result = made("f(\n    # a=1,  # Uky[other]\n    b=1,  # Uky[other]\n    old=1,\n)\n", RENAME)
    assert result == (
        "f(\n    # a=1,  # Uky[other]\n    b=1,  # Uky[other]\n    # old=1,  # Uky[rec]\n    new=1,  # Uky[rec]\n)\n"
    )


def test_a_records_own_lines_are_not_kept_twice() -> None:
    first = made("f(old=1, k=2)\n", RENAME)
    assert made(first, RemoveArgument(file=FILE, call="f", old="k")) == (
        "# f(old=1, k=2)  # Uky[rec]\nf(new=1)  # Uky[rec]\n"
    )


def test_a_result_that_would_be_no_python_is_refused() -> None:
    edit = RenameArgument(file=FILE, call="f", old="old", new="new", value="(")
    assert isinstance(rewrite("f(old=1)\n", edit, Mark("rec")), Unparseable)
    assert rewrite("x = (\n", RENAME, Mark("rec")) == Unparseable(1, "'(' was never closed")


def test_lines_are_those_of_the_new_source() -> None:
    outcome = rewrite("a\nf(old=1)\nb\n", RENAME, Mark("rec"))
    assert isinstance(outcome, Rewritten)
    assert outcome.lines == (3,)
