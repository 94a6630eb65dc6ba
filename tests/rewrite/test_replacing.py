from __future__ import annotations

import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import Insert, Mark, Replace
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, AnchorMissing, Rewritten
from tests.rewrite.cases import FILE, check, made, text


def replace(pattern: str, replacement: str, **more: object) -> Replace:
    return Replace(file=FILE, pattern=pattern, replacement=replacement, **more)  # type: ignore[arg-type]


def insert(where: str, code: str, **more: object) -> Insert:
    return Insert(file=FILE, where=where, code=code, **more)  # type: ignore[arg-type]


STATE = replace("init($E, $C, $A, $R)", "init($E, $A, $R)")


@pytest.mark.parametrize(
    ("pattern", "replacement", "before", "after"),
    [
        ("init($E, $C, $A)", "init($E, $A)", "await init(engine, config, app)", "await init(engine, app)"),
        ("f($X)", "g.h($X)", "y = f(a + b)", "y = g.h(a + b)"),
        ("$A * 2", "double($A)", "y = (a + b) * 2", "y = double(a + b)"),
        ("double($A)", "$A * 2", "y = double(a + b) ** 2", "y = ((a + b) * 2) ** 2"),
        ("f($$$ARGS)", "g(1, $$$ARGS)", "f(a, *b, c=1)", "g(1, a, *b, c=1)"),
        ("f($$$ARGS)", "g(1, $$$ARGS)", "f()", "g(1)"),
        ("f($X, k=$V, $$$R)", "f($X, $$$R, v=$V)", "f(1, j=2, k=3)", "f(1, j=2, v=3)"),
        ("k=$X", "j=not $X", "f(1, k=a)", "f(1, j=not a)"),
        ("name = $X", "other = $X", "name = 1", "other = 1"),
        ("f($X, $X)", "f2($X)", "f(a.b, a.b)", "f2(a.b)"),
        ("x[$I]", "x.get($I)", "y = x['模型'] + 1", "y = x.get('模型') + 1"),
        ("if $C: $$$B", "if not $C: $$$B", "if a: b()", "if not a: b()"),
        ("lambda: $X", "$X", "f(lambda: 1 + 2)", "f(1 + 2)"),
        ("'old'", "'new'", 'f("old")', "f('new')"),
        ("f(x, f'{a:.2f} s')", "f(x, f'{a} s')", "f(x, f'{a:.2f} s')", "f(x, f'{a} s')"),
        ("f(x, f'{a} s')", "f(x, f'{a:.2f} s')", "f(x, f'{a} s')", "f(x, f'{a:.2f} s')"),
    ],
)
def test_an_expression_is_replaced(pattern: str, replacement: str, before: str, after: str) -> None:
    outcome = rewrite(before + "\n", replace(pattern, replacement), Mark("rec"))
    assert isinstance(outcome, Rewritten), outcome
    assert outcome.source == f"# {before}  # Uky[rec]\n{after}  # Uky[rec]\n"


def test_a_call_over_several_lines_keeps_its_lines() -> None:
    check(
        STATE,
        """
        await init(
            engine,  # the engine
            config,
            app.state,
            args,
        )
        """,
        """
        await init(
            engine,  # the engine
            # config,  # Uky[rec]
            app.state,
            args,
        )
        """,
    )


def test_statements_are_replaced_at_their_indentation() -> None:
    check(
        replace("$A = compute($X)\nuse($A)", "with scope():\n    $A = compute($X)\n    use($A)"),
        """
        def f():
            # before
            value = compute([
                1,
            ])
            use(value)  # behind
            return value
        """,
        """
        def f():
            # before
            # value = compute([  # Uky[rec]
                # 1,  # Uky[rec]
            # ])  # Uky[rec]
            # use(value)  # behind  # Uky[rec]
            with scope():  # Uky[rec]
                value = compute([  # Uky[rec]
                    1,  # Uky[rec]
                ])  # Uky[rec]
                use(value)  # behind  # Uky[rec]
            return value
        """,
    )


def test_a_bound_body_is_moved_with_its_comments_and_not_its_strings() -> None:
    before = 'with old():\n    # first\n    a = """x\n  y"""\n\n    b = 2  # two\nc = 3\n'
    edit = replace("with old():\n    $$$BODY", "if True:\n    with new():\n        $$$BODY")
    outcome = rewrite(before, edit, Mark("rec", style="clean"))
    assert isinstance(outcome, Rewritten)
    assert outcome.source == (
        "if True:  # Uky[rec]\n"
        "    with new():  # Uky[rec]\n"
        "        # first  # Uky[rec]\n"
        '        a = """x\n'
        '  y"""  # Uky[rec]\n'
        "\n"
        "        b = 2  # two  # Uky[rec]\n"
        "c = 3\n"
    )


