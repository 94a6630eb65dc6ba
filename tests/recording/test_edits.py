"""What a hand did to a file -> the edits that say so: the most specific kind, and base with edits is the fork."""

from __future__ import annotations

from textwrap import dedent

import pytest

from patcher.recording.proof import FileEdits, applied, changes_of, edits_of_file, proven_edits
from patcher.rewrite import forget
from patcher.rewrite.edits import (
    AddArgument,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    ReplaceFunction,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
    SetRequirement,
    SetValue,
)
from patcher.rewrite.marker import without_markers
from patcher.rewrite.texts import same

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
    assert same(text, after, file)
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
        ("def launch(self, args, wait=True):", "def launch(self, args, wait=False):", SetDefault),
        ("def launch(self, args, wait=True):", "def launch(self, args, wait=True, *, port=8000):", Replace),
        ("def launch(self, args, wait=True):", "def launch(self, args, wait=True, port=8000):", SetParameter),
        ("    def stop(self):", "    @final\n    def stop(self):", SetDecorator),
        ("class Server(Base):", "class Server(Mixin, Base):", SetBase),
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


TABLES = """\
ENV = {"env_vars": {"NCCL_DEBUG": "WARN", "TOKENIZERS_PARALLELISM": "true"}}
NAMES = [
    "first",
    "second",
]


@dataclass
class Limits:
    timeout: int = 600


def rewards(data, scale=1):
    total = sum(data)
    report(total)
    check(data)
    return total * scale
"""


@pytest.mark.parametrize(
    ("old", "new", "kinds_found"),
    [
        ('"WARN"', '"INFO"', {SetEntry}),
        ('"true"}', '"true", "VLLM_USE_V1": "1"}', {SetEntry}),
        ('    "second",\n', '    "second",\n    "third",\n', {SetEntry}),
        ('    "first",\n', "", {SetEntry}),
        ("timeout: int = 600", "timeout: int = 900", {SetDefault}),
        # A new parameter and its use in the body.
        (
            "def rewards(data, scale=1):\n    total = sum(data)",
            "def rewards(data, scale=2, bias=0):\n    total = sum(data) + bias",
            {SetDefault, SetParameter, Replace},
        ),
        (
            "    total = sum(data)\n    report(total)\n    check(data)\n    return total * scale",
            "    found = list(data)\n    total = mean(found)\n    report(total)\n    found.sort()\n    found.pop()\n"
            "    check(data)\n    scale = 1 / scale\n    scale += bias()\n    return total / scale",
            {ReplaceFunction},
        ),
    ],
)
def test_entries_fields_and_whole_functions(old: str, new: str, kinds_found: set[type]) -> None:
    assert TABLES.count(old) == 1
    found = recorded(TABLES, TABLES.replace(old, new))
    assert set(kinds(found)) <= {kind.__name__ for kind in (*kinds_found, Replace)}
    assert {kind.__name__ for kind in kinds_found} & set(kinds(found))


def test_the_statements_of_a_change_are_those_of_one_reading() -> None:
    fork = TABLES.replace('"WARN"', '"INFO"')
    (change,) = changes_of("verl/server.py", TABLES, fork)
    forget()  # As the memory of trees does by itself where a file has many changes.
    assert next(proven_edits("verl/server.py", TABLES, fork, change))


def test_an_entry_of_a_dictionary_in_another_is_said_by_itself() -> None:
    (made,) = recorded(TABLES, TABLES.replace('"WARN"', '"INFO"')).made
    assert made.edits == (
        SetEntry(file="verl/server.py", container="env_vars", key='"NCCL_DEBUG"', old='"WARN"', new='"INFO"'),
    )


