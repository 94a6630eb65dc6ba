from __future__ import annotations

import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import Mark, MoveImport
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, AnchorMissing
from tests.rewrite.cases import FILE, check, made, text

MOVE = MoveImport(file=FILE, old="vllm.utils.Parser", new="vllm.utils.argparse_utils.Parser")
RENAME = MoveImport(file=FILE, old="vllm.moe.FusedMoE", new="vllm.moe.experts.RoutedExperts")
MODULE = MoveImport(file=FILE, old="vllm.worker.worker_base", new="vllm.v1.worker.worker_base")


def test_a_sole_name_is_imported_from_elsewhere() -> None:
    check(
        MOVE,
        "from vllm.utils import Parser\n",
        """
        # from vllm.utils import Parser  # Uky[rec]
        from vllm.utils.argparse_utils import Parser  # Uky[rec]
        """,
    )


def test_an_import_of_several_names_is_split() -> None:
    check(
        MOVE,
        "import os\nfrom vllm.utils import Parser, uri as u\nx = 1\n",
        """
        import os
        # from vllm.utils import Parser, uri as u  # Uky[rec]
        from vllm.utils import uri as u  # Uky[rec]
        from vllm.utils.argparse_utils import Parser  # Uky[rec]
        x = 1
        """,
    )


def test_one_name_per_line_stays_one_per_line() -> None:
    check(
        MOVE,
        """
        from vllm.utils import (
            before,  # first
            Parser,  # the parser
            # about the last
            after,
        )
        """,
        """
        from vllm.utils import (
            before,  # first
            # Parser,  # the parser  # Uky[rec]
            # about the last
            after,
        )
        from vllm.utils.argparse_utils import Parser  # Uky[rec]
        """,
    )


def test_the_local_name_stays() -> None:
    check(
        RENAME,
        "from vllm.moe import FusedMoE\n",
        """
        # from vllm.moe import FusedMoE  # Uky[rec]
        from vllm.moe.experts import RoutedExperts as FusedMoE  # Uky[rec]
        """,
    )
    check(
        RENAME,
        "from vllm.moe import FusedMoE as Experts\n",
        """
        # from vllm.moe import FusedMoE as Experts  # Uky[rec]
        from vllm.moe.experts import RoutedExperts as Experts  # Uky[rec]
        """,
    )


def test_an_alias_equal_to_the_new_name_is_kept_valid() -> None:
    check(
        RENAME,
        "from vllm.moe import FusedMoE as RoutedExperts\n",
        """
        # from vllm.moe import FusedMoE as RoutedExperts  # Uky[rec]
        from vllm.moe.experts import RoutedExperts as RoutedExperts  # Uky[rec]
        """,
    )


def test_noqa_stays_in_force() -> None:
    check(
        MOVE,
        "from vllm.utils import Parser, uri  # noqa: F401\n",
        """
        # from vllm.utils import Parser, uri  # noqa: F401  # Uky[rec]
        from vllm.utils import uri  # noqa: F401  # Uky[rec]
        from vllm.utils.argparse_utils import Parser  # noqa: F401  # Uky[rec]
        """,
    )


@pytest.mark.parametrize("head", ["def f():", "if x:", "try:\n    pass\nfinally:"])
def test_imports_are_found_in_blocks(head: str) -> None:
    result = made(f"{head}\n    from vllm.utils import Parser\n", MOVE)
    assert result.endswith("    from vllm.utils.argparse_utils import Parser  # Uky[rec]\n")


def test_statements_that_share_a_line() -> None:
    assert made("if x: from vllm.utils import Parser, uri\n", MOVE) == (
        "# if x: from vllm.utils import Parser, uri  # Uky[rec]\n"
        "if x: from vllm.utils import uri; from vllm.utils.argparse_utils import Parser  # Uky[rec]\n"
    )
    assert made("a = 1; from vllm.utils import Parser; b = 2\n", MOVE) == (
        "# a = 1; from vllm.utils import Parser; b = 2  # Uky[rec]\n"
        "a = 1; from vllm.utils.argparse_utils import Parser; b = 2  # Uky[rec]\n"
    )


def test_a_continued_line_is_told_as_a_whole() -> None:
    assert made("from vllm.utils import \\\n    Parser, \\\n    uri\n", MOVE) == (
        "# from vllm.utils import \\  # Uky[rec]\n"
        "    # Parser, \\  # Uky[rec]\n"
        "    # uri  # Uky[rec]\n"
        "from vllm.utils import \\\n"
        "    uri  # Uky[rec]\n"
        "from vllm.utils.argparse_utils import Parser  # Uky[rec]\n"
    )


