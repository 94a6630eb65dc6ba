"""Small texts: which uses are seen in them, of what, and when they run."""

from __future__ import annotations

from textwrap import dedent

import pytest

from patcher.analysis.reading import read_file
from patcher.analysis.uses import (
    CallOf,
    Element,
    FileFacts,
    ImportOf,
    Instance,
    Member,
    MemberOf,
    MethodOf,
    Named,
    Opaque,
    Result,
    Subtype,
    Super,
    Union,
    Use,
    Value,
    When,
    WhenRaised,
)
from tests.check.written import written


def read(text: str, file: str = "verl/some/module.py") -> FileFacts:
    facts = read_file(dedent(text).encode(), file)
    assert not facts.problem
    return facts


def shown(value: Value) -> str:
    match value:
        case Named(dotted=dotted):
            return dotted.removeprefix("verl.some.module.")
        case Member(of=of, name=name):
            return f"{shown(of)}.{name}"
        case Result(of=of):
            return f"{shown(of)}()"
        case Subtype(of=of):
            return f"type[{shown(of)}]"
        case Instance(of=of):
            return f"<{shown(of)}>"
        case Element(of=of):
            return f"{shown(of)}[]"
        case Super(of=of):
            return f"super({shown(of)})"
        case Union(values=values):
            return " | ".join(sorted(map(shown, values))) or "None"
        case Opaque():
            return "?"


def told(use: Use) -> str:
    match use.need:
        case ImportOf(module=module, name=name):
            return f"import {module}" + (f" {name}" if name else "")
        case MemberOf(of=of, name=name, soft=soft):
            return f"{'soft ' if soft else ''}{shown(of)} . {name}"
        case CallOf(of=of, shape=shape):
            parts = [*(name or "_" for name in shape.positional), *(["*"] if shape.any_positional else [])]
            parts += [f"{keyword.name}=" for keyword in shape.keywords]
            parts += [f"{name}?" for name in shape.sometimes] + (["**"] if shape.any_keyword else [])
            return f"{shown(of)}({', '.join(parts)})" + (" partial" if shape.partial else "")
        case MethodOf(owner=owner, name=name):
            return f"{owner} defines {name}"
        case need:
            return str(need)


def conditions(use: Use) -> list[str]:
    return [
        ("" if each.holds else "not ") + written(each.test) if isinstance(each, When) else f"else of {each.first}"
        for each in use.context.conditions
    ]


def uses(text: str, file: str = "verl/some/module.py") -> list[str]:
    return [told(use) for use in read(text, file).uses if not isinstance(use.need, ImportOf)]


