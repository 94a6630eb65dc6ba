"""Whether an engine argument, `vllm serve --flag`, is one that the release of vLLM takes, as its sources spell them:
flag-removed, with the option that is written much the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from patcher.analysis.bindings import FunctionHeader
from patcher.analysis.expressions import Expression, expression
from patcher.analysis.findings import Broken, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.symbols import Class, Function, Module, Symbols
from patcher.analysis.symbols.classes import body_of_class, linearise
from patcher.analysis.symbols.module_summary import ModuleSummary
from patcher.analysis.syntax import below, strings, text_in
from patcher.analysis.uses import EngineFlag, Use
from patcher.i18n import Phrase, phrase

ENGINE_ARGS = "vllm.engine.arg_utils.AsyncEngineArgs"
_SERVE = "vllm.entrypoints.cli.serve"
_COMMON = frozenset({"help", "h", "version", "v"})
_NEGATED = "no_"


@dataclass(frozen=True, slots=True)
class Options:
    """Names without dashes in front, with underscores for dashes."""

    options: frozenset[str] = frozenset()
    """Long options of the command line."""
    short: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    """Those of them that only exist in one sense: `--no-…` is refused."""
    fields: frozenset[str] = frozenset()
    """The fields of AsyncEngineArgs."""

    def takes(self, name: str) -> bool:
        """Whether the command line takes `--name`: itself, `no_name`, or a beginning that only one option has."""
        name = name.partition(".")[0].rstrip("+")
        if name in self.options or name in self.short or name in _COMMON:
            return True
        positive = name.removeprefix(_NEGATED)
        if positive != name and positive in self.options:
            return positive not in self.switches
        # argparse accepts an abbreviation that is unambiguous.
        begun = [option for option in self.options if option.startswith(name)]
        return len(begun) == 1 and len(name) > 1


def options_of(symbols: Symbols) -> Options | None:
    """What a vLLM release takes; None if its sources do not say so in a form that is understood."""
    return symbols.answers.once("engine options", lambda: _read(symbols))


def _read(symbols: Symbols) -> Options | None:
    engine = symbols.resolve(ENGINE_ARGS).definition
    if not isinstance(engine, Class):
        return None
    parser = _Parser(symbols)
    serve = symbols.modules.find(_SERVE)
    # Newer releases put the parser of `vllm serve` together in a module of its own.
    if isinstance(serve, Module):
        parser.read_module(serve)
    else:
        parser.read_class(engine)
    return Options(
        frozenset(parser.options),
        frozenset(parser.short),
        frozenset(parser.switches),
        frozenset(_fields(symbols, engine)),
    )


class Argument(NamedTuple):
    """An option that `add_argument` is given: its texts, or an f-string."""

    texts: tuple[str, ...]
    computed: bool
    one_sense: bool


class _Parser:
    """Gathers `add_argument` calls, following `X.add_cli_args(parser)` and `make_arg_parser(parser)`."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._seen: set[str] = set()
        self.options: set[str] = set()
        self.short: set[str] = set()
        self.switches: set[str] = set()

    def read_module(self, module: Module) -> None:
        summary = self._symbols.modules.summary(module)
        if isinstance(summary, ModuleSummary):
            self._follow(summary.asked(_arguments), module.name, None)

    def read_class(self, owner: Class) -> None:
        for base in linearise(self._symbols, owner):
            if isinstance(base, Class) and self._first(f"{base.module}.{base.qualname}"):
                for method in body_of_class(self._symbols, base).methods:
                    self._read(base.module, method, owner)

    def _read(self, module: str, function: FunctionHeader, owner: Class | None) -> None:
        self._follow(self._symbols.modules.holding(module).asked_of(function, _arguments), module, owner)

    def _first(self, name: str) -> bool:
        fresh = name not in self._seen
        self._seen.add(name)
        return fresh

    def _follow(self, found: list[Argument | Expression], module: str, owner: Class | None) -> None:
        for one in found:
            if isinstance(one, Argument):
                self._add(one, owner)
                continue
            made = self._symbols.expression(module, one).definition
            if isinstance(made, Class):
                self.read_class(made)
            elif isinstance(made, Function) and self._first(f"{made.module}.{made.qualname}"):
                self._read(made.module, made.header, None)

    def _add(self, argument: Argument, owner: Class | None) -> None:
        written: Iterable[str] = argument.texts
        # `parser.add_argument(f"--{name}")` in a loop over the fields of the class.
        if argument.computed and owner is not None:
            written = [f"--{name}" for name in _fields(self._symbols, owner)]
        for text in written:
            name = text.lstrip("-").replace("-", "_")
            if text.startswith("--"):
                self.options.add(name)
                if argument.one_sense:
                    self.switches.add(name)
            elif text.startswith("-"):
                self.short.add(name)