@pytest.mark.parametrize(
    ("file", "before", "after", "kind"),
    [
        ("verl/a.yaml", "a:\n  x: 1  # why\n  y: 2\nb: 1\n", "a:\n  x: 1  # why\n  y: 3\n  z: 4\nb: 1\n", SetValue),
        ("verl/a.yaml", "a:\n  x: 1\n  y: 2\nb: 1\n", "a:\n  x: 1\nb: 1\n", SetValue),
        ("verl/a.yaml", "a:\n  x: 1\nb: 1\n", "a:\n  x: 1\n\n  # Seconds.\n  z: 4\nb: 1\n", SetValue),
        ("pyproject.toml", "[tool.ruff]\nline-length = 120  # a\n", "[tool.ruff]\nline-length = 99  # a\n", SetValue),
        ("run.sh", "set -e\npython t.py \\\n  a=1 \\\n  b=2\n", "set -e\npython t.py \\\n  a=2 \\\n  b=2\n", SetValue),
        ("run.sh", "python t.py \\\n  a=1 \\\n  b=2\n", "python t.py \\\n  a=1 \\\n  b=2 \\\n  +c.d=$N\n", SetValue),
        ("run.sh", "export A=1\npython t.py\n", 'export A="x y"\npython t.py\n', SetValue),
        ("requirements.txt", "ray\nvllm==0.11.0\n", "ray\nvllm==0.20.2\nflash-attn\n", SetRequirement),
        ("requirements.txt", "torch<3\nray", "torch\nray\nujson\nninja", SetRequirement),  # No newline at the end.
        (
            "setup.py",
            'REQ = [\n    "ray",\n    "torch",\n]\n',
            'REQ = [\n    "ray>=2.5",\n    "torch",\n]\n',
            SetRequirement,
        ),
    ],
)
def test_values_and_requirements_of_other_files(file: str, before: str, after: str, kind: type) -> None:
    assert set(kinds(recorded(before, after, file))) == {kind.__name__}


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("notes.md", "one\ntwo\nthree\n", "one\n2\nthree\n"),
        ("notes.md", "one\ntwo", "one\ntwo\nthree\n"),
        ("run.sh", "set -e\nmkdir a\npython t.py\n", "set -e\nmkdir b\npython t.py\n"),
        ("verl/broken.py", "def f(:\n    a = 1\n    b = 2\n", "def f(:\n    a = 1\n    b = 3\n"),
    ],
)
def test_what_no_kind_says_is_lines_with_the_reason(file: str, before: str, after: str) -> None:
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


def test_a_function_added_behind_one_that_changed_too() -> None:
    start = "def load(path):\n    a(path)\n"
    before = start + "    b()\n    c()\n    d()\n    return path\n"
    after = start + "    b2()\n    c()\n    d()\n    e()\n    return path\n\n\ndef save(name):\n    write(name)\n"
    assert kinds(recorded(before, after, "verl/files.py")) == ["Replace", "Insert", "Insert"]


def test_functions_whose_docstrings_have_lines_of_blanks() -> None:
    before = (
        'def load(path):\n    """Load.\n    \n    More.\n    """\n    return 1\n\n\ndef save(path):\n    return 2\n'
    )
    found = recorded(before, "def other(name):\n    return 3\n\n\nCODE = other(1)\n", "verl/files.py")
    assert all(one.specific for one in found.made)


def test_blanks_at_the_end_of_a_line_are_no_change() -> None:
    assert edits_of_file("ci.yml", "permissions: \n  contents: read\n", "permissions:\n  contents: read\n").made == ()


def test_a_comment_between_changes_goes_with_them_where_no_line_tells_its_place() -> None:
    before = 'x = 1\n# One \ny = 2\n"""Two \n"""\nz = 3\n'
    after = 'x = 10\n# One, and more\ny = 20\n"""Two, and more\n"""\nz = 30\n'
    assert recorded(before, after, "verl/values.py").refused == ()


def test_edits_of_which_only_one_order_gives_the_fork_are_one_record() -> None:
    """`n()` goes before the lines `b()` and `x()`, which stand there once; the other edit makes `x2()` of `x()`."""
    found = recorded("a()\nb()\nx()\nb()\na()\n", "a()\nn()\nb()\nx2()\nb()\na()\n", "verl/runs.py")
    one, two = found.made
    assert one.tied is not None
    assert one.tied == two.tied


def test_a_change_that_the_others_stand_in_the_way_of_goes_with_them() -> None:
    before = "# A note.\n\n\ndef _score(source):\n    if source == 1:\n        return 1\n    return 2\n"
    after = (
        "# A note.\nfrom verl.own import old\n\n\n"
        "def score(source, limit):\n    if source == 3:\n        return limit\n    return 4\n\n\n"
        "@old\ndef _score(source):\n    return score(source, 5)\n"
    )
    recorded(before, after, "verl/scores.py")