def only(text: str, what: str) -> Use:
    (use,) = [use for use in read(text).uses if told(use) == what]
    return use


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("verl/a/b.py", "from . import c", "import verl.a c"),
        ("verl/a/b.py", "from ..d import c", "import verl.d c"),
        ("verl/a/__init__.py", "from .d import c", "import verl.a.d c"),
        ("verl/a/b.py", "import importlib\nimportlib.import_module('vllm.x')", "import vllm.x"),
        ("verl/a/b.py", "import importlib\nfor n in ('vllm.x',): importlib.import_module(n)", "import vllm.x"),
        ("verl/a/b.py", "__import__('vllm.x')", "import vllm.x"),
    ],
)
def test_imports_by_their_full_name(file: str, text: str, expected: str) -> None:
    assert expected in [told(use) for use in read(text, file).uses]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import vllm.a.b\nvllm.a.b.C(x=1)", ["vllm . a", "vllm.a . b", "vllm.a.b . C", "vllm.a.b.C(x=)"]),
        ("import vllm.a as m\nm.C(state.x, y, *z)", ["vllm.a . C", "vllm.a.C(x, y, *)"]),
        ("from vllm import C\nC(**{'a': 1, 'b': 2})", ["vllm.C(a=, b=)"]),
        ("from vllm import C\nd = dict(a=1)\nd['b'] = 2\nd.update(c=3)\ndel d['a']\nC(**d)", ["vllm.C(b=, c=)"]),
        ("from vllm import C\nd = {'a': 1}\nhelper(d)\nC(**d)", ["vllm.C(**)"]),
        ("from vllm import C\nargs = (one, x.two)\nC(*args)", ["vllm.C(one, two)"]),
        ("from vllm import C\ngetattr(C, 'x'); getattr(C, 'y', 0); hasattr(C, 'z')",
         ["vllm.C . x", "soft vllm.C . y", "soft vllm.C . z"]),
        ("from functools import partial\nfrom vllm import f\ng = partial(f, a, b=1)\ng(c)",
         ["vllm.f(a, b=) partial", "vllm.f(a, c, b=)"]),
        ("from vllm import C\nfor x in [C(), C()]:\n    x.go", ["vllm.C()", "vllm.C()", "vllm.C() . go"]),
        ("from vllm import f\na, b = f()\nfor c in b:\n    c.x", ["vllm.f()", "vllm.f()[][] . x"]),
        ("from vllm import f\nif (x := f()):\n    x.y", ["vllm.f()", "vllm.f() . y"]),
        ("from vllm import C\nC.method = None", ["soft vllm.C . method"]),
        ("from vllm import C\nC = 1\nC.x", []),
        ("from vllm import C\n[C.x for C in xs]", []),
        ("from vllm import C\nlambda C: C.x", []),
        ("import os\nos.environ.get('x')", []),
    ],
)  # fmt: skip
def test_members_and_calls(text: str, expected: list[str]) -> None:
    assert uses(text) == expected


@pytest.mark.parametrize(
    ("annotation", "seen"),
    [
        ("C", ["<vllm.C> . go"]),
        ("'C'", ["<vllm.C> . go"]),
        ("Optional[C]", ["<vllm.C> . go"]),
        ("'C | None'", ["<vllm.C> . go"]),
        ("type[C]", ["type[vllm.C] . go"]),
        ("Any", []),
    ],
)
def test_parameters_are_what_they_are_annotated_with(annotation: str, seen: list[str]) -> None:
    text = f"""
    from __future__ import annotations
    from typing import Any, Optional
    from vllm import C
    def f(x: {annotation}):
        x.go
    """
    assert uses(text) == seen


def test_a_container_is_what_its_elements_are_annotated_with() -> None:
    assert "<vllm.C> . go" in uses("from vllm import C\ndef f(xs: list[C]):\n    for x in xs:\n        x.go")


def test_annotations_are_uses_where_they_are_evaluated() -> None:
    text = "import vllm\ndef f(x: vllm.C): pass\nclass A:\n    y: vllm.D = 1\ndef g():\n    z: vllm.E = 1\n"
    assert uses(text) == ["vllm . C", "vllm . D"]
    assert uses("from __future__ import annotations\n" + text) == []


def test_what_is_only_for_type_checkers_is_no_use_but_names_classes() -> None:
    text = """
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        from vllm import C
    def f(x: "C"):
        x.go
    """
    assert [told(use) for use in read(text).uses] == ["import typing TYPE_CHECKING", "<vllm.C> . go"]


def test_instance_attributes_lead_across_methods() -> None:
    text = """
    from vllm import Engine
    class Server:
        async def start(self):
            self.engine = await Engine.make()
        async def stop(self):
            await self.engine.abort(ids, internal=True)
    """
    assert "<Server>.engine . abort" in uses(text)
    assert "<Server>.engine.abort(ids, internal=)" in uses(text)
    (bound,) = read(text).classes["Server"].attributes["engine"]
    assert shown(bound.value) == "vllm.Engine.make()"


