"""Names that no statement binds: where a module or class may have them, nothing is called missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.analysis.symbols import Symbols

Package = Callable[[dict[str, str]], Symbols]

COMPUTED = {
    "update of globals": "globals().update({n: 1 for n in NAMES})",
    "store into globals": "for n in NAMES:\n    globals()[n] = 1",
    "namespace in a variable": "space = globals()\nfor n in NAMES:\n    space[n] = 1",
    "vars at the top": "for n in NAMES:\n    vars()[n] = 1",
    "setattr on itself": "import sys\nfor n in NAMES:\n    setattr(sys.modules[__name__], n, 1)",
    "itself in a variable": "import sys\nthis = sys.modules[__name__]\nfor n in NAMES:\n    setattr(this, n, 1)",
    "its own __dict__": "import sys\nsys.modules[__name__].__dict__.update(NAMES)",
    "replaced by an object": "import sys\nsys.modules[__name__] = Lazy()",
    "another class of itself": "import sys\nsys.modules[__name__].__class__ = Lazy",
    "executed text": "for n in NAMES:\n    exec(f'{n} = 1')",
    "given to a function": "from other import install\ninstall(globals())",
    "a default in globals": "globals().setdefault(NAMES[0], 1)",
    "vars of itself": "import sys\nvars(sys.modules[__name__]).update(NAMES)",
    "a __getattr__ of another": "from other import attach\n__getattr__, __dir__, __all__ = attach(__name__, NAMES)",
}


@pytest.mark.parametrize("text", COMPUTED.values(), ids=COMPUTED)
def test_a_module_that_binds_by_computed_names_lacks_nothing_for_certain(package: Package, text: str) -> None:
    symbols = package({"mod.py": f"NAMES = read()\n{text}\nshown = 1\n"})
    assert symbols.has("pkg.mod.shown") is True
    assert symbols.has("pkg.mod.anything") is None


READ_ONLY = {
    "globals are read": "x = globals()['y']",
    "names are listed": "names = sorted(globals())",
    "an attribute of another": "import torch\nsetattr(torch, 'x', 1)",
    "another module's entry": "import sys\nsys.modules['pkg.old'] = 1",
    "in a method": "class A:\n    def f(self):\n        self.__dict__.update(x=1)",
    "evaluated": "value = eval('1 + 1', globals())",
}


@pytest.mark.parametrize("text", READ_ONLY.values(), ids=READ_ONLY)
def test_a_module_that_only_reads_its_namespace_lacks_what_it_does_not_bind(package: Package, text: str) -> None:
    assert package({"mod.py": f"{text}\n"}).has("pkg.mod.anything") is False


def test_a_loop_over_a_list_stores_the_names_of_that_list_alone(package: Package) -> None:
    """As numpy does for types that not every platform has."""
    loop = "for name in ['float96', 'float128']:\n    try:\n        globals()[name] = getattr(_core, name)\n"
    symbols = package({"mod.py": f"import _core\n{loop}    except AttributeError:\n        pass\n"})
    assert symbols.has("pkg.mod.float128") is None
    assert symbols.has("pkg.mod.product") is False
    changed = loop.replace("try:", "name = name.lower()\n    try:")
    symbols = package({"mod.py": f"import _core\n{changed}    except AttributeError:\n        pass\n"})
    assert symbols.has("pkg.mod.product") is None


def test_what_a_function_adds_to_a_list_of_names_may_be_any(package: Package) -> None:
    """As numpy's `extend_all`, which fills `__all__` from another module's."""
    filled = "__all__ = ['a']\nfrom .umath import *\ndef extend_all(module):\n    for one in module.__all__:\n"
    text = f"{filled}        __all__.append(one)\n"
    umath = "__all__ = ['add']\ndef add(): ...\n"
    symbols = package({"numeric.py": text, "umath.py": umath, "__init__.py": "from .numeric import *\n"})
    assert symbols.has("pkg.add") is True
    assert symbols.has("pkg.subtract") is False


def test_what_the_package_itself_uses_beside_compiled_code_is_not_missing_for_certain(package: Package) -> None:
    """torch/_C.so puts FloatTensor into torch.cuda, and torch's own code uses it."""
    files = {"cuda.py": "import pkg._C\n", "dynamo.py": "import pkg\nTYPES = (pkg.cuda.FloatTensor,)\n"}
    assert package(files).has("pkg.cuda.FloatTensor") is False
    symbols = package({**files, "_C.so": ""})
    assert symbols.has("pkg.cuda.FloatTensor") is None
    assert symbols.has("pkg.cuda.OldTensor") is False


def test_a_compiled_name_that_only_the_newest_release_writes_came_later(package: Package, tmp_path: Path) -> None:
    """As torch.hash_tensor, which torch 2.6 has not, though a module of it defines a function by that name."""
    root = "import pkg._C\nfor name in dir(pkg._C):\n    globals()[name] = getattr(pkg._C, name)\n"
    own = "def hash_tensor(x): ...\nhash_tensor(1)\nimport pkg\npkg.add\n"
    older = package({"__init__.py": root, "_C.so": "", "utils.py": own, "docs.py": "quoted = ['mul']\n"})
    assert older.has("pkg.hash_tensor") is None
    newest = tmp_path / "newest/pkg"
    newest.mkdir(parents=True)
    (newest / "__init__.py").write_text(root)
    (newest / "overrides.py").write_text("import pkg\n(pkg.hash_tensor, pkg.add, pkg.mul, pkg.fp8.scaled)\n")
    older = package({"__init__.py": root, "_C.so": "", "utils.py": own, "docs.py": "quoted = ['mul']\n"})
    older.newest = lambda: ("2.0", Symbols(newest))
    assert older.has("pkg.hash_tensor") is False
    assert older.has("pkg.fp8") is False
    assert older.has("pkg.add") is None, "its own code uses it"
    assert older.has("pkg.mul") is None, "it is mentioned"
    assert older.has("pkg.unheard_of") is None, "the newest does not write it either"


