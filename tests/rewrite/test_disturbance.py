"""An edit lands the same on a source that was disturbed without changing its syntax tree, and loses nothing of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patcher.rewrite import rewrite
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    Mark,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    SetBase,
    SetDecorator,
    SetParameter,
)
from patcher.rewrite.outcome import AlreadyDone, Rewritten
from tests.disturb import comment_every, disturb, tree
from tests.lanes import ALL_CASES
from tests.rewrite.cases import FILE, text

SOURCE = text(
    '''
    """Doc.

    # Uky in a string is no marker
    """

    from __future__ import annotations

    import argparse
    from engine.api import (
        build_app,
        init_state,
    )
    from engine.utils import Parser, get_uri  # noqa: F401

    if argparse.SUPPRESS: from engine.utils import helper, other


    class Server:
        """One server."""

        async def run(self, args: argparse.Namespace, *, text: str = 'a "quoted" word') -> None:
            config = self.create({"key": [1, 2, 3], "more": (4, 5)}, usage="api")
            client = Engine.build(
                config=config,
                quiet=args.quiet,
                stats=f"{args.stats!r} {args.more}",
                prompt="""two
                lines""",
            )
            await client.reset()

            app = build_app(args)
            await init_state(client, config, app.state, args)
            if self.rank == 0: print("one"); self.engine.old_name(client, 'two')
            total = 1 + \\
                self.engine.old_name(3)
            return total
    '''
)

EDITS: dict[str, Edit] = {
    "move-import": MoveImport(file=FILE, old="engine.utils.Parser", new="engine.utils.args.Parser"),
    "move-import in brackets": MoveImport(file=FILE, old="engine.api.init_state", new="engine.state.init"),
    "move-import on a shared line": MoveImport(file=FILE, old="engine.utils.helper", new="engine.help.helper"),
    "rename-argument": RenameArgument(file=FILE, call="Engine.build", old="quiet", new="loud", value="not args.quiet"),
    "rename-argument beside a string": RenameArgument(file=FILE, call="Engine.build", old="prompt", new="text"),
    "remove-argument": RemoveArgument(file=FILE, call="Engine.build", old="stats"),
    "remove-argument inline": RemoveArgument(file=FILE, call="self.create", old="usage", within="Server.run"),
    "add-argument": AddArgument(file=FILE, call="Engine.build", new="extra", value="[1, 2]"),
    "add-argument inline": AddArgument(file=FILE, call="init_state", new="extra", value="None"),
    "rename-attribute": RenameAttribute(file=FILE, old="self.engine.old_name", new="new_name", count=2),
    "replace an expression": Replace(file=FILE, pattern="init_state($E, $C, $$$R)", replacement="init_state($E, $$$R)"),
    "replace statements": Replace(
        file=FILE,
        pattern="$A = build_app($X)\n$B",
        replacement="with lock():\n    $A = build_app($X)\n    $B",
    ),
    "remove a statement": Replace(file=FILE, pattern="await $X.reset()", replacement=""),
    "set-parameter": SetParameter(file=FILE, within="Server.run", new="extra: int = 1"),
    "set-decorator": SetDecorator(file=FILE, within="Server.run", new="final"),
    "set-base": SetBase(file=FILE, within="Server", new="Mixin"),
    "insert prologue": Insert(file=FILE, where="prologue", code="import os\nos.environ['A'] = '''1\n2'''"),
    "insert start": Insert(file=FILE, where="start", code="begin(args)", within="Server.run"),
    "insert end": Insert(file=FILE, where="end", code="done()", within="Server.run"),
    "insert before": Insert(file=FILE, where="before", code="check($E)", anchor="init_state($E, $$$)"),
    "insert after": Insert(file=FILE, where="after", code="if $C:\n    log($C)", anchor="$C = Engine.build($$$)"),
}
MARK = Mark("rec")


def lines(source: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", source)


def nothing_lost(before: str, after: str) -> None:
    """Every line stands in the new source as it was or as a comment, in order; every other line there is marked."""
    rest = iter(lines(after))
    for old in lines(before):
        body = old.strip()
        if not body:
            continue
        for new in rest:
            bare = re.sub(r"  # Uky\[rec\]$", "", new)
            if new == old or bare.strip() == f"# {body}":
                break
        else:
            raise AssertionError(f"lost: {old!r}")


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@settings(derandomize=True, max_examples=40 if ALL_CASES else 12, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_an_edit_lands_on_a_disturbed_source(edit: Edit, seed: int) -> None:
    plain = rewrite(SOURCE, edit, MARK)
    assert isinstance(plain, Rewritten), plain
    shaken = disturb(SOURCE, seed)
    outcome = rewrite(shaken, edit, MARK)
    assert isinstance(outcome, Rewritten), outcome
    assert tree(outcome.source) == tree(plain.source)
    nothing_lost(shaken, outcome.source)
    ends = set(re.findall(r"\r\n|\r|\n", shaken))
    assert set(re.findall(r"\r\n|\r|\n", outcome.source)) <= ends
    assert isinstance(rewrite(outcome.source, edit, MARK), AlreadyDone)
    assert isinstance(rewrite(disturb(outcome.source, seed + 1), edit, MARK), AlreadyDone)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_lands_on_a_source_with_a_comment_on_every_line(edit: Edit) -> None:
    plain = rewrite(SOURCE, edit, MARK)
    commented = comment_every(SOURCE, range(1, len(lines(SOURCE)) + 1))
    outcome = rewrite(commented, edit, MARK)
    assert isinstance(plain, Rewritten)
    assert isinstance(outcome, Rewritten), outcome
    assert tree(outcome.source) == tree(plain.source)
    nothing_lost(commented, outcome.source)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_clean_edit_says_the_same(edit: Edit) -> None:
    plain, clean = rewrite(SOURCE, edit, MARK), rewrite(SOURCE, edit, Mark("rec", style="clean"))
    assert isinstance(plain, Rewritten)
    assert isinstance(clean, Rewritten)
    assert tree(clean.source) == tree(plain.source)
    assert len(lines(clean.source)) <= len(lines(plain.source))


def test_the_disturber_disturbs() -> None:
    assert len({disturb(SOURCE, seed) for seed in range(20)}) > 15