def test_classes_say_what_they_override_and_hand_up() -> None:
    text = """
    from vllm import Executor
    class Mine(Executor):
        def collective_rpc(self, method, timeout=None, *, reply): super().collective_rpc(method, timeout)
        @classmethod
        def make(cls, config): return cls(config)
    """
    use = only(text, "verl.some.module.Mine defines collective_rpc")
    assert isinstance(use.need, MethodOf)
    assert use.need.signature.positional == ("method", "timeout")
    assert [one.name for one in use.need.signature.parameters if one.required] == ["method", "reply"]
    assert use.line == 4
    assert "super(Mine).collective_rpc(method, timeout)" in uses(text)
    assert "Mine(config)" in uses(text)
    assert shown(read(text).classes["Mine"].methods["make"].result) == "Mine()"


def test_when_a_use_runs() -> None:
    text = """
    from vllm import C
    if old and C.a:
        C.b
    elif other:
        C.c
    def f():
        if not ready:
            return
        C.d if x else C.e
        [C.f for x in xs if x]
        def inner(): C.g
    """
    assert [conditions(only(text, f"vllm.C . {name}")) for name in "abcdefg"] == [
        ["old"],
        ["old and C.a"],
        ["not old and C.a", "other"],
        ["not not ready", "x"],
        ["not not ready", "not x"],
        ["not not ready", "x"],
        ["not not ready"],
    ]
    assert [only(text, f"vllm.C . {name}").context.function for name in "adg"] == ["", "f", "f.inner"]


def test_a_guard_that_raises_is_told_from_a_way_that_leaves() -> None:
    text = "from vllm import C\ndef f():\n    if a: raise ValueError\n    if b: return\n    C.x"
    first, second = only(text, "vllm.C . x").context.conditions
    assert isinstance(first, When)
    assert isinstance(second, When)
    assert (first.assumed, second.assumed) == (True, False)


def test_what_is_caught_and_what_is_the_other_way() -> None:
    text = """
    import contextlib
    try:
        from vllm.a import X
    except (ImportError, ray.Lost):
        from vllm.b import X
    try:
        from vllm.c import Y
    except ImportError as error:
        raise RuntimeError from error
    with contextlib.suppress(ImportError):
        from vllm.d import Z
    """
    assert only(text, "import vllm.a X").context.caught == ("ImportError", "ray.Lost")
    (other,) = only(text, "import vllm.b X").context.conditions
    assert other == WhenRaised(4, 4, ("ImportError", "ray.Lost"))
    assert only(text, "import vllm.c Y").context.caught == ()
    assert only(text, "import vllm.d Z").context.caught == ("ImportError",)


def test_names_bound_in_several_ways_stand_for_themselves() -> None:
    text = """
    try:
        from vllm.a import X
        HAS = True
    except ImportError:
        X = None
        HAS = False
    if new:
        from vllm.b import Y
    else:
        from vllm.c import Y
    def f():
        X.go
        Y.go
    """
    assert uses(text) == ["vllm.a.X . go", "Y . go"]
    bindings = read(text).bindings
    assert [(shown(bound.value), len(bound.conditions)) for bound in bindings["Y"]] == [
        ("vllm.b.Y", 1),
        ("vllm.c.Y", 1),
    ]
    yes, no = bindings["HAS"]
    assert (yes.conditions, no.conditions) == ((), (WhenRaised(3, 4, ("ImportError",)),))


def test_local_names_know_which_way_gives_which_value() -> None:
    text = """
    def f():
        if new:
            from vllm.b import Y
        else:
            from vllm.c import Y
        Y()
    """
    use = only(text, "vllm.b.Y | vllm.c.Y()")
    assert isinstance(use.need, CallOf)
    assert isinstance(use.need.of, Union)
    assert [[written(when.test), when.holds] for (when,) in use.need.of.conditions if isinstance(when, When)] == [
        ["new", True],
        ["new", False],
    ]


