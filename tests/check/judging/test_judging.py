"""What is told of a use, on packages of a few lines with one trap each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from patcher.analysis.symbols import Parameter, Signature
from patcher.analysis.uses import Keyword, Shape
from patcher.check.rules.calls import NotTaken, Required, Shifted, bind

BASE = "class Base:\n    def run(self, x, *, fast=False): ...\n    def again(self): self.run(1, fast=True)\n"

CASES = [
    (
        "what a manager made of a generator gives is what the generator yields",
        """
        from pkg.a import client, handed
        async def serve():
            async with client() as engine:
                engine.gone()
                engine.there()
            with handed() as other:
                other.gone()
        """,
        {
            "a.py": """
            from collections.abc import AsyncIterator, Iterator
            from contextlib import asynccontextmanager, contextmanager
            class Engine:
                def there(self): ...
            @asynccontextmanager
            async def client() -> AsyncIterator[Engine]:
                yield Engine()
            @contextmanager
            def handed() -> Iterator[Engine]:
                yield Engine()
            """
        },
        {("attribute-removed", "pkg.a.Engine.gone")},
    ),
    (
        "what a function makes is of the very class that it says, what it is handed may be of one that derives from it",
        """
        from pkg.a import Engine
        class Server:
            def build(self) -> Engine:
                try:
                    return Engine(1)
                except TypeError:
                    return Engine()
            def handed(self, engine) -> Engine:
                return engine
            def run(self, engine):
                self.engine = self.build()
                self.engine.gone()
                self.handed(engine).more()
        """,
        {
            "a.py": """
            class Engine: ...
            class Served(Engine):
                def gone(self): ...
                def more(self): ...
            """
        },
        {("attribute-removed", "pkg.a.Engine.gone"), ("argument-removed", "pkg.a.Engine")},
    ),
    (
        "what the tree's own method puts in an attribute, in the place of the package's, is not known",
        """
        from pkg.a import Output, Processor
        def _update(self, tensors):
            self.rows.append(tensors)
        Processor.update = _update
        def use(one: Output):
            one.rows[0].own
            one.kept[0].gone
        """,
        {
            "a.py": """
            class Flat:
                def __init__(self): self.real = 1
            class Output:
                rows: list[Flat]
                kept: list[Flat]
            class Processor:
                def __init__(self): self.rows = []
                def update(self, tensors): ...
            """
        },
        {("attribute-removed", "pkg.a.Flat.gone")},
    ),
    (
        "what is done with a class that has moved is judged where it is now",
        """
        from pkg.worker.wrapper_base import WorkerWrapper
        class Server:
            def __init__(self):
                self.inner: WorkerWrapper = WorkerWrapper(config=1)
            def run(self):
                self.inner.kept()
                self.inner.gone()
        """,
        {
            "one/worker/wrapper_base.py": """
            class WorkerWrapper:
                def __init__(self, rank=0): ...
                def kept(self): ...
            """
        },
        {
            ("module-moved", "pkg.worker.wrapper_base.WorkerWrapper"),
            ("argument-removed", "pkg.one.worker.wrapper_base.WorkerWrapper(config)"),
            ("attribute-removed", "pkg.one.worker.wrapper_base.WorkerWrapper.gone"),
        },
    ),
    (
        "an import that the tree reckons to fail tells nothing of what is done with the name",
        """
        try:
            from pkg.worker.wrapper_base import WorkerWrapper
        except ImportError:
            WorkerWrapper = None
        if WorkerWrapper:
            WorkerWrapper(config=1)
        def later(old):
            if old:
                from pkg.worker.wrapper_base import WorkerWrapper as Other
                Other(config=1)
        """,
        {"one/worker/wrapper_base.py": "class WorkerWrapper:\n    def __init__(self, rank=0): ...\n"},
        {("module-moved", "pkg.worker.wrapper_base.WorkerWrapper")},
    ),
    (
        "a name served on demand is there",
        "from pkg import late, never",
        {"__init__.py": "def __getattr__(name):\n    if name == 'late': return 1\n    raise AttributeError(name)\n"},
        {("symbol-removed", "pkg.never")},
    ),
    (
        "a module that is there although its package binds the name to something else",
        "from pkg.sub.one import one\none(1)\n",
        {"sub/__init__.py": "from .one import one\n", "sub/one.py": "def one(x): ...\n"},
        set(),
    ),
    (
        "an attribute of what a method gives, along annotations that are strings",
        "from pkg.a import C\nC().made().real\nC().made().gone\nC.build().gone\n",
        {
            "a.py": """
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from .b import D
            class C:
                def made(self) -> "D | None": ...
                @classmethod
                def build(cls): return cls()
            """,
            "b.py": "class D:\n    def __init__(self): self.real = 1\n",
        },
        {("attribute-removed", "pkg.b.D.gone"), ("attribute-removed", "pkg.a.C.gone")},
    ),
    (
        "what a mapping of a package holds, by its methods",
        """
        from pkg.a import Owner
        def use(owner: Owner, key):
            for name, one in list(owner.states.items()):
                one.gone_in_items
                name.gone
            owner.states.get(key).gone_in_get
            owner.states.get.gone
            for one in owner.states.values():
                one.gone_in_values
                one.real
        """,
        {
            "a.py": """
            class State:
                def __init__(self): self.real = 1
            class Owner:
                def __init__(self): self.states: dict[str, State] = {}
            """,
        },
        {("attribute-removed", f"pkg.a.State.gone_in_{name}") for name in ("items", "get", "values")},
    ),
    (
        "an attribute that only a subclass has cannot be told",
        "from pkg.a import make\nmake().only\nmake().none\n",
        {"a.py": "class C: ...\nclass D(C):\n    only = 1\ndef make() -> C: ...\n"},
        {("attribute-removed", "pkg.a.C.none")},
    ),
    (
        "an attribute that is set on what may be such a value, and one that is set on a class of another package",
        "from pkg.a import make\nmake().put\nmake().to\n",
        {
            "a.py": "class C: ...\ndef make() -> C: ...\n",
            "b.py": "import torch\ndef tune(layer, f):\n    layer.put = f\n    torch.Tensor.to = f\n",
        },
        {("attribute-removed", "pkg.a.C.to")},
    ),
    (
        "a class that makes instances of other classes only",
        "from pkg.a import Auto, C\ndef use(x: Auto, y: C):\n    x.template\n    y.template\n",
        {
            "a.py": """
            class C:
                def __init__(self): self.real = 1
            class Auto:
                def __init__(self):
                    raise OSError("use Auto.make")
                @classmethod
                def make(cls): ...
            """
        },
        {("attribute-removed", "pkg.a.C.template")},
    ),
    (
        "attributes that the tree sets itself",
        "from pkg.a import C\nC.extra = 1\nC().extra\n",
        {"a.py": "class C: ...\n"},
        set(),
    ),
    (
        "delegation",
        "from pkg.a import W\nW().done\nW().gone\n",
        {
            "a.py": """
            class Worker:
                done = 1
            class W:
                def __init__(self): self.worker: Worker = None
                def __getattr__(self, name): return getattr(self.worker, name)
            """
        },
        {("attribute-removed", "pkg.a.W.gone")},
    ),
    (
        "keywords go through a constructor that only passes them on, by the order of the real bases",
        "from pkg.a import Both\nBoth(left=1, right=2)\nBoth(left=1, right=2, gone=3)\n",
        {
            "a.py": """
            class Root:
                def __init__(self, root=0): ...
            class Left(Root):
                def __init__(self, left, **kwargs): super().__init__(**kwargs)
            class Right(Root):
                def __init__(self, right, **kwargs): super().__init__(**kwargs)
            class Both(Left, Right): ...
            """
        },
        {("argument-removed", "pkg.a.Both(gone)")},
    ),
    (
        "a dataclass through a decorator of the package's own, and one of the tree on top",
        """
        from pkg.a import Config
        class Mine(Config):
            more: int = 0
        Config(size=1)
        Config(size=1, gone=2)
        """,
        {
            "a.py": """
            from dataclasses import dataclass
            def config(c): return dataclass(c)
            @config
            class Config:
                size: int
            """
        },
        {("argument-removed", "pkg.a.Config(gone)")},
    ),
    (
        "an override that does not take what its base passes",
        "from pkg.a import Base\nclass Mine(Base):\n    def run(self, x): ...\n",
        {"a.py": BASE},
        {("override-mismatch", "pkg.a.Base.run(fast)")},
    ),
    (
        "an override that takes all that its base passes",
        "from pkg.a import Base\nclass Mine(Base):\n    def run(self, given, **kwargs): return kwargs\n",
        {"a.py": BASE},
        set(),
    ),
    (
        "an optional parameter that nobody passes",
        "from pkg.a import Base\nclass Mine(Base):\n    def run(self, x): ...\n",
        {"a.py": "class Base:\n    def run(self, x, fast=False): ...\n    def again(self): self.run(1)\n"},
        set(),
    ),
    (
        "an abstract method left open",
        "from pkg.a import Base\nclass Mine(Base):\n    def one(self): ...\n",
        {
            "a.py": """
            from abc import ABC, abstractmethod
            class Base(ABC):
                @abstractmethod
                def one(self): ...
                @abstractmethod
                def two(self): ...
            """
        },
        {("override-mismatch", "pkg.a.Base.two")},
    ),
    (
        "decorators that keep a signature, and one that does not say",
        "from pkg.a import kept, again, other\nkept(1, 2)\nagain(1, 2)\nother(1, 2)\n",
        {
            "a.py": """
            import functools
            def keep(f):
                @functools.wraps(f)
                def inner(*args, **kwargs): return f(*args, **kwargs)
                return inner
            def change(f): return lambda *args: 0
            @keep
            def kept(a): ...
            def register(f, module):
                def decorator(inner): return functools.update_wrapper(object(), inner)
                return decorator
            registered = functools.partial(register, module="pkg")
            @registered(keep)
            def again(a): ...
            @change
            def other(a): ...
            """
        },
        {("argument-removed", "pkg.a.kept"), ("argument-removed", "pkg.a.again")},
    ),
]


@pytest.mark.parametrize(("tree", "package", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_told(on_package: Callable, tree: str, package: dict[str, str], told: set[tuple[str, str]]) -> None:
    assert on_package(tree, package).told == told


def test_what_cannot_be_decided_is_said(on_package: Callable) -> None:
    package = {"a.py": "class C: ...\nclass D(C):\n    only = 1\ndef make() -> C: ...\n"}
    assert on_package("from pkg.a import make\nmake().only\n", package).undecided == ["pkg.a.C.only"]


def test_a_name_with_underscores_may_be_served_as_any_other(on_package: Callable) -> None:
    """numpy/core/_multiarray_umath.py serves `__cpu_features__` so."""
    package = {"a.py": "import sys\ndef __getattr__(name):\n    return getattr(sys.modules['other'], name)\n"}
    assert on_package("from pkg.a import __cpu_features__\n", package).told == set()


def test_what_a_package_reads_off_its_own_module_is_not_called_missing(on_package: Callable) -> None:
    tree = "import pkg\n\nprint(pkg.cuda.Bound, pkg.cuda.Commented)\n"
    package = {"__init__.py": "import pkg.cuda", "cuda.py": "", "user.py": """
        import pkg.cuda
        kinds = (pkg.cuda.Bound, 1)  # pkg.cuda.Commented was another.
    """}  # fmt: skip
    found = on_package(tree, package)
    assert found.undecided == ["pkg.cuda.Bound"]
    assert found.told == {("symbol-removed", "pkg.cuda.Commented")}


@pytest.mark.parametrize(
    ("tree", "moved_to"),
    [
        ("import pkg.lora.models as mm\nmm.LoRAModel\n", "pkg.lora.lora_model"),
        ("import pkg.lora.models\npkg.lora.models.LoRAModel\n", "pkg.lora.lora_model"),
        ("from pkg.lora import models\nmodels.LoRAModel\n", "pkg.lora.lora_model"),
        ("import pkg.lora.models as mm\nmm.LoRAModel, mm.LoRAManager\n", ""),
        ("import pkg.lora.models as mm\nmm.GoneForGood\n", ""),
        ("import pkg.lora.models as mm\nmm.registry\n", "pkg.executor.lora.models"),
        ("import pkg.lora.models\n", "pkg.executor.lora.models"),
    ],
)
def test_a_module_that_is_gone_is_the_one_that_has_what_is_read_off_it(
    on_package: Callable, tree: str, moved_to: str
) -> None:
    """As `vllm.lora.models`, whose namesakes are vllm.model_executor.models and a function of an API."""
    package = {
        "lora/__init__.py": "",
        "lora/lora_model.py": "class LoRAModel: ...\n",
        "lora/manager.py": "class LoRAManager: ...\n",
        "executor/__init__.py": "",
        "executor/lora/__init__.py": "",
        "executor/lora/models.py": "registry = 1\n",
        "api/__init__.py": "",
        "api/router.py": "def models(): ...\n",
    }
    found = on_package(tree, package)
    assert {problem.moved_to for problem in found.problems} == {moved_to}
    assert {problem.symbol for problem in found.problems} == {"pkg.lora.models"}


def test_what_is_read_off_a_class_that_is_gone_tells_no_module(on_package: Callable) -> None:
    """`CompressedTensorsW4A16Fp4.process_weights_after_loading = …`, of which another module has a function."""
    tree = "from pkg.schemes.fp4 import Scheme\n\nScheme.process_weights = print\nScheme.process_weights\n"
    package = {"schemes/__init__.py": "", "loader.py": "def process_weights(model): ...\n"}
    found = on_package(tree, package)
    assert {(problem.symbol, problem.moved_to) for problem in found.problems} == {("pkg.schemes.fp4.Scheme", "")}


def test_a_baseline_tells_what_positions_were_meant_for(on_package: Callable) -> None:
    call = "from pkg.a import f\nf(1, 2)\n"
    before = {"a.py": "def f(first, second): ...\n"}
    assert on_package(call, {"a.py": "def f(second, first): ...\n"}, before).told == {
        ("argument-shifted", "pkg.a.f(first)")
    }
    assert on_package(call, {"a.py": "def f(input, second): ...\n"}, before).told == set()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("f(client, app.state, args)", set()),
        ("f(client, app.state, args, None)", set()),
        ("f(client, app.state, parse(args))", set()),
        ("f(client, config, app.state, args)", {("argument-shifted", "pkg.a.f(config)")}),
        ("f(1, 2, 3, 4)", {("argument-shifted", "pkg.a.f(config)")}),
    ],
)
def test_a_baseline_says_nothing_of_a_call_that_was_changed_for_the_target(
    on_package: Callable, call: str, told: set[tuple[str, str]]
) -> None:
    """As init_app_state of vLLM 0.11.0 and 0.20.2, and what the record makes of its call."""
    tree = f"from pkg.a import f\n\ndef g(client, config, app, args):\n    {call}\n"
    before = {"a.py": "def f(client, config, state, args): ...\n"}
    assert on_package(tree, {"a.py": "def f(client, state, args, tasks=None): ...\n"}, before).told == told


@pytest.mark.parametrize(
    ("call", "defined", "told"),
    [
        # transformers' get_module_class_from_name, which calls the model `module` and the class's name `name`.
        ("f(model, module)", "def f(module, name): ...", set()),
        ("f(model, state)", "def f(state, model): ...", {"pkg.a.f(model)"}),
        ("f(client, config, state, args)", "def f(client, state, args, tasks=None): ...", {"pkg.a.f(config)"}),
        ("f(config, state)", "def f(state, tasks=None): ...", {"pkg.a.f(config)"}),
    ],
)
def test_without_a_baseline_names_tell_what_positions_were_meant_for(
    on_package: Callable, call: str, defined: str, told: set[str]
) -> None:
    tree = f"from pkg.a import f\n\ndef g(model, module, state, client, config, args):\n    {call}\n"
    found = on_package(tree, {"a.py": f"{defined}\n"})
    assert found.told == {("argument-shifted", symbol) for symbol in told}


def _signature(*names: str, any_keyword: bool = False) -> Signature:
    return Signature(
        tuple(Parameter(name.rstrip("?"), "either", not name.endswith("?")) for name in names), False, any_keyword
    )


def test_binding() -> None:
    assert bind(Shape(("a", "b")), _signature("a", "b")) == ()
    assert bind(Shape(("x",)), _signature("input")) == ()
    assert bind(Shape((), (Keyword("k", 3),)), _signature("a?")) == (NotTaken("k", Keyword("k", 3)),)
    assert bind(Shape((), (Keyword("k", 3),)), _signature(any_keyword=True)) == ()
    assert bind(Shape(("a",)), _signature("a", "b")) == (Required("b"),)
    assert bind(Shape(("a",), any_keyword=True), _signature("a", "b")) == ()
    assert bind(Shape(("a",), partial=True), _signature("a", "b")) == ()
    assert bind(Shape(("a", "gone", "b")), _signature("a", "b")) == (NotTaken("gone"),)
    assert bind(Shape(("a", "gone", "b", "c")), _signature("a", "b", "c", "d?")) == (Shifted("gone", "b"),)
