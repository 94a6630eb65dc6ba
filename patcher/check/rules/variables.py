"""The environment variables that a release reads, and whether one that is set is among them.

Gives the kinds env-removed, of one that an earlier release read, and env-unknown.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from patcher.analysis.findings import Broken, FindingKind, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.symbols import Module, Symbols, Unknown
from patcher.analysis.uses import EnvironmentVariable, Use
from patcher.check.rules.engine_flags import options_of
from patcher.i18n import Language, Phrase, phrase
from patcher.records.settings import Setting, load_settings

_OWNERS = (
    ("vllm", re.compile(r"VLLM_(?!ASCEND_|SPYRE_|GAUDI_|OMNI_)\w+")),
    ("ray", re.compile(r"RAY_\w+")),
    ("transformers", re.compile(r"TRANSFORMERS_\w+")),
    ("sglang", re.compile(r"SGLANG_\w+|SGL_\w+")),
    ("torch", re.compile(r"(?:TORCH|PYTORCH)_\w+")),
)
"""Whose variable a name is. Plugins have prefixes of their own below vLLM's."""
_COMPILED = frozenset({"ray", "torch"})
"""Packages whose compiled parts read variables too: what their Python does not read is not decided."""
_REGISTRY = {"vllm": "vllm.envs"}
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class _OtherReads:
    """Names that the package's sources read, directly or through a constant, and all that they mention."""

    read: frozenset[str]
    mentioned: frozenset[str]


def judge_variable(use: Use, program: Program, baseline: Program | None = None) -> Verdict:
    """Whether the target reads the variable that is set; `baseline` tells whether an earlier release did."""
    assert isinstance(use.need, EnvironmentVariable)
    name = use.need.name
    package = owner_of(name)
    if package is None or package not in program.target.against or package not in program.target.packages:
        return Unrelated()
    symbols = program.target.packages[package]
    symbol = f"{_REGISTRY.get(package, package)}.{name}"
    if name in _registered_in(symbols) or name in _other_reads_in(symbols).read:
        return Fine(symbol)
    if package in _COMPILED:
        return Undecided(symbol, f"{package} also reads variables in compiled code")
    version = program.target.against[package]
    before = baseline.target.packages.get(package) if baseline is not None else None
    advice = advice_on_variable(name, package, version) or _replaced_by_option(name, symbols)
    removed = (
        name in _other_reads_in(symbols).mentioned
        or (before is not None and name in variables_of(before))
        or was_read_before(name, package, version)
    )
    kind: FindingKind = "env-removed" if removed else "env-unknown"
    if removed:
        detail = phrase("{package} {version} no longer reads {name}", package=package, version=version, name=name)
    else:
        detail = phrase("{package} {version} does not read {name}", package=package, version=version, name=name)
    return Broken((Problem(kind, symbol, use.line, detail, advice),))


def _replaced_by_option(name: str, symbols: Symbols) -> Phrase | None:
    """Advice for a variable whose setting is an engine argument of the same name now."""
    if symbols.modules.name != "vllm":
        return None
    # VLLM_ATTENTION_BACKEND -> attention_backend
    field = name.removeprefix("VLLM_").lower()
    options = options_of(symbols)
    if options is not None and (field in options.options or field in options.fields):
        return phrase("there is the engine argument {name}", name=field)
    return None


def variables_of(symbols: Symbols) -> frozenset[str]:
    """All variables that a release of the package reads: its registry, and direct reads elsewhere."""
    return _registered_in(symbols) | _other_reads_in(symbols).read


def owner_of(name: str) -> str | None:
    """The package that a variable belongs to by its prefix."""
    return next((package for package, names in _OWNERS if names.fullmatch(name)), None)


def _registry(symbols: Symbols) -> Module | None:
    name = _REGISTRY.get(symbols.modules.name)
    found = symbols.modules.find(name) if name is not None else None
    return found if isinstance(found, Module) else None


def _registered_in(symbols: Symbols) -> frozenset[str]:
    """The keys of the registry, and the names under which their functions read the environment."""
    module = _registry(symbols)
    summary = symbols.modules.summary(module) if module is not None else Unknown("it has no registry")
    return frozenset() if isinstance(summary, Unknown) else summary.asked(_names_in_module)


