from __future__ import annotations

import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import AddArgument, Mark, RemoveArgument, RenameArgument
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, AnchorMissing, Rewritten
from tests.rewrite.cases import FILE, check, made, text

RENAME = RenameArgument(file=FILE, call="AsyncLLM.build", old="quiet", new="loud", value="args.loud")
PLAIN = RenameArgument(file=FILE, call="AsyncLLM.build", old="quiet", new="silent")
REMOVE = RemoveArgument(file=FILE, call="build", old="b")
ADD = AddArgument(file=FILE, call="build", new="z", value="1")


def test_the_keyword_and_its_value_are_renamed() -> None:
    check(
        RENAME,
        """
        engine = AsyncLLM.build(
            config=config,
            quiet=args.quiet,
            stats=True,
        )
        """,
        """
        engine = AsyncLLM.build(
            config=config,
            # quiet=args.quiet,  # Uky[rec]
            loud=args.loud,  # Uky[rec]
            stats=True,
        )
        """,
    )


def test_without_a_value_the_old_one_stays_as_it_is_written() -> None:
    check(
        PLAIN,
        """
        AsyncLLM.build(
            quiet=(args.quiet  # why
                   or False),
        )
        """,
        """
        AsyncLLM.build(
            # quiet=(args.quiet  # why  # Uky[rec]
            silent=(args.quiet  # why  # Uky[rec]
                   or False),
        )
        """,
    )


@pytest.mark.parametrize(
    "source",
    [
        "from vllm import AsyncLLM as Engine\nEngine.build(quiet=1)\n",
        "import vllm as v\nv.AsyncLLM.build(quiet=1)\n",
        "from vllm.engine import async_llm as m\nm.AsyncLLM.build(quiet=1)\n",
    ],
)
def test_aliases_are_resolved(source: str) -> None:
    assert "build(loud=args.loud)  # Uky[rec]" in made(source, RENAME)


def test_another_name_under_the_same_alias_is_not_meant() -> None:
    source = "from other import Thing as AsyncLLM\nAsyncLLM.build(quiet=1)\n"
    assert isinstance(rewrite(source, RENAME, Mark("rec")), AnchorMissing)


def test_the_style_clean_leaves_the_old_line_out() -> None:
    check(RENAME, "AsyncLLM.build(quiet=1)\n", "AsyncLLM.build(loud=args.loud)  # Uky[rec]\n", style="clean")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("build(b=1)", "build()"),
        ("build(b=1,)", "build()"),
        ("build(a, b=1)", "build(a)"),
        ("build(a, b=1, c=2)", "build(a, c=2)"),
        ("build(a, b=1,)", "build(a,)"),
        ("build(b=1, c=2)", "build(c=2)"),
        ("build((a), b=(1), **k)", "build((a), **k)"),
        ("build(*a, b=1)", "build(*a)"),
        ("build (a, b = 1 )", "build (a )"),
    ],
)
def test_an_argument_leaves_with_its_comma(before: str, after: str) -> None:
    assert made(f"x = {before}\n", REMOVE) == f"# x = {before}  # Uky[rec]\nx = {after}  # Uky[rec]\n"


def test_a_line_that_is_only_removed_leaves_the_commented_line() -> None:
    check(
        REMOVE,
        """
        build(
            a=1,
            b=2,  # two
            # about c
            c=3,
        )
        """,
        """
        build(
            a=1,
            # b=2,  # two  # Uky[rec]
            # about c
            c=3,
        )
        """,
    )
    check(
        REMOVE,
        "build(\n    a=1,\n    b=2\n)\n",
        "build(\n    a=1,\n    # b=2  # Uky[rec]\n)\n",
    )
    check(
        REMOVE,
        "build(a=1,\n      b=2,\n      c=3)\n",
        "build(a=1,\n      # b=2,  # Uky[rec]\n      c=3)\n",
    )
    check(REMOVE, "build(\n    b=2,\n)\n", "build(\n    # b=2,  # Uky[rec]\n)\n")
    check(REMOVE, "build(\n    a=1,\n    b=2,\n)\n", "build(\n    a=1,\n)\n", style="clean")


def test_a_value_over_several_lines_leaves_whole() -> None:
    check(
        REMOVE,
        """
        build(
            b=[
                1,
            ],
            c=3,
        )
        """,
        """
        build(
            # b=[  # Uky[rec]
                # 1,  # Uky[rec]
            # ],  # Uky[rec]
            c=3,
        )
        """,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("build()", "build(z=1)"),
        ("build(a)", "build(a, z=1)"),
        ("build(a, b=2,)", "build(a, b=2, z=1,)"),
        ("build(x for x in y)", "build((x for x in y), z=1)"),
        ("build(a, **k)", "build(a, **k, z=1)"),
        ("build((a))", "build((a), z=1)"),
    ],
)
def test_an_argument_is_appended(before: str, after: str) -> None:
    assert made(f"x = {before}\n", ADD) == f"# x = {before}  # Uky[rec]\nx = {after}  # Uky[rec]\n"


