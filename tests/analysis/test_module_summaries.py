"""What is kept of a package's module: plain values that answer as its syntax does, in this command and the next."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.symbols import Class, Function, Symbols, module_summary, sources
from patcher.analysis.symbols.class_bodies import read_class
from patcher.analysis.symbols.module_summary import ModuleSummary
from patcher.packages.releases.kept import packed, unpacked

ENGINE = '''\
from dataclasses import dataclass


class Base:
    def __init__(self, size=1):
        self.size = size

    @property
    def twice(self):
        """Two times the
size."""
        return self.size * 2


@dataclass(kw_only=True)
class Engine(Base):
    name: "str" = "x"

    class Inner:
        async def run(self, *args, depth: int = 0, **kwargs): ...


def make(name):
    engine = Engine(name=name)
    return engine
'''
NAMES = ("Base", "Base.twice", "Base.size", "Engine", "Engine.twice", "Engine.Inner.run", "make", "Engine.nothing")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("from pkg.engine import *\n")
    (tmp_path / "pkg/engine.py").write_text(ENGINE)
    return tmp_path / "pkg"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that were parsed, whole or in part."""
    texts: list[bytes] = []
    for module in (sources, module_summary):
        parse: Callable[..., ast.Module] = module.parse  # type: ignore[attr-defined]

        def noted(source: bytes, _parse: Callable[..., ast.Module] = parse, **words: bool) -> ast.Module:
            texts.append(source)
            return _parse(source, **words)

        monkeypatch.setattr(module, "parse", noted)
    return texts


def told_of(folder: Path) -> list[object]:
    symbols = Symbols(folder, kept=KeptReadings([folder], package=True))
    found: list[object] = [symbols.has(f"pkg.{name}") for name in NAMES]
    found += [symbols.signature(symbols.resolve(f"pkg.{name}").definition) for name in ("Engine", "Engine.Inner.run")]
    symbols.modules.keep()
    return found


def test_a_second_command_parses_nothing(folder: Path, parsed: list[bytes]) -> None:
    first = told_of(folder)
    assert first[: len(NAMES)] == [True] * (len(NAMES) - 1) + [False]
    assert parsed
    parsed.clear()
    assert told_of(folder) == first
    assert parsed == []


def test_a_module_that_has_changed_is_read_again_alone(folder: Path, parsed: list[bytes]) -> None:
    told_of(folder)
    parsed.clear()
    (folder / "engine.py").write_text(ENGINE.replace("size", "length"))
    assert told_of(folder)[NAMES.index("Base.size")] is False
    assert not any(b"import *" in text for text in parsed)


def test_two_commands_that_ask_different_things_do_not_hinder_each_other(folder: Path, parsed: list[bytes]) -> None:
    one, other = (Symbols(folder, kept=KeptReadings([folder], package=True)) for _ in range(2))
    assert one.has("pkg.Engine.twice")
    assert other.has("pkg.make(name)")
    for symbols in (one, other):
        symbols.modules.keep()
    parsed.clear()
    assert told_of(folder)[0] is True
    assert ENGINE.encode() not in parsed


def test_what_is_damaged_is_read_anew(folder: Path) -> None:
    first = told_of(folder)
    (kept,) = (folder.parent / "cache/modules").iterdir()
    kept.write_bytes(kept.read_bytes()[:-9])
    assert told_of(folder) == first


def test_all_that_is_known_of_a_module_is_plain(folder: Path) -> None:
    symbols = Symbols(folder)
    owner = symbols.resolve("pkg.engine.Engine").definition
    assert isinstance(owner, Class)
    summary = symbols.modules.holding("pkg.engine")
    body = summary.asked_of(owner.header, read_class)
    assert [field.name for field in body.fields] == ["name"]
    again = unpacked(packed((summary.scope, summary.exported, summary.known)))
    assert repr(again) == repr((summary.scope, summary.exported, summary.known))
    assert "ast." not in repr(again)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_definition_is_parsed_as_it_stands_in_its_file(folder: Path, end: str, encoding: str) -> None:
    text = f"# coding: {encoding}\n" + ENGINE.replace("Two", "Zw\u00f6lf")
    (folder / "engine.py").write_bytes(text.replace("\n", end).encode(encoding))
    symbols = Symbols(folder)
    for name in ("Base", "Base.twice", "Engine.Inner.run", "make"):
        definition = symbols.resolve(f"pkg.engine.{name}").definition
        assert isinstance(definition, Class | Function)
        node = symbols.syntax(definition)
        whole = {one.lineno: one for one in ast.walk(ast.parse(text)) if getattr(one, "name", "") == node.name}
        assert ast.dump(node, include_attributes=False) == ast.dump(whole[node.lineno], include_attributes=False)


def test_no_syntax_is_held(folder: Path) -> None:
    symbols = Symbols(folder)
    assert symbols.has("pkg.Engine.twice")
    held = symbols.modules.holding("pkg.engine")
    assert isinstance(held, ModuleSummary)
    waiting: list[object] = [held.scope, held.known, symbols._members]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        assert not isinstance(one, ast.AST)
        if id(one) not in seen and type(one).__module__.startswith(("builtins", "patcher")):
            seen.add(id(one))
            waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list | tuple) else ()
            waiting += [getattr(one, name) for name in getattr(type(one), "__slots__", ()) if hasattr(one, name)]