def _names_in_module(tree: ast.Module) -> frozenset[str]:
    names: set[str] = set()
    for node in tree.body:
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id="environment_variables"), value=ast.Dict() as table)
                | ast.Assign(targets=[ast.Name(id="environment_variables")], value=ast.Dict() as table)
            ):
                # `environment_variables = {"VLLM_X": lambda: os.environ.get("VLLM_X", ...)}` in vllm/envs.py.
                names |= {str(key.value) for key in table.keys if isinstance(key, ast.Constant) and _is_name(key.value)}
                names |= _strings_read(table)
            case ast.FunctionDef():
                names |= _strings_read(node)
    return frozenset(names)


def _strings_read(within: ast.AST) -> set[str]:
    """First arguments of calls and subscripts that look like a variable's name."""
    found = set()
    for node in ast.walk(within):
        match node:
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _is_name(name):
                found.add(name)
            case ast.Subscript(slice=ast.Constant(value=str(name))) if _is_name(name):
                found.add(name)
    return found


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _other_reads_in(symbols: Symbols) -> _OtherReads:
    return symbols.answers.once("other variables", lambda: _scan(symbols))


def _scan(symbols: Symbols) -> _OtherReads:
    """One pass over the bytes of all sources: parsing them all would take a hundred times as long."""
    package = symbols.modules.name
    prefixes = {"vllm": b"VLLM_", "ray": b"RAY_", "transformers": b"TRANSFORMERS_", "sglang": b"SGL", "torch": b"TORCH"}
    start = prefixes[package]
    if package == "torch":
        word, quoted = re.compile(rb"\b(?:PY)?TORCH\w+"), re.compile(rb"""["']((?:PY)?TORCH\w+)["']""")
    else:  # what is literal comes first, and what stands before it is looked back at: so the search is quick
        word = re.compile(rb"%b(?<!\w%b)\w+" % (start, start))
        quoted = re.compile(rb"""%b(?<=["']%b)\w+(?=["'])""" % (start, start))
    read: set[bytes] = set()
    mentioned: set[bytes] = set()
    registry = _registry(symbols)
    for module, content in symbols.text.containing(start):
        if registry is not None and module == registry.name:
            continue
        mentioned.update(word.findall(content))
        # A name in quotes in a module that reads the environment is taken for one that is read: names are often kept in
        # constants or passed to a helper.
        if b"environ" in content or b"getenv" in content:
            read.update(quoted.findall(content))
    return _OtherReads(_decoded(read), _decoded(mentioned))


def _decoded(names: set[bytes]) -> frozenset[str]:
    return frozenset(name.decode("ascii", "replace") for name in names)


@dataclass(frozen=True, slots=True)
class RecordAdvice(Phrase):
    """A record's own words, which come with their Chinese."""

    chinese: str = ""

    def render(self, language: Language) -> str:
        return self.chinese if language == "zh" and self.chinese else str(self)


def advice_on_variable(name: str, package: str, version: str) -> Phrase | None:
    """What to use instead of a variable that the release does not read; None if no record says."""
    for setting in _records(name):
        if setting.reasons.instead and not _reads(setting, package, version):
            return RecordAdvice(
                "{instead}", {"instead": setting.reasons.instead}, setting.zh.instead if setting.zh else ""
            )
    return None


def was_read_before(name: str, package: str, version: str) -> bool:
    """Whether a record names releases of the package that read the variable, this one not among them."""
    return any(setting.reader == package and not _reads(setting, package, version) for setting in _records(name))


def _reads(setting: Setting, package: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    if setting.reader == "nothing" or package not in setting.when:
        return setting.reader != "nothing"
    try:
        return SpecifierSet(setting.when[package]).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _records(name: str) -> tuple[Setting, ...]:
    return _by_variable().get(name, ())


@lru_cache(maxsize=1)
def _by_variable() -> dict[str, tuple[Setting, ...]]:
    found: dict[str, tuple[Setting, ...]] = {}
    for setting in load_settings():
        if setting.variable:
            found[setting.variable] = (*found.get(setting.variable, ()), setting)
    return found
