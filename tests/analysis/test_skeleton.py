"""A module is read without the bodies of its definitions, and says the same of what it binds."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

from patcher.analysis.symbols import Symbols, sources
from patcher.analysis.symbols.scope import Scope, read_scope
from patcher.analysis.symbols.skeleton import without_bodies

PLAIN = '''\
import os
@mark(
    "a",
)
class Engine(Base, metaclass=Meta):
    """Serves.

    name = 3
    """

    def run(self):
        return {
            "a": 1,
        }
    # a comment at the end


def wide(
    first: int = (1),
    *rest: "list[int]",  # what (is left
) -> dict[str, int]:
    global held
    held = first


# a comment at the margin
def short(): return 1
async def later(x: str = "a:b"):
    await x
LIMIT = 3
if os.name:
    def under(y):
        z = y
try:
    from a import b
except ImportError:
    b = None
'''


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.rstrip(),
        PLAIN.replace("\n", "\r\n"),
        "",
        "# nothing\n",
        # Text at the margin within a quotation: above a definition, in its body, and as a default.
        'TEXT = """\ndef {name}(x):\n    return x\n"""\nAFTER = 1\n',
        'def write():\n    return """\ndef made(x):\n    return x\nKEY = 1\n"""\n\n\nAFTER = 1\n',
        "def f(x='('):\n    y = 1\n\n\nAFTER = 1\n",
        'def f(x="""\ndef g():\n"""):\n    y = 1\n\n\nAFTER = 1\n',
        "def f():\n    return [\n1,\n2]\nAFTER = 1\n",
        "def f():\n    x = 1 + \\\n2\nAFTER = 1\n",
        "class A:  # a: comment\n    x: int = 1\nclass B(A): pass\nclass C(\n    A\n): x = 1\n",
        "def f():  # '''\n    pass\n'''a\ndef g():\n    x = 1\n'''\n",
    ],
)
def test_the_names_that_are_bound_are_the_same(text: str) -> None:
    whole = ast.parse(text)
    summary = sources.summarize(text.encode())
    assert bound(summary.scope) == bound(read_scope(whole.body))
    for node in whole.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            (header,) = [one.value for one in summary.scope.names[node.name]]
            assert ast.dump(summary.syntax(header), include_attributes=True) == ast.dump(node, include_attributes=True)


def bound(scope: Scope) -> str:
    """All that a body binds, but for the line on which a definition ends."""
    return re.sub(r"last=\d+", "", repr(scope))


def test_bodies_are_not_parsed_before_something_is_asked_of_them() -> None:
    stripped = without_bodies(PLAIN.encode()).decode()
    assert "return" not in stripped.replace("def short(): return 1", "")
    assert stripped.count("\n") == PLAIN.count("\n")
    # What stands under a condition at the margin is no definition of the margin.
    assert "z = y" in stripped


def test_of_a_body_that_this_python_cannot_read_nothing_is_said(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text(
        textwrap.dedent(
            """
            LIMIT = 3

            class Engine:
                x = yet to come

            def run(first, last=1):
                return from 3
            """
        )
    )
    symbols = Symbols(package)
    assert symbols.has("pkg.LIMIT")
    assert symbols.has("pkg.run(last)")
    assert symbols.has("pkg.run(gone)") is False
    assert symbols.has("pkg.gone") is False
    assert symbols.has("pkg.Engine")
    assert symbols.has("pkg.Engine.start") is None