@pytest.mark.parametrize("key", ["f'pkg.old.{n}'", "f'{__name__}.{n}'", "__name__ + '.' + n"])
def test_a_module_that_puts_others_below_itself_lacks_no_submodule_for_certain(package: Package, key: str) -> None:
    files = {"old/__init__.py": f"import sys\nfor n in NAMES:\n    sys.modules[{key}] = load(n)\n"}
    symbols = package({**files, "new.py": "import sys\nfor n in NAMES:\n    sys.modules[f'other.{n}'] = load(n)\n"})
    assert symbols.has("pkg.old.inner.name") is None
    assert symbols.has("pkg.new.inner.name") is False


@pytest.mark.parametrize(
    "root",
    [
        'def alias(name, target):\n    sys.modules[name] = target\nalias(f"{__name__}.beds", ".rows")\n'
        'for name in NAMES:\n    alias(f"{__name__}.{name}_fast", name)\n',
        'ALIASES = {"beds": "rows"}\nFAST = re.compile(r"pkg\\.(\\w+)_fast")\n'
        "sys.meta_path.append(Finder(ALIASES, FAST))\n",
    ],
)
def test_earlier_names_of_modules_that_the_package_serves_are_not_missing_for_certain(
    package: Package, root: str
) -> None:
    """As transformers 5 serves tokenization_utils, and image_processing_x_fast for image_processing_x."""
    symbols = package({"__init__.py": root, "rows.py": "", "sown.py": ""})
    assert symbols.has("pkg.beds.Bed") is None
    assert symbols.has("pkg.sown_fast.Bed") is None
    assert symbols.has("pkg.mown_fast.Bed") is False
    assert symbols.has("pkg.paths.Bed") is False


def test_what_a_module_under_an_earlier_name_may_give_is_what_the_package_mentions(package: Package) -> None:
    """As `from .tokenization_gemma_fast import *` in transformers 5, and AutoModelForVision2Seq, which is gone."""
    root = "import sys\nfor name in NAMES:\n    sys.modules[f'{__name__}.{name}_fast'] = load(name)\n"
    models = {"models.py": "from .sown_fast import *\n", "sown.py": "", "rows.py": "class Row: ...\n"}
    symbols = package({"__init__.py": root, **models})
    assert symbols.has("pkg.models.Row") is None
    assert symbols.has("pkg.models.Bed") is False


def test_what_is_bound_by_name_binds_that_name_alone(package: Package) -> None:
    start = "def start():\n    global server\n    server = 1\n\n"
    start += "from other import Lazy\nLazy('models', globals(), 'pkg.models')\n"
    symbols = package({"mod.py": f"{start}if (found := 1):\n    pass\n\ndef f():\n    return (own := 1)\n"})
    assert symbols.has("pkg.mod.server") is None
    assert symbols.has("pkg.mod.found") is not False
    assert symbols.has("pkg.mod.models") is None
    assert symbols.has("pkg.mod.own") is False


def test_a_stub_beside_a_module_names_what_may_be_there(package: Package) -> None:
    symbols = package({"ops.py": "import _C\n", "ops.pyi": "def conv(x: int) -> int: ...\n"})
    assert symbols.has("pkg.ops.conv") is None
    assert symbols.has("pkg.ops.gone") is False


CLASSES = {
    "its __dict__ is updated": "class A:\n    def __init__(self, values):\n        self.__dict__.update(values)",
    "its vars are updated": "class A:\n    def __init__(self, values):\n        vars(self).update(values)",
    "its __dict__ is replaced": "class A:\n    def __init__(self, values):\n        self.__dict__ = values",
    "an item of its __dict__": "class A:\n    def put(self, name):\n        self.__dict__[name] = 1",
    "object.__setattr__": "class A:\n    def put(self, name):\n        object.__setattr__(self, name, 1)",
    "in its body": "class A:\n    for n in NAMES:\n        vars()[n] = 1",
    "after it": "class A: ...\n\nfor n in NAMES:\n    setattr(A, n, 1)",
}


@pytest.mark.parametrize("text", CLASSES.values(), ids=CLASSES)
def test_a_class_whose_attributes_are_computed_lacks_none_for_certain(package: Package, text: str) -> None:
    symbols = package({"mod.py": f"NAMES = read()\n{text}\n"})
    assert symbols.has("pkg.mod.A.anything") is None


def test_object_setattr_with_a_constant_shows_the_name(package: Package) -> None:
    text = "class A:\n    def __init__(self):\n        object.__setattr__(self, 'kept', 1)\n"
    symbols = package({"mod.py": text})
    assert symbols.has("pkg.mod.A.kept") is not False
    assert symbols.has("pkg.mod.A.gone") is False


def test_what_another_module_sets_from_a_list_is_not_called_missing(package: Package) -> None:
    setting = "import pkg\nNAMES = ['listed']\nfor name in NAMES:\n    setattr(pkg, name, make(name))\n"
    symbols = package({"__init__.py": "", "ops/atb.py": setting, "mod.py": "NAMES = ['quoted']\n"})
    assert symbols.has("pkg.listed") is None
    assert symbols.has("pkg.quoted") is False
    assert symbols.has("pkg.other") is False
