"""What tests ask about the target: the version of a distribution, whether a module or name is there, parameters of a
function, and what a failed import raises.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol
from weakref import ref

from patcher.analysis.bindings import Imported
from patcher.analysis.conditions.terms import (
    ABSENT_DISTRIBUTION,
    EXCEPTIONS,
    FAILED_IMPORT,
    UNKNOWN,
    Known,
    Method,
    Names,
    Raised,
    Reference,
    Setting,
    SignatureOf,
    Term,
)
from patcher.analysis.symbols import Absent, Class, External, Function, Resolution, Symbols, Unknown
from patcher.analysis.target import Target

if TYPE_CHECKING:
    from patcher.analysis.conditions.job import Job


class Resolver(Protocol):
    """Follows dotted names across the packages of a target."""

    @property
    def target(self) -> Target: ...

    def resolve(self, dotted: str) -> Resolution: ...


class Asker(Protocol):
    """Who evaluates a test, and notes that its answer rests on the target."""

    asked: bool
    job: Job | None


_PARSE = frozenset(
    {"packaging.version.parse", "packaging.version.Version", "pkg_resources.parse_version",
     "pkg_resources.extern.packaging.version.parse", "distutils.version.LooseVersion",
     "distutils.version.StrictVersion", "looseversion.LooseVersion"}
)  # fmt: skip
_VERSION_OF = frozenset({"importlib.metadata.version", "importlib_metadata.version"})
_DISTRIBUTION = frozenset(
    {"importlib.metadata.distribution", "importlib_metadata.distribution", "pkg_resources.get_distribution"}
)
_SIGNATURES = frozenset({"inspect.signature", "inspect.getfullargspec"})
_TEXT_FIELDS = frozenset({"__version__", "VERSION"})
_VERSION_FIELDS = frozenset(
    {"release", "major", "minor", "micro", "base_version", "public", "local", "is_prerelease", "is_devrelease",
     "is_postrelease", "pre", "post", "dev", "epoch"}
)  # fmt: skip
_PROVIDED_BY = {"PIL": "pillow", "yaml": "pyyaml", "sklearn": "scikit-learn", "cv2": "opencv-python"}


class TargetQueries:
    """One target, asked by those who evaluate."""

    def __init__(self, program: Resolver | None = None) -> None:
        """Without a program nothing is known of what is outside."""
        self._program = None if program is None else ref(program)
        self.has_target = program is not None
        self._packages: Mapping[str, Symbols] = {}
        self._versions: dict[str, str | None] = {}
        if program is not None:
            target = program.target
            self._packages = target.packages
            self._versions = {_normal(name): version for name, version in target.versions.items()}
            for package, version in target.against.items():
                known = version if package in target.packages else None
                self._versions.setdefault(_normal(package), known)

    def _resolve(self, dotted: str) -> Resolution:
        program = self._program() if self._program is not None else None
        return program.resolve(dotted) if program is not None else Resolution(External(dotted))

    def version(self, distribution: str) -> Known | None:
        """The version of a distribution as text; `Known(None)` if it is not installed, None if that is not known."""
        name = _normal(distribution)
        return Known(self._versions[name], name) if name in self._versions else None

    def reference(self, dotted: str, evaluator: Asker) -> Term:
        """What a dotted name outside the tree comes to."""
        package, _, rest = dotted.partition(".")
        last = rest.rpartition(".")[2]
        # `vllm.__version__`, `torch.version.VERSION`
        if last in _TEXT_FIELDS and _PARSE.isdisjoint({dotted}):
            evaluator.asked = True
            found = self.version(_PROVIDED_BY.get(package, package))
            if found is not None and found.value is not None:
                return found
            return UNKNOWN
        # `vllm.__version_tuple__[:2] >= (0, 9)`
        if last in ("__version_tuple__", "version_tuple"):
            evaluator.asked = True
            found = self.version(package)
            if found is not None and isinstance(found.value, str):
                return Known(tuple(int(part) for part in re.findall(r"\d+", found.value)[:3]), found.package)
            return UNKNOWN
        if last in ("__dataclass_fields__", "model_fields", "__annotations__", "__fields__", "__struct_fields__"):
            evaluator.asked = True
            return self.parameters(Reference(dotted.rpartition(".")[0]))
        # The Python that trains may be another than this one.
        if dotted == "sys.version_info":
            return UNKNOWN
        return Reference(dotted)

    def has(self, dotted: str, evaluator: Asker) -> bool | None:
        """Whether there is such a name; None if that is not known."""
        evaluator.asked = True
        package = dotted.partition(".")[0]
        symbols = self._packages.get(package)
        if symbols is not None:
            match self._resolve(dotted).definition:
                case Absent():
                    return False
                case Unknown():
                    return None
                # `vllm.utils.os` is there if vllm.utils imports os.
                case External() as outer if outer.name.partition(".")[0] in sys.stdlib_module_names:
                    return True
                case External():
                    return True if symbols.has(dotted) else None
                case _:
                    return True
        return self._is_there(package, whole="." not in dotted)

    def has_import(self, one: Imported) -> bool | None:
        """Whether an import succeeds."""
        package = one.module.partition(".")[0]
        if package in self._packages:
            match self._resolve(one.needed).definition:
                case Absent():
                    return False
                case Unknown():
                    return None
                case _:
                    return True
        return self._is_there(package, whole="." not in one.needed)

    def _is_there(self, package: str, *, whole: bool) -> bool | None:
        """Whether a package that is not checked against is there; a part of it is only known to be missing with it."""
        if package in sys.stdlib_module_names:
            return True
        found = self.version(_PROVIDED_BY.get(package, package))
        if found is None:
            return None
        if found.value is None:
            return False
        return True if whole else None

    def raised_by(self, one: Imported) -> tuple[str, ...]:
        """What a failed import raises."""
        package = one.module.partition(".")[0]
        if one.name is not None and package in self._packages:
            # `from vllm.gone import x` raises ModuleNotFoundError, `from vllm.there import gone` ImportError alone.
            missing = isinstance(self._resolve(one.module).definition, Absent)
            return FAILED_IMPORT if missing else FAILED_IMPORT[1:]
        return FAILED_IMPORT

    def parameters(self, of: Reference) -> Term:
        """The names of a thing's parameters; a class's are its constructor's."""
        package = of.dotted.partition(".")[0]
        symbols: Symbols | None = self._packages.get(package)
        if symbols is None:
            return UNKNOWN
        definition = self._resolve(of.dotted).definition
        if isinstance(definition, Absent | Unknown | External):
            return UNKNOWN
        found = symbols.signature(definition)
        if isinstance(found, Unknown):
            return UNKNOWN
        names = frozenset(parameter.name for parameter in found.parameters)
        # A class that takes `**kwargs` and shows no parameter may take any.
        complete = not (isinstance(definition, Class) and found.any_keyword and not names)
        # A decorator may change how many there are, and of a method it depends on how it is come by.
        plain = isinstance(definition, Function) and definition.owner is None and not definition.header.decorators
        count = len(found.parameters) + found.any_positional + found.any_keyword
        return Names(names, complete, count if plain else None)

    def known_attribute(self, of: Known, name: str) -> Term:
        """An attribute of a version, or a method of a plain value."""
        from packaging.version import Version

        if isinstance(of.value, Version):
            return Known(getattr(of.value, name), of.package) if name in _VERSION_FIELDS else UNKNOWN
        if isinstance(of.value, _Distribution):
            return Known(of.value.version, of.package) if name in ("version", "parsed_version") else UNKNOWN
        # `None.major` raises AttributeError.
        if of.value is None:
            raise Raised(*EXCEPTIONS["AttributeError"])
        # `.value` of an enumeration whose members are texts.
        if name == "value" and isinstance(of.value, str):
            return of
        return Method(of, name) if isinstance(of.value, str | tuple | dict) else UNKNOWN

    def call(self, dotted: str, arguments: list[Term], words: dict[str, Term], evaluator: Asker) -> Term | None:
        """The result of a well-known function; None for any other."""
        if dotted in _PARSE:
            return _parsed(arguments[0]) if arguments and not isinstance(arguments[0], Setting) else UNKNOWN
        if dotted in _VERSION_OF or dotted in _DISTRIBUTION:
            evaluator.asked = True
            name = arguments[0] if arguments else words.get("distribution_name", UNKNOWN)
            if not isinstance(name, Known) or not isinstance(name.value, str):
                return UNKNOWN
            found = self.version(name.value)
            if found is None:
                return UNKNOWN
            if found.value is None:
                raise Raised(*ABSENT_DISTRIBUTION)
            return Known(_Distribution(str(found.value)), found.package) if dotted in _DISTRIBUTION else found
        if dotted in ("importlib.util.find_spec", "importlib.import_module", "pkgutil.find_loader"):
            return self._located(dotted, arguments, evaluator)
        if dotted in _SIGNATURES:
            return SignatureOf(arguments[0]) if arguments and isinstance(arguments[0], Reference) else UNKNOWN
        if dotted in ("dataclasses.fields", "dataclasses.asdict") and arguments and isinstance(arguments[0], Reference):
            evaluator.asked = True
            return self.parameters(arguments[0])
        # The plain job sets no variable that switches a feature on.
        if dotted in ("os.getenv", "os.environ.get") and evaluator.job is not None:
            return arguments[1] if len(arguments) > 1 else Known(None)
        if match := re.fullmatch(r"transformers\.utils(?:\.import_utils)?\.is_(\w+)_available", dotted):
            return self._available(match[1], evaluator)
        return None

    def _available(self, name: str, evaluator: Asker) -> Term | None:
        package = {"flash_attn_2": "flash-attn"}.get(name, name)
        found = self.version(package)
        evaluator.asked = True
        return None if found is None else Known(found.value is not None)

    def _located(self, dotted: str, arguments: list[Term], evaluator: Asker) -> Term:
        name = arguments[0] if arguments else UNKNOWN
        if not isinstance(name, Known) or not isinstance(name.value, str):
            return UNKNOWN
        found = self.has(name.value, evaluator)
        if dotted.endswith("import_module"):
            if found is False:
                raise Raised(*FAILED_IMPORT)
            return Reference(name.value) if found else UNKNOWN
        if found is False:
            parent = name.value.rpartition(".")[0]
            if parent and self.has(parent, evaluator) is False:
                raise Raised(*FAILED_IMPORT)
            return Known(None)
        return Reference(name.value) if found else UNKNOWN


class _Distribution:
    """An installed distribution, of which only the version is known."""

    def __init__(self, version: str) -> None:
        self.version = version


def _parsed(text: Term) -> Term:
    if not isinstance(text, Known):
        return UNKNOWN
    from packaging.version import InvalidVersion, Version

    if isinstance(text.value, Version):
        return text
    if not isinstance(text.value, str):
        raise Raised(*EXCEPTIONS["TypeError"])
    try:
        return Known(Version(text.value), text.package)
    except InvalidVersion as error:
        raise Raised(*EXCEPTIONS["InvalidVersion"]) from error


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