def test_an_argument_gets_a_line_of_its_own_where_the_others_have_one() -> None:
    check(ADD, "build(\n    a=1,  # one\n)\n", "build(\n    a=1,  # one\n    z=1,  # Uky[rec]\n)\n")
    check(
        ADD,
        "build(\n    a=1  # one\n)\n",
        "build(\n    # a=1  # one  # Uky[rec]\n    a=1,  # one  # Uky[rec]\n    z=1  # Uky[rec]\n)\n",
    )
    check(
        ADD,
        "build(\n    a=1\n)\n",
        "build(\n    # a=1  # Uky[rec]\n    a=1,  # Uky[rec]\n    z=1  # Uky[rec]\n)\n",
    )
    check(
        ADD,
        "build(\n    a, b=1, **k\n)\n",
        "build(\n    # a, b=1, **k  # Uky[rec]\n    a, b=1, **k, z=1  # Uky[rec]\n)\n",
    )


@pytest.mark.parametrize(
    "source",
    [
        "AsyncLLM.build(loud=args.loud)\n",
        "# AsyncLLM.build(quiet=args.quiet)\nAsyncLLM.build(\n  loud = not args.quiet,\n)\n",
        "if version < 12:\n    e = AsyncLLM.build(quiet=1)\nelse:\n    e = AsyncLLM.build(loud=0)\n",
        "e = AsyncLLM.build(loud=0) if new else AsyncLLM.build(quiet=1)\n",
        "try:\n    e = AsyncLLM.build(loud=0)\nexcept TypeError:\n    e = AsyncLLM.build(quiet=1)\n",
        "def f():\n    if old:\n        return AsyncLLM.build(quiet=1)\n    return AsyncLLM.build(loud=0)\n",
        "def f():\n    if new:\n        return AsyncLLM.build(loud=0)\n    return AsyncLLM.build(quiet=1)\n",
    ],
)
def test_a_hand_edit_with_the_effect_is_seen(source: str) -> None:
    assert isinstance(rewrite(source, RENAME, Mark("rec")), AlreadyDone)


def test_a_branch_of_the_same_call_without_the_argument_is_a_guard() -> None:
    guarded = "if old:\n    build(1, b=2)\nelse:\n    build(1)\n"
    assert isinstance(rewrite(guarded, REMOVE, Mark("rec")), AlreadyDone)
    other = "if gpu:\n    build(1, b=2)\nelse:\n    build(2)\n"
    assert isinstance(rewrite(other, REMOVE, Mark("rec")), Rewritten)


def test_a_place_done_by_hand_makes_up_the_count() -> None:
    source = "AsyncLLM.build(quiet=1)\nAsyncLLM.build(loud=0)  # uky\n"
    both = RenameArgument(file=FILE, call="AsyncLLM.build", old="quiet", new="loud", count=2)
    outcome = rewrite(source, both, Mark("rec"))
    assert isinstance(outcome, Rewritten)
    assert (outcome.lines, outcome.by_hand) == ((2,), (3,))


def test_more_anchors_than_expected_are_never_guessed_at() -> None:
    outcome = rewrite("AsyncLLM.build(quiet=1)\nAsyncLLM.build(quiet=2)\n", RENAME, Mark("rec"))
    assert outcome == AnchorAmbiguous(1, (1, 2))


def test_no_call_at_all_is_missing_with_the_nearest_call() -> None:
    source = text(
        """
        other()
        AsyncLLM.from_config(quiet=1)
        """
    )
    for edit in (RENAME, RemoveArgument(file=FILE, call="AsyncLLM.build", old="quiet")):
        outcome = rewrite(source, edit, Mark("rec"))
        assert isinstance(outcome, AnchorMissing)
        assert outcome.nearest is not None
        assert outcome.nearest.line == 2
    assert isinstance(rewrite("other()\n", RENAME, Mark("rec")), AnchorMissing)


def test_a_scope_that_is_gone_names_the_one_like_it() -> None:
    edit = RenameArgument(file=FILE, call="AsyncLLM.build", old="quiet", new="loud", within="Server.run_server")
    outcome = rewrite("class HttpServer:\n    async def run_server(self):\n        pass\n", edit, Mark("rec"))
    assert isinstance(outcome, AnchorMissing)
    assert outcome.nearest is not None
    assert outcome.nearest.text == "async def run_server(self):"


def test_nested_scopes_are_named_by_their_path() -> None:
    source = "def outer():\n    def inner():\n        AsyncLLM.build(quiet=1)\n    AsyncLLM.build(quiet=2)\n"
    edit = RenameArgument(file=FILE, call="AsyncLLM.build", old="quiet", new="loud", within="outer.inner")
    assert "        AsyncLLM.build(loud=1)  # Uky[rec]\n    AsyncLLM.build(quiet=2)\n" in made(source, edit)