def test_an_empty_replacement_removes_statements() -> None:
    check(
        replace("gone($$$A)", ""),
        "def f():\n    a()\n    gone(1,\n         2)  # why\n    b()\n",
        "def f():\n    a()\n    # gone(1,  # Uky[rec]\n         # 2)  # why  # Uky[rec]\n    b()\n",
    )
    check(
        replace("gone()", ""),
        "if x:\n    gone()\n",
        "if x:\n    # gone()  # Uky[rec]\n    pass  # Uky[rec]\n",
    )
    check(replace("gone()", ""), "a(); gone(); b()\n", "# a(); gone(); b()  # Uky[rec]\na(); b()  # Uky[rec]\n")


def test_what_a_hand_commented_out_counts_as_removed() -> None:
    edit = replace("gone($$$A)", "")
    source = "a()\n# gone(1,\n#      2)  # uky\n"
    assert rewrite(source, edit, Mark("rec")) == AlreadyDone((2,), True)
    assert isinstance(rewrite("a()\n# not gone\n", edit, Mark("rec")), AnchorMissing)


def test_a_multi_line_replacement_of_a_statement_that_shares_its_line() -> None:
    edit = replace("old()", "try:\n    new()\nexcept E:\n    pass")
    assert made("if x: old()\n", edit) == (
        "# if x: old()  # Uky[rec]\n"
        "if x:  # Uky[rec]\n"
        "    try:  # Uky[rec]\n"
        "        new()  # Uky[rec]\n"
        "    except E:  # Uky[rec]\n"
        "        pass  # Uky[rec]\n"
    )


def test_the_effect_is_not_taken_for_an_anchor() -> None:
    wrap = replace("x = $V", "x = wrap($V)")
    assert made("x = 1\n", wrap) == "# x = 1  # Uky[rec]\nx = wrap(1)  # Uky[rec]\n"
    assert rewrite("x = wrap(1)\n", wrap, Mark("rec")) == AlreadyDone((1,), False)


def test_a_template_that_matches_the_pattern_itself_says_nothing_of_an_edit() -> None:
    unwrap = replace("x = wrap($V)", "x = $V")
    assert isinstance(rewrite("x = wrap(1)\n", unwrap, Mark("rec")), Rewritten)


def test_a_guard_by_hand_is_seen() -> None:
    source = "if old:\n    init(e, c, a, r)\nelse:\n    init(e, a, r)\n"
    assert isinstance(rewrite(source, STATE, Mark("rec")), AlreadyDone)


@pytest.mark.parametrize(
    ("source", "line"),
    [("x()\ninit(e, c)\n", 2), ("import a\nawait start(init, e)\ny = init(e)\n", 3)],
)
def test_the_nearest_candidate_is_the_same_call(source: str, line: int) -> None:
    outcome = rewrite(source, STATE, Mark("rec"))
    assert isinstance(outcome, AnchorMissing)
    assert outcome.nearest is not None
    assert outcome.nearest.line == line


def test_the_prologue_is_behind_docstring_and_future_and_before_imports() -> None:
    check(
        insert("prologue", "import early"),
        '''
        #!/usr/bin/env python
        # Licence
        """Doc."""
        from __future__ import annotations

        # about os
        import os
        ''',
        '''
        #!/usr/bin/env python
        # Licence
        """Doc."""
        from __future__ import annotations

        import early  # Uky[rec]
        # about os
        import os
        ''',
    )
    check(
        insert("prologue", "import early"),
        "#!/usr/bin/env python\n# Licence\nimport os\n",
        "#!/usr/bin/env python\n# Licence\nimport early  # Uky[rec]\nimport os\n",
    )


@pytest.mark.parametrize("source", ["", "# only a comment\n", '"""Doc."""\n', '"""Doc."""', "x = 1\n"])
def test_a_prologue_fits_any_file(source: str) -> None:
    result = made(source, insert("prologue", "import early\n"))
    assert "import early  # Uky[rec]" in result
    assert set(source.splitlines()) <= set(result.splitlines())


def test_start_and_end_are_those_of_the_body() -> None:
    source = 'class A:\n    def f(self):\n        """Doc."""\n        a()\n        return 1\n\n    x = 2\n'
    assert made(source, insert("start", "begin()", within="A.f")) == source.replace(
        "        a()\n", "        begin()  # Uky[rec]\n        a()\n"
    )
    assert made(source, insert("end", "last()", within="A.f")) == source.replace(
        "        return 1\n", "        return 1\n        last()  # Uky[rec]\n"
    )
    assert made("def f(): pass\n", insert("start", "begin()", within="f")).endswith(
        "def f(): begin(); pass  # Uky[rec]\n"
    )
    assert made('def f():\n    """Doc."""\n', insert("start", "go()", within="f")).endswith("    go()  # Uky[rec]\n")


