"""What libcst cannot read, or would crash on, is one clear answer; what it drops on the way stays in the file."""

from __future__ import annotations

import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import AddArgument, Edit, Mark, RenameArgument, SetDefault, SetParameter
from patcher.rewrite.outcome import Rewritten, Unparseable
from tests.rewrite.cases import FILE

RENAME = RenameArgument(file=FILE, call="serve", old="old", new="new")
CHAINS = {
    "plus": lambda n: "x = " + " + ".join(["a"] * n),
    "attributes": lambda n: "x = a" + ".a" * n,
    "calls": lambda n: "x = a" + "()" * n,
    "subscripts": lambda n: "x = a" + "[a]" * n,
    "parentheses": lambda n: "x = " + "(" * n + "a" + ")" * n,
    "parentheses and comments": lambda n: "x = " + "( # why\n" * n + "a" + ")" * n,
    "lists": lambda n: "x = " + "[" * n + "]" * n,
    "elif": lambda n: "if a:\n    pass\n" + "elif a:\n    pass\n" * n,
    "strings": lambda n: "x = (" + '"a" ' * n + ")",
    "strings on lines": lambda n: "x = (\n" + "    'a'\n" * n + ")",
    "and": lambda n: "x = " + " and ".join(["a"] * n),
    "or on lines": lambda n: "x = (\n" + "\n    or ".join(["a"] * n) + "\n)",
    "not": lambda n: "x = " + "not " * n + "a",
    "minus": lambda n: "x = " + "-" * n + "a",
    "power": lambda n: "x = " + "**".join(["a"] * n),
    "conditions": lambda n: "x = " + "a if a else " * n + "a",
    "lambdas": lambda n: "x = " + "lambda: " * n + "a",
    "f-string": lambda n: 'x = f"{a' + ".a" * n + '}"',
    "with newer syntax": lambda n: "type X = int\nx = " + " + ".join(["a"] * n),
}
FLAT = {
    "comparisons": lambda n: "x = " + " < ".join(["a"] * n),
    "items": lambda n: "x = [" + "a, " * n + "]",
    "statements": lambda n: "a\n" * n,
    "targets": lambda n: "a = " * n + "a",
    "a comment behind a bracket": lambda n: "x = (" + "# " * n + "\na)",
    "comments behind a bracket": lambda n: "x = (" + "# a\n" * n + "a)",
}


@pytest.mark.parametrize("count", [400, 1000, 20_000])
@pytest.mark.parametrize("chain", CHAINS)
def test_what_nests_too_deeply_is_an_answer_and_no_crash(chain: str, count: int) -> None:
    outcome = rewrite(f"serve(old=1)\n{CHAINS[chain](count)}\n", RENAME, Mark("rec"))
    if count == 400 and isinstance(outcome, Rewritten):
        return
    assert isinstance(outcome, Unparseable)
    assert outcome.message == "it nests too deeply to be rewritten; split the longest statement into several"


@pytest.mark.parametrize("chain", FLAT)
def test_what_is_only_long_is_rewritten(chain: str) -> None:
    outcome = rewrite(f"serve(old=1)\n{FLAT[chain](1500)}\n", RENAME, Mark("rec"))
    assert isinstance(outcome, Rewritten)


@pytest.mark.parametrize("chain", CHAINS)
def test_as_deep_as_anybody_writes(chain: str) -> None:
    outcome = rewrite(f"serve(old=1)\n{CHAINS[chain](70)}\n", RENAME, Mark("rec"))
    assert isinstance(outcome, Rewritten)


