"""What `has` answers, on small packages with one trap each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.analysis.symbols import Absent, Class, Function, Symbols, Unknown, full_name
from patcher.analysis.symbols.text_index import Mention, TextIndex

Make = Callable[[dict[str, str]], Symbols]

CASES: list[tuple[str, dict[str, str], dict[str, bool | None]]] = [
    (
        "modules and names",
        {"a.py": "x = 1\ndef f(): ...\nclass C: ...\n", "sub/b.py": "", "sub/__init__.py": ""},
        {
            "pkg": True,
            "pkg.a": True,
            "pkg.a.x": True,
            "pkg.a.f": True,
            "pkg.a.C": True,
            "pkg.a.D": False,
            "pkg.b": False,
            "pkg.sub.b": True,
            "pkg.a.x.y": None,
            "pkg.a.f.y": False,
            "pkg.a.__name__": True,
        },
    ),
    (
        "a module whose package has a function under its name is still imported from",
        {
            "sub/__init__.py": "from .grads import grads\n",
            "sub/grads.py": "def grads(): ...\ndef other(x): ...\nclass C:\n    y = 1\n",
        },
        {
            "pkg.sub.grads": True,
            "pkg.sub.grads.other": True,
            "pkg.sub.grads.other(x)": True,
            "pkg.sub.grads.other(z)": False,
            "pkg.sub.grads.C.y": True,
            "pkg.sub.grads.gone": False,
        },
    ),
    (
        "other packages are not known",
        {"a.py": "import os\nfrom torch import nn\n"},
        {"torch.nn": None, "pkg.a.nn": True, "pkg.a.nn.Linear": None, "pkg.a.os": True},
    ),
    (
        "a decorator from outside may give something else for a class",
        {
            "a.py": "import ray\nfrom dataclasses import dataclass\n@ray.remote\nclass Actor:\n    def put(self): ...\n"
            "@ray.remote(num_gpus=1)\nclass Other: ...\n@dataclass\nclass Plain:\n    x: int = 0\n"
            "def own(c): return c\n@own\nclass Own: ...\n",
        },
        {
            "pkg.a.Actor.put": True,
            "pkg.a.Actor.remote": None,
            "pkg.a.Other.remote": None,
            "pkg.a.Plain.remote": False,
            "pkg.a.Own.remote": False,
        },
    ),
    (
        "re-exports, relative and renamed",
        {
            "__init__.py": "from .a import f as g\nfrom . import a as b\nfrom .a import gone\n",
            "a.py": "def f(x): ...\n",
            "sub/__init__.py": "from ..a import f\nfrom .. import a\nfrom .deep import h\n",
            "sub/deep.py": "from pkg.a import f as h\n",
        },
        {
            "pkg.g": True,
            "pkg.g(x)": True,
            "pkg.f": False,
            "pkg.b.f": True,
            "pkg.gone": False,
            "pkg.sub.f(x)": True,
            "pkg.sub.a.f": True,
            "pkg.sub.h(y)": False,
        },
    ),
    (
        "a function that hands back what it is given",
        {
            "__init__.py": "from .a import same, other\n"
            "class C:\n    def m(self): ...\n"
            "class D:\n    def m(self): ...\n"
            "C = same(C, 1)\nD = other(D)\nE = same(C)\n",
            "a.py": "def same(cls, x):\n    def inner():\n        return x\n    cls.y = inner\n    return cls\n"
            "def other(cls):\n    return cls()\n",
        },
        {"pkg.C.m": True, "pkg.C.gone": False, "pkg.D.m": None, "pkg.E.m": True},
    ),
    (
        "stars",
        {
            "__init__.py": "from .a import *\nfrom .b import *\n",
            "a.py": "__all__ = ['x']\n__all__ += ['y']\nx = y = z = _w = 1\n",
            "b.py": "import os\np = _q = 1\n",
            "c.py": "from numpy import *\n",
            "d.py": "from .a import *\n__all__ = make()\n",
            "e.py": "from .d import *\n",
        },
        {
            "pkg.x": True,
            "pkg.y": True,
            "pkg.z": False,
            "pkg._w": False,
            "pkg.p": True,
            "pkg.os": True,
            "pkg._q": False,
            "pkg.c.array": None,
        },
    ),
    (
        "names for type checkers alone are not there",
        {
            "a.py": """
                import typing
                from typing import TYPE_CHECKING
                if TYPE_CHECKING:
                    from .b import Hidden
                else:
                    Shown = 1
                if not typing.TYPE_CHECKING:
                    Too = 1
                declared: int
            """,
            "b.py": "class Hidden: ...\n",
        },
        {"pkg.a.Hidden": False, "pkg.a.Shown": True, "pkg.a.Too": True, "pkg.a.declared": False},
    ),
    (
        "conditional definitions count",
        {
            "a.py": """
                try:
                    from .gone import f
                except ImportError:
                    f = None
                try:
                    from .gone import g
                except ImportError:
                    pass
                if condition():
                    def h(x, z): ...
                else:
                    def h(y, z): ...
                with lock:
                    inside = 1
                for looped in range(3): ...
                removed = 1
                del removed
            """
        },
        {
            "pkg.a.f": True,
            "pkg.a.g": False,
            "pkg.a.h(x)": None,
            "pkg.a.h(z)": True,
            "pkg.a.h(w)": False,
            "pkg.a.inside": True,
            "pkg.a.looped": True,
            "pkg.a.removed": False,
        },
    ),
    (
        "lazily served names: a table of modules",
        {
            "__init__.py": """
                _MOVED = {"old": "new_place", "stale": "new_place", "far": "pkg.deep.er"}
                def __getattr__(name):
                    if name in _MOVED:
                        return getattr(__import__("pkg." + _MOVED[name]), name)
                    raise AttributeError(name)
            """,
            "new_place.py": "def old(x): ...\n",
            "deep/er.py": "def far(): ...\n",
        },
        {
            "pkg.old": True,
            "pkg.old(x)": True,
            "pkg.old(y)": False,
            "pkg.stale": False,
            "pkg.far": True,
            "pkg.no": False,
        },
    ),
    (
        "lazily served names: module and attribute, under `else` of TYPE_CHECKING",
        {
            "__init__.py": """
                import typing
                TABLE = {"Engine": ".core:_Engine", "other": ("pkg.core", "f")}
                if typing.TYPE_CHECKING:
                    from .core import _Engine as Engine
                else:
                    def __getattr__(name: str):
                        if name in TABLE:
                            module, attribute = TABLE[name].split(":")
                            return load(module, attribute)
                        else:
                            raise AttributeError(name)
            """,
            "core.py": "class _Engine:\n    def run(self, x): ...\ndef f(): ...\n",
        },
        {"pkg.Engine": True, "pkg.Engine.run(x)": True, "pkg.Engine.stop": False, "pkg.other": True, "pkg.no": False},
    ),
    (
        "lazily served names: other forms",
        {
            "a.py": """
                def __getattr__(name):
                    if name == "Late":
                        from .b import Late
                        return Late
                    if name.startswith("env_"):
                        return 1
                    raise AttributeError(name)
            """,
            "b.py": "class Late:\n    def m(self): ...\n",
            "c.py": """
                from .d import TABLE
                def __getattr__(name):
                    found = TABLE.get(name)
                    if found is not None:
                        return found()
                    raise AttributeError(name)
            """,
            "d.py": "TABLE = {'x': lambda: 1}\n",
            "e.py": "def __getattr__(name):\n    return compute(name)\n",
            "f.py": "def __getattr__(name):\n    if known(name): return 1\n    raise AttributeError(name)\n",
            "g.py": "T = build()\ndef __getattr__(name):\n    if name in T: return 1\n    raise AttributeError\n",
        },
        {
            "pkg.a.Late": True,
            "pkg.a.Late.m": True,
            "pkg.a.env_x": True,
            "pkg.a.other": False,
            "pkg.c.x": True,
            "pkg.c.y": False,
            "pkg.e.anything": True,
            "pkg.f.x": None,
            "pkg.g.x": None,
            "pkg.e.__path__": False,
        },
    ),
    (
        "classes: members, inheritance across modules, attributes set by methods",
        {
            "a.py": """
                from abc import ABC
                from torch.nn import Module
                from pydantic import BaseModel
                from .b import Base as B
                class C(B, ABC):
                    field: int = 0
                    declared: str
                    alias = method = None
                    def __init__(self, x):
                        self.set_here = x
                        self.one, self.two = x
                    def run(self, a, *, b=1): ...
                    @property
                    def shown(self) -> "B": ...
                    @staticmethod
                    def plain(p): ...
                    @classmethod
                    def make(cls, q): ...
                    class Inner:
                        deep = 1
                class Net(Module):
                    def forward(self): ...
                class Model(BaseModel):
                    x: int
                class Open:
                    def __getattr__(self, name): ...
            """,
            "b.py": "class Base:\n    def inherited(self, i): ...\n    def _later(self):\n        self.late: int = 1\n",
        },
        {
            "pkg.a.C.field": True,
            "pkg.a.C.declared": True,
            "pkg.a.C.set_here": True,
            "pkg.a.C.two": True,
            "pkg.a.C.inherited": True,
            "pkg.a.C.inherited(i)": True,
            "pkg.a.C.late": True,
            "pkg.a.C.nothing": False,
            "pkg.a.C.register": True,
            "pkg.a.C.run(b)": True,
            "pkg.a.C.run(self)": False,
            "pkg.a.C.plain(p)": True,
            "pkg.a.C.make(q)": True,
            "pkg.a.C.make(cls)": False,
            "pkg.a.C.shown.inherited": True,
            "pkg.a.C.shown.nothing": False,
            "pkg.a.C.Inner.deep": True,
            "pkg.a.C.__name__": True,
            "pkg.a.C(x)": True,
            "pkg.a.C(y)": False,
            "pkg.a.Net.forward": True,
            "pkg.a.Net.parameters": None,
            "pkg.a.Net(x)": None,
            "pkg.a.Model.x": True,
            "pkg.a.Model.y": False,
            "pkg.a.Model.model_dump": True,
            "pkg.a.Model(x)": True,
            "pkg.a.Model(y)": False,
            "pkg.a.Open.x": None,
        },
    ),
    (
        "constructors",
        {
            "a.py": """
                import enum
                from dataclasses import dataclass, field, InitVar
                from typing import ClassVar, NamedTuple
                from .deco import config
                @dataclass
                class Base:
                    x: int
                    count: ClassVar[int] = 0
                    hidden: int = field(init=False)
                @dataclass
                class Child(Base):
                    y: int = 0
                    once: InitVar[int] = 1
                class Plain(Child): ...
                @config
                class Config:
                    z: int = 0
                class Undecorated:
                    z: int = 0
                class Own(Child):
                    def __init__(self, only): ...
                class Loose:
                    def __init__(self, named, **kwargs): ...
                class Pair(NamedTuple):
                    left: int
                class Made:
                    def __new__(cls, w): ...
                class Colour(enum.Enum):
                    RED = 1
            """,
            "deco.py": "from dataclasses import dataclass\ndef config(cls):\n    return dataclass(cls)\n",
        },
        {
            "pkg.a.Base(x)": True,
            "pkg.a.Base(count)": False,
            "pkg.a.Base(hidden)": False,
            "pkg.a.Child(x)": True,
            "pkg.a.Child(once)": True,
            "pkg.a.Plain(y)": True,
            "pkg.a.Config(z)": True,
            "pkg.a.Undecorated(z)": False,
            "pkg.a.Own(only)": True,
            "pkg.a.Own(x)": False,
            "pkg.a.Loose(named)": True,
            "pkg.a.Loose(any)": None,
            "pkg.a.Pair(left)": True,
            "pkg.a.Made(w)": True,
            "pkg.a.Colour.RED": True,
            "pkg.a.Colour.BLUE": False,
            "pkg.a.Colour.RED.value": None,
        },
    ),
    (
        "overloads, aliases, instances, attributes set from outside",
        {
            "a.py": """
                from typing import overload
                from .b import Thing
                @overload
                def f(x: int): ...
                @overload
                def f(y: str): ...
                def f(z): ...
                Alias = Thing
                made = Thing()
                typed: "Thing | None" = None
                call = lambda q: q
                def patched(): ...
                patched.flag = True
                Local = 1
                class Open: ...
                Open.extra = 1
            """,
            "b.py": "class Thing:\n    def do(self, x): ...\n",
        },
        {
            "pkg.a.f(z)": True,
            "pkg.a.f(x)": False,
            "pkg.a.Alias.do(x)": True,
            "pkg.a.made.do": True,
            "pkg.a.made.other": False,
            "pkg.a.typed.do": True,
            "pkg.a.call(q)": True,
            "pkg.a.patched.flag": True,
            "pkg.a.Open.extra": True,
        },
    ),
    (
        "circles end",
        {
            "a.py": "from .b import x\nfrom .b import *\nclass A(A2): ...\nA2 = A\n",
            "b.py": "from .a import x\nfrom .a import *\n",
            "c.py": "class C(C): ...\n",
        },
        {"pkg.a.x": False, "pkg.b.y": False, "pkg.c.C.z": False},
    ),
    (
        "what cannot be parsed is not known",
        {"a.py": "def broken(:\n", "b.py": "from .a import x\n", "c.py": "\x00"},
        {"pkg.a": True, "pkg.a.x": None, "pkg.b.x": None, "pkg.c.x": None},
    ),
]


@pytest.mark.parametrize(("files", "answers"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_has(package: Make, files: dict[str, str], answers: dict[str, bool | None]) -> None:
    symbols = package(files)
    assert {symbol: symbols.has(symbol) for symbol in answers} == answers


def test_the_order_of_questions_does_not_matter(package: Make) -> None:
    files = {"a.py": "from .b import *\nx = 1\n", "b.py": "from .a import *\ny = 1\n"}
    asked = ["pkg.a.y", "pkg.b.x", "pkg.a.x", "pkg.b.z"]
    for order in (asked, asked[::-1]):
        symbols = package(files)
        assert [symbols.has(symbol) for symbol in order] == [not symbol.endswith("z") for symbol in order]


def test_a_definition_and_the_names_that_lead_to_it(package: Make) -> None:
    symbols = package(
        {"__init__.py": "from .a import f\n", "a.py": "from .b import g as f\n", "b.py": "def g(): ...\n"}
    )
    found = symbols.resolve("pkg.f")
    assert isinstance(found.definition, Function)
    assert full_name(found.definition) == "pkg.b.g"
    assert found.chain == ("pkg.f", "pkg.a.f")


def test_what_is_absent_names_the_part_that_is_there(package: Make) -> None:
    symbols = package({"a.py": "class C: ...\n"})
    assert symbols.resolve("pkg.a.C.gone.deeper").definition == Absent("pkg.a.C", "gone")
    assert isinstance(symbols.resolve("pkg.a.C").definition, Class)


def test_a_signature_tells_kinds_and_what_is_required(package: Make) -> None:
    symbols = package({"a.py": "def f(a, /, b, c=1, *, d, e=2, **rest): ...\n"})
    found = symbols.signature(symbols.resolve("pkg.a.f").definition)
    assert not isinstance(found, Unknown)
    assert [(p.name, p.kind, p.required) for p in found.parameters] == [
        ("a", "positional", True),
        ("b", "either", True),
        ("c", "either", False),
        ("d", "keyword", True),
        ("e", "keyword", False),
    ]
    assert found.any_keyword
    assert not found.any_positional


def test_compiled_modules_are_known_by_the_distributions_list(package: Make) -> None:
    symbols = package({"../pkg-1.0.dist-info/RECORD": "pkg/_C.abi3.so,,\npkg/__init__.py,,\n", "a.py": ""})
    assert symbols.has("pkg._C.op") is None
    assert symbols.has("pkg._D") is False


def test_stubs_beside_a_compiled_module_do_not_stand_for_it(package: Make) -> None:
    """As torch/_C/ beside torch/_C.cpython-311-x86_64-linux-gnu.so: only the compiled part knows what it offers."""
    files = {"_C.cpython-311-x86_64-linux-gnu.so": "", "_C/__init__.pyi": "x: int\n", "_C/_parts.pyi": ""}
    symbols = package({**files, "__init__.py": "from pkg._C import *\nfrom pkg._C._parts import Part\n"})
    assert symbols.has("pkg._C.x") is None
    assert symbols.has("pkg._C._parts.Part") is None
    assert symbols.has("pkg.cat") is None
    assert symbols.has("pkg.Part") is None


@pytest.mark.parametrize(
    "statement",
    [
        "globals()[name] = 1",
        "globals().update(table)",
        "vars().update(table)",
        "setattr(sys.modules[__name__], name, 1)",
        "sys.modules[__name__].__class__ = Other",
        "sys.modules[__name__].__dict__.update(table)",
        "sys.modules[__name__] = Other()",
        "exec(source)",
        "for name in table:\n    if name:\n        globals()[name] = 1",
        "def fill():\n    globals()['x'] = 1\nfill()",
    ],
)
def test_a_module_that_binds_by_computed_names_may_have_any(package: Make, statement: str) -> None:
    symbols = package({"a.py": f"import sys\nknown = 1\n{statement}\n", "b.py": "from pkg.a import *\n"})
    assert symbols.has("pkg.a.known") is True
    assert symbols.has("pkg.a.other") is None
    assert symbols.has("pkg.b.other") is None


@pytest.mark.parametrize(
    "statement",
    ["x = globals()", "print(sys.modules)", "def __getattr__(name):\n    raise AttributeError(globals()[name])"],
)
def test_a_module_that_only_looks_at_its_names_has_no_others(package: Make, statement: str) -> None:
    assert package({"a.py": f"import sys\n{statement}\n"}).has("pkg.a.other") is False


def test_only_the_files_that_a_question_leads_to_are_read(package: Make) -> None:
    symbols = package({"a.py": "from .b import x\n", "b.py": "x = 1\n", "c.py": "x = 1\n"})
    assert symbols.has("pkg.a.x")
    assert set(symbols.modules._parsed) == {"pkg", "pkg.a", "pkg.b"}


@pytest.mark.parametrize("symbol", ["", "a b", "pkg.f(x, y)", "pkg.f(", "pkg-x"])
def test_what_is_no_symbol(package: Make, symbol: str) -> None:
    with pytest.raises(ValueError, match="dotted name"):
        package({}).has(symbol)


def test_a_neighbouring_release_answers_as_if_it_were_read_by_itself(tmp_path: Path) -> None:
    texts = {
        "__init__.py": "from .a import *\n",
        "a.py": "from .b import x\nfirst = 1\n\n\nclass A:\n    def set(self):\n        self.name = 1\n",
        "b.py": "x = 1\n\n\ndef f(layer):\n    layer.mark = x\n",
    }
    changed = {**texts, "b.py": "y = 1\n", "c.py": "x = 1\nname = 2\n\n\nclass C:\n    name: int = 3\n"}
    releases = []
    for number, files in enumerate((texts, changed, texts)):
        for file, text in files.items():
            place = tmp_path / str(number) / "pkg" / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        releases.append(tmp_path / str(number) / "pkg")

    def answers(symbols: Symbols) -> list[object]:
        names = ("pkg.first", "pkg.x", "pkg.a.x", "pkg.b.y", "pkg.c.C.name", "pkg.a.A.name", "pkg.a.A.gone")
        text = symbols.text
        words = ("x", "name", "mark", "y", "gone")
        return [
            [symbols.has(name) for name in names],
            [text.mentions(word) for word in words],
            [[(text.before(one), text.after(one, word)) for one in text.mentions(word)] for word in words],
            [text.setters(word) for word in words],
            [text.definitions(word) for word in words],
            [text.some_mention(word, _is_set_on_another) for word in words],
        ]

    earlier = None
    for release in releases:
        earlier = Symbols(release, earlier)
        assert answers(earlier) == answers(Symbols(release))


def _is_set_on_another(text: TextIndex, mention: Mention, word: str) -> bool:
    return text.before(mention).endswith(b"layer.") and text.after(mention, word).startswith(b" =")
