"""What a hand did to a file -> the edits that say so: the most specific kind, and base with edits is the fork."""

from __future__ import annotations

from textwrap import dedent

import pytest

from patcher.recording.proof import FileEdits, applied, edits_of_file
from patcher.recording.texts import same, without_markers
from patcher.rewrite.edits import (
    AddArgument,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
)

BASE = '''\
"""A server."""

import os
from vllm.utils import Parser, get_uri

LIMIT = 3


class Server(Base):
    """Serves."""

    port = 1

    def launch(self, args, wait=True):
        parser = Parser()
        self.engine = Engine.start(
            config=args.config,
            disable_log=args.disable_log,
        )
        if wait:
            self.engine.wait_ready()
            report("up")
        else:
            report("later")
        return parser, get_uri("h", 1)

    def stop(self):
        self.engine.close()
        report("down")
'''


def recorded(before: str, after: str, file: str = "verl/server.py") -> FileEdits:
    found = edits_of_file(file, before, after)
    assert not found.refused
    text: str | None = before
    for one in sorted(found.made, key=lambda one: not one.specific):
        text = applied(text or "", one.edits)
    assert text is not None
    assert same(text, after, is_python=file.endswith(".py"))
    return found


def kinds(found: FileEdits) -> list[str]:
    return [type(edit).__name__ for one in found.made for edit in one.edits]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (
            "from vllm.utils import Parser, get_uri",
            "from vllm.utils.a import Parser\nfrom vllm.utils.b import get_uri",
            MoveImport,
        ),
        ("            disable_log=args.disable_log,", "            enable_log=args.disable_log,", RenameArgument),
        ("            disable_log=args.disable_log,", "            enable_log=not args.disable_log,", RenameArgument),
        ("            disable_log=args.disable_log,\n", "", RemoveArgument),
        ("disable_log=args.disable_log,\n", "disable_log=args.disable_log,\n            seed=7,\n", AddArgument),
        ("self.engine.wait_ready()", "self.engine.wait_started()", RenameAttribute),
        ("config=args.config", "config=dict(args.config)", Replace),
        ("LIMIT = 3", "LIMIT = int(os.environ['LIMIT'])", Replace),
        ("def launch(self, args, wait=True):", "def launch(self, args, wait=False):", Replace),
        ("def launch(self, args, wait=True):", "def launch(self, args, wait=True, *, port=8000):", Replace),
        ("    def stop(self):", "    @final\n    def stop(self):", Replace),
        ("class Server(Base):", "class Server(Mixin, Base):", Replace),
        ("        if wait:", "        if wait and not args.quick:", Replace),
        ("    port = 1\n", "", Replace),
        ('            report("up")\n', "", Replace),
        ('        report("down")\n', '        report("down")\n        os.sync()\n', Insert),
        ("        parser = Parser()", "        os.umask(0)\n        parser = Parser()", Insert),
        ("LIMIT = 3\n", "LIMIT = 3\n\n\ndef helper():\n    return LIMIT\n", Insert),
        (
            "    def stop(self):",
            "    def again(self):\n        return self.launch(None)\n\n    def stop(self):",
            Insert,
        ),
        ('            report("later")', '            report("later")\n            os.sync()', Insert),
        ("import os\n", "import os\nimport sys\n", Insert),
    ],
)
def test_the_most_specific_kind_says_it(old: str, new: str, kind: type) -> None:
    assert BASE.count(old) == 1
    found = recorded(BASE, BASE.replace(old, new))
    assert set(kinds(found)) == {kind.__name__}


def test_what_a_method_says_in_several_places_stays_several_changes() -> None:
    after = BASE.replace("LIMIT = 3", "LIMIT = 4").replace('report("down")', 'report("gone")')
    assert kinds(recorded(BASE, after)) == ["Replace", "Replace"]


def test_a_statement_that_stands_there_twice_is_named_with_its_neighbour() -> None:
    base = "def run():\n    sync()\n    load()\n    sync()\n    send()\n"
    found = recorded(base, base.replace("    sync()\n    send()", "    sync(fast=True)\n    send()"))
    assert kinds(found) == ["Replace"]
    assert found.made[0].edits[0].pattern in ("load()\nsync()", "sync()\nsend()")  # type: ignore[union-attr]


def test_a_comment_above_the_new_line_comes_with_it() -> None:
    found = recorded(BASE, BASE.replace("LIMIT = 3", "# The cluster has four.\nLIMIT = 4"))
    assert kinds(found) == ["Replace"]


def test_comments_alone_are_lines() -> None:
    base = "# one\nx = 1\ny = 2\n"
    found = recorded(base, base.replace("# one", "# two"))
    assert kinds(found) == ["ReplaceLines"]
    assert found.made[0].comments_alone
    assert "comments" in str(found.made[0].why)


def test_a_docstring_of_several_lines_keeps_its_indentation() -> None:
    text = '        """Once more.\n\n        As before.\n        """\n'
    new = f"    def again(self):\n{text}        return 1\n\n    def stop(self):"
    found = recorded(BASE, BASE.replace("    def stop(self):", new))
    assert kinds(found) == ["Insert"]


def test_a_try_around_an_import_is_one_replacement() -> None:
    old = "from vllm.utils import Parser, get_uri"
    new = f"try:\n    {old}\nexcept ImportError:\n    from vllm.utils.a import Parser, get_uri"
    assert kinds(recorded(BASE, BASE.replace(old, new))) == ["Replace"]


def test_many_edits_of_one_call_are_one_change() -> None:
    base = "r = make(\n    a=1,\n    b=2,\n    c=3,\n    d=4,\n    e=5,\n)\n"
    found = recorded(base, "r = make(\n    a=1,\n    size=9,\n    e=5,\n)\n")
    assert len(found.made) == 1
    assert found.made[0].specific


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("verl/a.yaml", "a:\n  x: 1\n  y: 2\nb: 1\n", "a:\n  x: 1\n  y: 3\n  z: 4\nb: 1\n"),
        ("run.sh", "set -e\npython t.py \\\n  a=1 \\\n  b=2\n", "set -e\npython t.py \\\n  a=2 \\\n  b=2\n"),
        ("requirements.txt", "ray\nvllm==0.11.0\n", "ray\nvllm==0.20.2\nflash-attn\n"),
        ("verl/broken.py", "def f(:\n    a = 1\n    b = 2\n", "def f(:\n    a = 1\n    b = 3\n"),
    ],
)
def test_other_files_are_lines_with_the_reason(file: str, before: str, after: str) -> None:
    found = edits_of_file(file, before, after)
    if file == "verl/broken.py":  # What libcst cannot read cannot be marked either, but nothing is lost without a word.
        assert found.made or found.refused
        return
    assert not found.refused
    assert set(kinds(found)) == {"ReplaceLines"}
    assert all(str(one.why) for one in found.made)


def test_markers_of_a_hand_are_no_part_of_it() -> None:
    fork = dedent(
        """\
        import os
        # limit = 3  # Uky
        limit = 4  # Uky: four nodes
        text = "# Uky"
        """
    )
    assert without_markers(fork, "Uky") == 'import os\nlimit = 4\ntext = "# Uky"\n'