def test_a_module_moves() -> None:
    check(
        MODULE,
        "from vllm.worker.worker_base import A, B\n",
        """
        # from vllm.worker.worker_base import A, B  # Uky[rec]
        from vllm.v1.worker.worker_base import A, B  # Uky[rec]
        """,
    )
    check(
        MODULE,
        "import vllm.worker.worker_base as wb\n",
        """
        # import vllm.worker.worker_base as wb  # Uky[rec]
        import vllm.v1.worker.worker_base as wb  # Uky[rec]
        """,
    )
    check(
        MODULE,
        "from vllm.worker import worker_base\n",
        """
        # from vllm.worker import worker_base  # Uky[rec]
        from vllm.v1.worker import worker_base  # Uky[rec]
        """,
    )


def test_the_uses_of_a_plain_module_import_move_along() -> None:
    check(
        MODULE,
        "import vllm.worker.worker_base\nx = vllm.worker.worker_base.A()\n",
        """
        # import vllm.worker.worker_base  # Uky[rec]
        import vllm.v1.worker.worker_base  # Uky[rec]
        # x = vllm.worker.worker_base.A()  # Uky[rec]
        x = vllm.v1.worker.worker_base.A()  # Uky[rec]
        """,
    )


def test_a_plain_module_import_is_refused_where_its_package_would_be_unbound() -> None:
    edit = MoveImport(file=FILE, old="old.mod", new="fresh.mod")
    outcome = rewrite("import old.mod\nold.mod.f(old.other)\n", edit, Mark("rec"))
    assert isinstance(outcome, AnchorMissing)


def test_a_star_import_is_no_anchor() -> None:
    assert isinstance(rewrite("from vllm.utils import *\n", MOVE, Mark("rec")), AnchorMissing)


@pytest.mark.parametrize(
    "source",
    [
        "from vllm.utils.argparse_utils import Parser\n",
        "from vllm.v1.utils import Parser\n",
        "try:\n    from vllm.utils import Parser\nexcept ImportError:\n    from vllm.utils.args import Parser\n",
        "try:\n    from vllm.utils.args import Parser\nexcept Exception:\n    from vllm.utils import Parser\n",
        "try:\n    from vllm.utils import Parser\nexcept ImportError:\n    from local.copies import Parser\n",
        "if new:\n    from vllm.utils.argparse_utils import Parser\nelse:\n    from vllm.utils import Parser, uri\n",
    ],
)
def test_a_hand_edit_with_the_effect_is_seen(source: str) -> None:
    outcome = rewrite(source, MOVE, Mark("rec"))
    assert isinstance(outcome, AlreadyDone), outcome
    assert not outcome.marked
    marked = rewrite(f"# uky: moved\n{source}", MOVE, Mark("rec"))
    assert isinstance(marked, AlreadyDone)
    assert marked.marked


def test_a_fallback_that_is_no_import_does_not_count() -> None:
    source = "try:\n    from vllm.utils import Parser\nexcept ImportError:\n    Parser = None\n"
    assert "    from vllm.utils.argparse_utils import Parser  # Uky[rec]\n" in made(source, MOVE)


def test_an_unrelated_branch_is_no_guard() -> None:
    source = "if npu:\n    from other import Parser\nelse:\n    from vllm.utils import Parser\n"
    assert "    from vllm.utils.argparse_utils import Parser  # Uky[rec]\n" in made(source, MOVE)


def test_every_import_is_moved_and_a_count_is_exact() -> None:
    twice = "from vllm.utils import Parser\ndef f():\n    from vllm.utils import Parser\n"
    assert made(twice, MOVE).count("argparse_utils") == 2
    once = MoveImport(file=FILE, old=MOVE.old, new=MOVE.new, count=1)
    assert rewrite(twice, once, Mark("rec")) == AnchorAmbiguous(1, (1, 3))
    both = MoveImport(file=FILE, old=MOVE.old, new=MOVE.new, count=2)
    assert made(twice, both).count("argparse_utils") == 2
    inner = MoveImport(file=FILE, old=MOVE.old, new=MOVE.new, within="f")
    assert made(twice, inner).startswith("from vllm.utils import Parser\n")


def test_the_nearest_candidate_is_the_same_name_from_elsewhere() -> None:
    outcome = rewrite(text("import os\nfrom somewhere.utils import Parser\n"), MOVE, Mark("rec"))
    assert isinstance(outcome, AnchorMissing)
    assert outcome.nearest is not None
    assert (outcome.nearest.line, outcome.nearest.text) == (2, "from somewhere.utils import Parser")