def test_keywords_under_conditions_are_calls_of_their_own() -> None:
    text = """
    from vllm import C
    def f():
        given = {"a": 1}
        if new:
            given["b"] = 2
        else:
            given["c"] = 3
        return C(x, **given)
    """
    assert uses(text) == ["vllm.C(x, a=, b?, c?)", "vllm.C(*, b=, **)", "vllm.C(*, c=, **)"]
    assert conditions(only(text, "vllm.C(*, b=, **)")) == ["new"]
    assert conditions(only(text, "vllm.C(*, c=, **)")) == ["not new"]


def test_lines_are_those_of_the_name_and_of_the_keyword() -> None:
    text = "from vllm import (\n    A,\n    B,\n)\nB(\n    x=1,\n    **{\n        'y': 2},\n)\n(B\n .go)\n"
    assert only(text, "import vllm B").line == 3
    call = only(text, "vllm.B(x=, y=)")
    assert isinstance(call.need, CallOf)
    assert (call.line, [keyword.line for keyword in call.need.shape.keywords]) == (5, [6, 8])
    assert only(text, "vllm.B . go").line == 11


def test_functions_put_into_a_class_are_its_methods() -> None:
    text = """
    from unittest.mock import patch
    def one(self): self.a
    def two(self): helper(self)
    def helper(self): self.b
    def apply():
        from vllm import C
        C.one = one
        patch("vllm.m.D.two", two if new else other).start()
    """
    found = uses(text)
    assert "<vllm.C> . a" in found
    assert "<vllm.m.D> . b" in found
    assert "vllm.m.D . two" in found
    assert "import vllm.m D" in [told(use) for use in read(text).uses]


def test_actors_of_the_tree_are_not_followed_but_ray_is() -> None:
    text = """
    import ray
    from vllm import Engine
    @ray.remote(num_cpus=1)
    class Server(Engine):
        def go(self): pass
    server = Server.options(name="x").remote(config=1)
    server.go.remote()
    """
    assert uses(text) == ["ray . remote", "ray.remote(num_cpus=)", "verl.some.module.Server defines go"]


def test_isinstance_tells_what_a_value_is_and_only_there() -> None:
    text = """
    from vllm import C, D
    def f(x):
        if isinstance(x, (C, D)) and x.a: x.b
        x.c
        if not isinstance(x, C): return
        x.d
    """
    assert uses(text) == ["<vllm.C> | <vllm.D> . a", "<vllm.C> | <vllm.D> . b", "<vllm.C> . d"]


def test_a_name_defined_twice_has_each_definition() -> None:
    text = """
    if new:
        def f(): return None
    else:
        from vllm import f
    """
    facts = read(text)
    assert [shown(bound.value) for bound in facts.bindings["f"]] == ["f@3", "vllm.f"]
    assert list(facts.functions) == ["f@3"]


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("-> C: return x", "<vllm.C>"),
        (": return C()", "vllm.C()"),
        (": return C() if x else None", "vllm.C()"),
        (": yield C()", "?"),
        (": pass", "None"),
    ],
)
def test_what_a_function_gives(body: str, result: str) -> None:
    assert shown(read(f"from vllm import C\ndef f(){body}").functions["f"].result) == result


def test_star_imports_may_bring_any_name() -> None:
    facts = read("from vllm.a import *\nprint(Thing.x)")
    assert facts.stars == ("vllm.a",)
    assert [told(use) for use in facts.uses][1:] == ["Thing . x"]


def test_a_file_that_is_no_python_says_so() -> None:
    facts = read_file(b"def f(:\n", "verl/x.py")
    assert facts.problem
    assert not facts.uses


def test_a_name_that_functions_set_too_stands_for_itself() -> None:
    text = """
    from vllm import C
    engine = None
    def start():
        global engine
        engine = C()
    def stop():
        engine.abort()
    """
    assert "engine . abort" in uses(text)
    assert [shown(bound.value) for bound in read(text).bindings["engine"]] == ["None", "vllm.C()"]
