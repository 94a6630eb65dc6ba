from __future__ import annotations

import pytest

from patcher.rewrite import matches
from patcher.rewrite.pattern import check_code, check_pattern, check_value, metavariables


@pytest.mark.parametrize(
    ("pattern", "source", "lines"),
    [
        ("f($X)", "f(1)\nf(1, 2)\nf(a=1)\nf()\n", (1,)),
        ("f(1, $$$)", "f(1)\nf(1, 2, a=3)\nf(2)\n", (1, 2)),
        ("f($$$, 3)", "f(1, 2, 3)\nf(3)\nf(3, 4)\n", (1, 2)),
        ("f(a=1, b=$B)", "f(b=2, a=1)\nf(a=1)\n", (1,)),
        ("f(a=1, $$$R)", "f(b=2, a=1)\nf(x, a=1)\nf(b=1)\n", (1, 2)),
        ("f(**$K)", "f(**a)\nf(*a)\n", (1,)),
        ("a=$X", "f(a=1)\na = 2\nb = a\n", (1, 2)),
        ("$X == $X", "a.b == a . b\na == b\n", (1,)),
        ("$_ == $_", "a == b\n", (1,)),
        ("[$A, $$$B]", "[1, 2]\n[]\n[*x]\n", (1, 3)),
        ("{'a': $X, **$$$R}", "{'b': 1, 'a': 2}\n{'b': 1}\n", (1,)),
        ("{'a': $X}", "{'a': 1}\n{'a': 1, **b}\n{**b}\n", (1,)),
        ("x.$M(1)", "x.go(1)\ny.go(1)\n", (1,)),
        ("'a'", 'x = "a"\ny = b"a"\n', (1,)),
        ("1", "x = 1\ny = 1.0\nz = True\n", (1,)),
        ("from $M import a", "from x.y import a\nfrom x import b\n", (1,)),
        ("await $X", "async def f():\n    await g()\n    h()\n", (2,)),
        ("def f($$$P): $$$B", "@dec\ndef f(a, *, b=1) -> int:\n    pass\ndef g(): pass\n", (1,)),
        ("def $F(self, $$$P):\n    $$$B", "class A:\n    def f(self, a): pass\n    def g(): pass\n", (2,)),
        ("try:\n    $$$A\nexcept E:\n    $$$B", "try:\n    a()\n    b()\nexcept E:\n    pass\n", (1,)),
        ("with open($P) as $F:\n    $$$B", "with open(p) as f:\n    a\n    b\n", (1,)),
        ("a()\n$$$\nb()", "a()\nx()\ny()\nb()\n", (1,)),
        ("a()\nb()", "if x:\n    a()\n    b()\na()\n", (2,)),
        ("f('$X')", "f('$X')\nf(1)\n", (1,)),
        ("x: $T = 1", "x: int = 1\nx = 1\n", (1,)),
        ("x = $V", "x: int = 1\nx = 1\ny = x = 1\n", (2,)),
    ],
)
def test_where_a_pattern_matches(pattern: str, source: str, lines: tuple[int, ...]) -> None:
    check_pattern(pattern)
    assert matches(source, pattern) == lines


def test_metavariables_are_found_outside_strings_and_comments() -> None:
    assert metavariables("f($A, $$$REST, $_, '$NOT')  # $NEITHER") == {"A", "REST"}


@pytest.mark.parametrize("pattern", ["", "# nothing", "$X", "$$$ALL", "f(", "f($x)", "a b"])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|matches) "):
        check_pattern(pattern)


def test_code_and_values() -> None:
    check_code("")
    check_code("if $A:\n    $$$B\n")
    check_value("a if b else c")
    check_value("[\n  1,\n]")
    for value in ("", "a = 1", "a\nb", "a, *", "1)", "a) + (b"):
        with pytest.raises(ValueError, match="no Python expression"):
            check_value(value)
    with pytest.raises(ValueError, match="line 2"):
        check_code("a\nif :\n")


def test_no_match_in_what_is_no_python() -> None:
    assert matches("x = (", "x = $V") == ()