def _arguments(within: ast.AST) -> list[Argument | Expression]:
    """What `add_argument` is called with, and the classes and functions that add more."""
    nodes = below(within)
    loops = _loop_values(nodes)
    found: list[Argument | Expression] = []
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=arguments):
                # `action="store_true"` has no `--no-...`; `BooleanOptionalAction` has.
                one_sense = any(
                    word.arg == "action" and isinstance(word.value, ast.Constant) and "store" in str(word.value.value)
                    for word in node.keywords
                )
                for argument in arguments:
                    texts = loops.get(argument.id, []) if isinstance(argument, ast.Name) else []
                    if (text := text_in(argument)) is not None:
                        texts = [text]
                    found.append(Argument(tuple(texts), isinstance(argument, ast.JoinedStr), one_sense))
            case ast.Call(func=ast.Attribute(attr="add_cli_args", value=value)):
                found.append(expression(value))
            case ast.Call(func=ast.Name(id="make_arg_parser") as name):
                found.append(expression(name))
    return found


def _loop_values(nodes: Sequence[ast.AST]) -> dict[str, list[str]]:
    """Texts that a loop's variable runs through: `for arg, type in [("--a", x), …]`, also through a name."""
    tables = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, ast.For):
            table = tables.get(node.iter.id) if isinstance(node.iter, ast.Name) else node.iter
            first = node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target
            if table is not None and isinstance(first, ast.Name):
                found[first.id] = [text for text in strings(table) if text.startswith("--")]
    return found


def _fields(symbols: Symbols, owner: Class) -> Iterator[str]:
    """A dataclass's fields, inherited ones included."""
    for base in linearise(symbols, owner):
        if isinstance(base, Class):
            yield from (field.name for field in body_of_class(symbols, base).fields)


_OPPOSITES = (("disable_", "enable_"), ("enable_", "disable_"), ("no_", ""))
_LIKE_ENOUGH = 0.75
"""How alike two names must be (`SequenceMatcher.ratio`) to be suggested. A guess."""


def judge_flag(use: Use, program: Program) -> Verdict:
    """Whether vLLM takes the flag: on its command line, or as a field of its engine arguments."""
    assert isinstance(use.need, EngineFlag)
    if "vllm" not in program.target.against or "vllm" not in program.target.packages:
        return Unrelated()
    name = use.need.name.replace("-", "_")
    symbol = f"{ENGINE_ARGS}({name})"
    options = options_of(program.target.packages["vllm"])
    if options is None:
        return Undecided(symbol, "the engine arguments of this release are not found in its sources")
    first = name.partition(".")[0]
    # A field of the engine arguments need not be on the command line; given as a keyword it is enough.
    if options.takes(first) or (not use.need.option and first in options.fields):
        return Fine(symbol)
    version = program.target.against["vllm"]
    detail = phrase("vLLM {version} has no engine argument {name}", version=version, name=first)
    return Broken((Problem("flag-removed", symbol, use.line, detail, _suggestion(first, options)),))


def _suggestion(name: str, options: Options) -> Phrase | None:
    there = options.options | options.fields
    # `disable_log_requests` became `enable_log_requests`.
    for prefix, other in _OPPOSITES:
        opposite = other + name.removeprefix(prefix)
        if name.startswith(prefix) and opposite in there:
            return phrase("there is {other}, whose sense is the opposite", other=opposite)
    near = nearest(name, there)
    return phrase("there is {names}", names=", ".join(near)) if near else None


def nearest(name: str, names: frozenset[str] | set[str]) -> list[str]:
    """Up to two names that are written much the same, the likest first; `cuda_graph` and `cudagraph` are alike."""
    from difflib import SequenceMatcher

    bare = _bare(name)
    rated = sorted(
        ((SequenceMatcher(None, bare, _bare(other)).ratio(), _words_shared(name, other), other) for other in names),
        key=lambda entry: (-entry[0], -entry[1], entry[2]),
    )
    likely = [entry for entry in rated[:2] if entry[0] >= _LIKE_ENOUGH]
    return [other for ratio, _, other in likely if ratio >= likely[0][0] - 0.05]


def _bare(name: str) -> str:
    return re.sub(r"^(?:enable|disable|no|use)_", "", name).replace("_", "")


def _words_shared(one: str, other: str) -> int:
    return len(set(one.split("_")) & set(other.split("_")))