DROPPED = {
    "space before a colon": "try:\n    a()\nexcept E :\n    pass\n",
    "space behind except": "try:\n    a()\nexcept  (A, B)  as e  :\n    pass\n",
    "form feed before code": "\x0ca = 1\n",
    "form feed between": "a = 1\n\x0c\nb = 2\n\x0cc = 3\n",
    "backslash before a statement": "a = 1\n\\\nb = 2\n",
    "spaces at the ends": "a = 1   \nb = [  \n  1,\t\n]  \n",
    "tabs": "if a:\n\tb = 1\n\tif c:\n\t\td()\n",
    "comment oddly indented": "if a:\n    b()\n\n  # odd\nc()\n",
    "last comment oddly indented": "if a:\n    b()\n\n  # odd\n",
    "comment deeper": "if a:\n    b()\n        # deeper\n\n    # again\nc()\n",
    "no last newline": "a = 1\nb = 2",
    "blank lines with white space": "a = 1\n   \n\t\nb = 2\n",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", DROPPED)
def test_white_space_stays_in_lines_that_no_edit_owns(name: str, newline: str) -> None:
    text = DROPPED[name].replace("\n", newline)
    for before, behind in (("", text), (text if text.endswith(newline) else text + newline, "")):
        source = f"{before}serve(old=1){newline}{behind}"
        outcome = rewrite(source, RENAME, Mark("rec", style="clean"))
        assert isinstance(outcome, Rewritten), outcome
        assert outcome.source == f"{before}serve(new=1)  # Uky[rec]{newline}{behind}"
        more = AddArgument(file=FILE, call="serve", new="x", value="2")
        again = rewrite(outcome.source, more, Mark("rec", style="clean"))
        assert isinstance(again, Rewritten), again
        assert again.source == f"{before}serve(new=1, x=2)  # Uky[rec]{newline}{behind}"


@pytest.mark.parametrize("head", ["def run(a=serve(old=1)):", "@app(serve(old=1))\ndef run():", "with serve(old=1):"])
def test_white_space_stays_below_a_header_that_is_edited(head: str) -> None:
    body = "    try:\n        a()\n    except E :\n        pass\n    \x0cb()\n"
    outcome = rewrite(f"{head}\n{body}", RENAME, Mark("rec", style="clean"))
    assert isinstance(outcome, Rewritten), outcome
    lines = head.split("\n")
    wanted = [line.replace("old", "new") + ("  # Uky[rec]" if "old" in line else "") for line in lines]
    assert outcome.source == "\n".join(wanted) + "\n" + body


def test_a_backslash_alone_first_in_a_block_is_said() -> None:
    outcome = rewrite("if a:\n    \\\n    serve(old=1)\n", RENAME, Mark("rec"))
    assert isinstance(outcome, Unparseable)
    assert "take that line out" in outcome.message


NEWER: dict[str, str] = {
    "quotes in an f-string (3.12)": 'x = f"{serve(old=1)} {a["b"]}"\n',
    "type alias (3.12)": "type X = int\nserve(old=1)\n",
    "type parameters (3.12)": "def run[T: int](a: T) -> T:\n    return serve(old=1)\n",
    "generic class (3.12)": "class Run[T]:\n    x = serve(old=1)\n",
    "exception groups (3.11)": "try:\n    serve(old=1)\nexcept* ValueError:\n    pass\n",
    "unpacking in a subscript (3.11)": "a: tuple[*b] = serve(old=1)\n",
}


@pytest.mark.parametrize("name", NEWER)
def test_syntax_newer_than_the_running_python_is_rewritten(name: str) -> None:
    edit: Edit = RENAME
    outcome = rewrite(NEWER[name], edit, Mark("rec", style="clean"))
    assert isinstance(outcome, Rewritten), outcome
    assert outcome.source.replace("  # Uky[rec]", "") == NEWER[name].replace("old=", "new=")


@pytest.mark.parametrize(
    "edit",
    [
        SetDefault(file=FILE, within="serve", parameter="host", new='"0.0.0.0"'),
        SetDefault(file=FILE, within="serve", parameter="last", old="1"),
        SetParameter(file=FILE, within="serve", old="last=1", new="last"),
    ],
)
def test_a_parameter_without_a_default_may_not_follow_one_with_it(edit: Edit) -> None:
    source = "import os\n\n\ndef serve(host, port, first=0, last=1):\n    pass\n"
    made = rewrite(source, edit, Mark("rec"))
    assert isinstance(made, Unparseable)
    assert made.line == 4
    assert "default" in made.message
