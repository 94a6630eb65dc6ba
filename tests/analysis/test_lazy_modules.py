"""Packages that put a lazy module in their place serve what type checkers are shown."""

from __future__ import annotations

from pathlib import Path

from patcher.analysis.symbols import Symbols

INIT = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from .inner import *
    from .other import Named as Named
else:
    import sys
    sys.modules[__name__] = _Lazy(__name__)
"""


def package(tmp_path: Path, files: dict[str, str]) -> Symbols:
    for name, text in files.items():
        path = tmp_path / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Symbols(tmp_path / "pkg")


def test_names_for_type_checkers_are_served(tmp_path: Path) -> None:
    inner = '__all__ = ["Listed"]\n\nclass Listed: ...\nclass Kept: ...\n'
    symbols = package(tmp_path, {"__init__.py": INIT, "inner.py": inner, "other.py": "class Named: ...\n"})
    assert symbols.has("pkg.Listed") is True
    assert symbols.has("pkg.Named") is True
    assert symbols.has("pkg.Kept") is False
    assert symbols.has("pkg.Gone") is False


def test_without_a_lazy_module_they_are_not(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .inner import Listed\n"
    symbols = package(tmp_path, {"__init__.py": text, "inner.py": "class Listed: ...\n"})
    assert symbols.has("pkg.Listed") is False


def test_a_star_import_finds_what_its_module_computes(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from .a import *\n",
        "a.py": "from .b import *\n",
        "b.py": "__all__ = ['x']\nx = 1\ny = 2\n",
    }
    symbols = package(tmp_path, files)
    assert symbols.has("pkg.x") is True
    assert symbols.has("pkg.y") is False