def test_statements_are_put_beside_an_anchor_with_what_it_bound() -> None:
    source = "def f():\n    if a:\n        # about it\n        x = load(path)  # here\n    return x\n"
    assert made(source, insert("before", "check($P)", anchor="load($P)")) == source.replace(
        "        # about it\n", "        check(path)  # Uky[rec]\n        # about it\n"
    )
    assert made(source, insert("after", "if $V:\n    log($V)", anchor="$V = load($P)")) == source.replace(
        "# here\n", "# here\n        if x:  # Uky[rec]\n            log(x)  # Uky[rec]\n"
    )


def test_beside_an_elif_means_beside_the_whole_if() -> None:
    source = "if a:\n    x()\nelif load(b):\n    y()\n"
    assert made(source, insert("before", "check()", anchor="load($P)")) == "check()  # Uky[rec]\n" + source


def test_an_insertion_where_statements_share_a_line() -> None:
    assert made("a(); b(); c()\n", insert("before", "new()", anchor="b()")) == (
        "# a(); b(); c()  # Uky[rec]\na(); new(); b(); c()  # Uky[rec]\n"
    )
    assert made("if x: b()\n", insert("after", "if y:\n    new()", anchor="b()")) == (
        "# if x: b()  # Uky[rec]\nif x:  # Uky[rec]\n    b()  # Uky[rec]\n"
        "    if y:  # Uky[rec]\n        new()  # Uky[rec]\n"
    )


def test_lines_in_a_string_carry_no_marker() -> None:
    assert made("import os\n", insert("prologue", 'x = """a\nb\nc"""')) == 'x = """a\nb\nc"""  # Uky[rec]\nimport os\n'


def test_one_insertion_of_two_made_by_hand() -> None:
    source = "def f():\n    mark()\n    load()\n\ndef g():\n    load()\n"
    edit = insert("before", "mark()", anchor="load()", count=2)
    outcome = rewrite(source, edit, Mark("rec"))
    assert isinstance(outcome, Rewritten)
    assert outcome.by_hand == (2,)
    assert outcome.source.endswith("def g():\n    mark()  # Uky[rec]\n    load()\n")


def test_an_insertion_beside_too_many_anchors_is_not_guessed_at() -> None:
    assert rewrite("a()\na()\n", insert("after", "b()", anchor="a()"), Mark("rec")) == AnchorAmbiguous(1, (1, 2))


def test_a_file_without_a_last_newline_stays_so() -> None:
    assert made("a()", insert("after", "b()", anchor="a()")) == "a()\nb()  # Uky[rec]"
    assert made("a()\r\nload()", replace("load()", "save()")) == "a()\r\n# load()  # Uky[rec]\r\nsave()  # Uky[rec]"


def test_text_is_kept_as_tabs_where_the_file_has_tabs() -> None:
    result = made("if a:\n\tload()\n", insert("after", "if b:\n    c()", anchor="load()"))
    assert text(result) == "if a:\n\tload()\n\tif b:  # Uky[rec]\n\t\tc()  # Uky[rec]\n"


@pytest.mark.parametrize(
    ("pattern", "template", "before", "after"),
    [
        ("$$$P", "ctx, $$$P", "a, b=1, *c, d, **e", "ctx, a, b=1, *c, d, **e"),
        ("$$$P", "ctx, $$$P", "", "ctx"),
        ("$$$P", "$$$P, ctx=None", "a, b", "a, b, ctx=None"),
        ("$$$P", "$$$P, ctx=None", "a, *, b", "a, *, b, ctx=None"),
        ("$$$P", "$$$P, ctx=None", "a, *b", "a, *b, ctx=None"),
        ("$$$P", "$$$P, ctx=None", "a, **b", "a, ctx=None, **b"),
        ("self, $$$P", "self, ctx, $$$P", "self, a: int = 1, /, b=2", "self, ctx, a: int = 1, /, b=2"),
        ("self, old, $$$P", "self, $$$P", "self, old, *, b", "self, *, b"),
        ("self, old, $$$P", "self, $$$P", "self, old", "self"),
    ],
)
def test_a_run_of_parameters_goes_where_the_template_has_it(
    pattern: str, template: str, before: str, after: str
) -> None:
    edit = replace(f"def f({pattern}):\n    $$$BODY", f"def g({template}):\n    $$$BODY")
    result = made(f"def f({before}):\n    return 1\n", edit, style="clean")
    assert result == f"def g({after}):  # Uky[rec]\n    return 1\n"


def test_an_argument_in_the_place_of_several_takes_the_place_of_the_first() -> None:
    edit = Replace(file=FILE, pattern="f(a=1, b=2, c=3, d=4, e=5)", replacement="f(a=1, size=9, e=5)")
    before = "f(\n    a=1,\n    b=2,\n    c=3,\n    d=4,\n    e=5,\n)\n"
    assert made(before, edit, style="clean") == ("f(\n    a=1,\n    size=9,  # Uky[rec]\n    e=5,\n)\n")
