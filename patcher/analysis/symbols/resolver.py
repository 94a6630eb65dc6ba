"""Static look-up of symbols in one package's sources: `has` for records, definitions for everybody else.

Follows re-exports, star imports, `__all__`, names that a module serves from its own `__getattr__`, submodules and
inherited members. What is compiled (`.so`) or computed at import is not known, which is another answer than absent.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from patcher.analysis.answers import Answers
from patcher.analysis.bindings import Binding, ClassHeader, FunctionHeader, Imported
from patcher.analysis.expressions import Attribute, Call, Expression, Name, Subscript, is_none, shown
from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.parameters import Signature
from patcher.analysis.symbols.bodies import FunctionBody, read_body, returns_its_argument
from patcher.analysis.symbols.classes import member_of_class
from patcher.analysis.symbols.definition import (
    Absent,
    Class,
    Definition,
    External,
    Function,
    Module,
    Resolution,
    Unknown,
    Variable,
    class_expression,
    full_name,
    is_property,
    reexported,
)
from patcher.analysis.symbols.module_getattr import module_getattr_member
from patcher.analysis.symbols.module_summary import ModuleSummary
from patcher.analysis.symbols.signature import signature_of
from patcher.analysis.symbols.sources import Modules
from patcher.analysis.symbols.text_index import Mention, TextIndex

_OF_IMPORTS = frozenset(("__path__", "__all__", "__spec__", "__file__", "__loader__", "__package__", "__wrapped__"))
"""What Python and its tools ask any module for: its `__getattr__` is asked too, and serves none of them."""


def returned_argument(symbols: Symbols, module: Module, value: Expression | None) -> Name | None:
    """The name that a call like `updated(X)` gives back as it is; None if the value is no such call."""
    match value:
        case Call(of=Name() | Attribute() as called, positional=(Name() as given, *_)):
            found = symbols.expression(module.name, called).definition
            if not isinstance(found, Function):
                return None
            home = symbols.modules.holding(found.module)
            return given if home.asked_of(found.header, returns_its_argument) else None
        case _:
            return None


def bound_before(symbols: Symbols, module: Module, name: str, binding: Binding) -> Resolution | None:
    """What `name` was bound to before `binding` bound it anew; None if that is not certain."""
    scope = symbols.modules.scope(module)
    every = [] if isinstance(scope, Unknown) else scope.names.get(name, [])
    earlier = every[: every.index(binding)] if binding in every else []
    return symbols.bound(module, earlier[-1], name) if earlier and earlier[-1].certain else None


_QUERY = re.compile(r"\s*([\w.]+?)\s*(?:\(\s*(\w+)\s*\))?\s*")
_MODULE_NAMES = frozenset(("__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__", "__dict__",
                           "__builtins__", "__cached__", "__annotations__"))  # fmt: skip


class Symbols:
    """The symbols of the package whose folder is given, as they are after import, found without importing it."""

    def __init__(self, package: Path, earlier: Symbols | None = None, kept: KeptReadings | None = None) -> None:
        """`earlier` are those of a neighbouring release, whose text need not be searched again where it is the same.

        `kept` is what earlier commands have read of the package."""
        self.modules: Modules = Modules(package, earlier.modules if earlier is not None else None, kept)
        self.text: TextIndex = TextIndex(package, earlier.text if earlier is not None else None)
        self.answers = Answers()
        """What is found out about the package: what its classes bind, the variables that it reads."""
        self.newest: Callable[[], tuple[str, Symbols] | None] | None = None
        """Gives the newest release of the package, if it can be had: its code tells which names came later."""
        self._members: dict[tuple[str, str], Resolution] = {}
        self._active: set[tuple[str, str]] = set()
        self._cuts = 0

    def has(self, symbol: str) -> bool | None:
        """Whether `pkg.mod.Class.attribute` or `pkg.mod.function(parameter)` is there; None: undecidable."""
        query = _QUERY.fullmatch(symbol)
        if query is None:
            raise ValueError(f"{symbol!r} is neither a dotted name nor one with a parameter in parentheses")
        try:
            return self._answer(query)
        except RecursionError:
            return None

    def _answer(self, query: re.Match[str]) -> bool | None:
        found = self.resolve(query[1])
        if isinstance(found.definition, Absent):
            found = self._in_shadowed_module(query[1]) or found
        definition = found.definition
        if query[2] is not None and not isinstance(definition, Absent):
            answers = {self._takes(one, query[2]) for one in (definition, *found.alternatives)}
            return answers.pop() if len(answers) == 1 else None
        match definition:
            case Absent():
                return False
            case Unknown():
                return None
            case External():
                # `vllm.utils.torch` is there, though what it is lies outside; `vllm.utils.torch.foo` cannot be known.
                return True if self._binds(query[1]) else None
            case _:
                return True

    def _in_shadowed_module(self, symbol: str) -> Resolution | None:
        """What an import statement finds in a module whose package has something else under the module's name.

        With `from .grads import grads` in `pkg/__init__.py`, `pkg.grads` is the function, and `from pkg.grads import x`
        still asks the module.
        """
        parts = symbol.split(".")
        for length in range(len(parts) - 1, 1, -1):
            module = self.modules.find(".".join(parts[:length]))
            if isinstance(module, Module):
                found = Resolution(module)
                for name in parts[length:]:
                    found = self.member(found.definition, name)
                return found
        return None

    def resolve(self, symbol: str) -> Resolution:
        """Follow a dotted name to its definition, through re-exports, inheritance and lazily served names."""
        first, *rest = symbol.split(".")
        if first != self.modules.name:
            return Resolution(External(symbol))
        root = self.modules.find(first)
        definition: Definition = root if root is not None else Absent("", first)
        chain: tuple[str, ...] = ()
        alternatives: tuple[Definition, ...] = ()
        for name in rest:
            found = self.member(definition, name)
            definition, chain = found.definition, chain + found.chain
            alternatives = found.alternatives
        return Resolution(definition, chain, alternatives)

    def member(self, of: Definition, name: str) -> Resolution:
        """The attribute `name` of a definition."""
        match of:
            case Module():
                return self.module_member(of, name)
            case Class():
                return member_of_class(self, of, name)
            case External(name=dotted):
                return Resolution(External(f"{dotted}.{name}"))
            case Unknown() | Absent():
                return Resolution(of)
            case Variable(annotation=annotation, value=value, module=module):
                return self._instance_member(module, annotation, value, name, full_name(of))
            case Function(header=header, module=module):
                if is_property(header):
                    return self._instance_member(module, header.returns, None, name, full_name(of))
                # Every function has `__name__`, `__doc__` and so on; any function of Python answers for all.
                if hasattr(is_property, name) or self.set_from_outside(of, name) is not None:
                    return Resolution(Variable(module, f"{of.qualname}.{name}"))
                # A decorator may return an object with any attributes.
                if header.decorators:
                    return Resolution(Unknown(f"{of.qualname} is decorated"))
                return Resolution(Absent(full_name(of), name))

    def signature(self, definition: Definition) -> Signature | Unknown:
        """The parameters that a call of the definition takes, without `self`; a class's are its constructor's."""
        return signature_of(self, definition)

    def body(self, module: str, header: FunctionHeader) -> FunctionBody:
        """What the body of a function in `module` does."""
        return self.modules.holding(module).asked_of(header, read_body)

    def syntax(self, definition: Class | Function) -> Any:
        """The syntax of a definition, for one question."""
        return self.modules.holding(definition.module).syntax(definition.header)

    def expression(self, module: str, of: Expression) -> Resolution:
        """What a dotted expression at a module's top level stands for; subscripts (`Base[T]`) are looked through."""
        match of:
            case Name(id=name):
                home = self.modules.find(module)
                if not isinstance(home, Module):
                    return Resolution(Unknown(f"{module} is not there"))
                found = self.module_member(home, name)
                if isinstance(found.definition, Absent) and hasattr(builtins, name):
                    return Resolution(External(f"builtins.{name}"))
                return found
            case Attribute(of=value, name=name):
                return self.member(self.expression(module, value).definition, name)
            case Subscript(of=value):
                return self.expression(module, value)
            case _:
                return Resolution(Unknown(f"{shown(of)} in {module} is computed"))

    def imported(self, module: str, binding: Imported) -> Resolution:
        """What an import statement in `module` binds."""
        home = self.modules.find(module)
        if not isinstance(home, Module):
            return Resolution(Unknown(f"{module} is not there"))
        target = self.modules.absolute(home, binding.module if binding.name else binding.dotted)
        if not self.modules.inside(target):
            return Resolution(External(f"{target}.{binding.name}" if binding.name else target))
        found = self.modules.find(target)
        if found is None:
            return Resolution(Absent(*target.rpartition(".")[::2]))
        if isinstance(found, Unknown) or binding.name is None:
            return Resolution(found)
        if found.name == home.name:
            return self._submodule(home, binding.name) or Resolution(Absent(home.name, binding.name))
        return self.module_member(found, binding.name)

    def set_from_outside(self, owner: Class | Function, name: str) -> Variable | None:
        """An attribute that the module of a class or function sets on it after its definition."""
        home = self.modules.find(owner.module)
        scope = self.modules.scope(home) if isinstance(home, Module) else None
        if scope is None or isinstance(scope, Unknown):
            return None
        for binding in scope.bindings(f"{owner.qualname}.{name}"):
            return Variable(owner.module, f"{owner.qualname}.{name}", cast("Expression | None", binding.value))
        return None

    def _takes(self, definition: Definition, parameter: str) -> bool | None:
        found = self.signature(definition)
        if isinstance(found, Unknown):
            return None
        if any(own.name == parameter for own in found.parameters):
            return True
        return None if found.any_keyword else False

    def _binds(self, symbol: str) -> bool:
        """Whether the last part of the name is bound in the package, if only to something from outside."""
        parent = symbol.rpartition(".")[0]
        return self.modules.inside(symbol) and not isinstance(self.resolve(parent).definition, External)

    def module_member(self, module: Module, name: str) -> Resolution:
        """The attribute `name` of a module."""
        key = (module.name, name)
        if key in self._members:
            return self._members[key]
        # Modules that import each other in a circle: within the circle the name counts as absent, and what was found
        # with the help of that answer is not kept.
        if key in self._active:
            self._cuts += 1
            return Resolution(Absent(module.name, name))
        self._active.add(key)
        cuts = self._cuts
        try:
            found = self._look_in(module, name)
        finally:
            self._active.discard(key)
        if self._cuts == cuts or not self._active:
            self._members[key] = found
        return found

    def _look_in(self, module: Module, name: str) -> Resolution:
        scope = self.modules.scope(module)
        if isinstance(scope, Unknown):
            return self._submodule(module, name) or Resolution(scope)
        # Every module has these without binding them.
        if name in _MODULE_NAMES or (name == "__path__" and module.folder):
            return Resolution(Variable(module.name, name))
        every = [self.bound(module, binding, name) for binding in scope.bindings(name)]
        # The first binding is the one that holds if nothing else is known; `name = None` in an `except` is no
        # alternative.
        if there := [found for found in every if not isinstance(found.definition, Absent)]:
            others = [found.definition for found in there[1:] if not _is_none(found.definition)]
            return Resolution(there[0].definition, there[0].chain, (*there[0].alternatives, *others))
        unsure: Unknown | None = None
        # The last star import wins, as with any assignment.
        for written in reversed(scope.stars):
            found = self._through_star(module, written, name)
            if isinstance(found.definition, Unknown):
                unsure = unsure or found.definition
            elif not isinstance(found.definition, Absent):
                return found
        if (submodule := self._submodule(module, name)) is not None:
            return submodule
        if name not in _OF_IMPORTS:
            for binding in scope.bindings("__getattr__"):
                if isinstance(binding.value, FunctionHeader) and not binding.value.is_async:
                    found = module_getattr_member(self, module, binding.value, name)
                    if not isinstance(found.definition, Absent):
                        return found
                # `__getattr__, __dir__, __all__ = attach(__name__, ...)`, or one that another module defines.
                else:
                    unsure = unsure or Unknown(f"{module.name} has a __getattr__ that it does not define")
        # Torch fills its namespace in a loop: `globals()[name] = getattr(_C, name)`. There nothing is certainly absent.
        if unsure is None and name not in _OF_IMPORTS and self.modules.may_compute(module, name):
            unsure = Unknown(f"{module.name} binds names that its statements do not show")
        if unsure is None and module.name == self.modules.name and self.text.some_mention(name, _is_listed_to_set):
            unsure = Unknown(f"another module sets names of {module.name} from a list")
        if self._uses_compiled_code(module):
            if unsure is None and self._is_written_out(module, name):
                unsure = Unknown(f"compiled code of {self.modules.name} may set {module.name}.{name}")
            elif unsure is not None and (newer := self._came_by(module, name)):
                return Resolution(Absent(module.name, name, newer))
        return Resolution(unsure or Absent(module.name, name))

    def _uses_compiled_code(self, module: Module) -> bool:
        """Whether compiled code may set names of the module.

        It works on modules that use it themselves: torch/cuda/__init__.py speaks of `torch._C`.
        """
        speaks = f"{self.modules.name}._C".encode()
        return self.modules.is_partly_compiled and speaks in self.modules.holding(module.name).text

    def _came_by(self, module: Module, name: str) -> str:
        """The newest release, if the name is one that compiled code binds in later releases alone; else "".

        `torch.hash_tensor` stands in the code of torch 2.13, and nowhere in that of 2.6, where another module defines
        a `hash_tensor` of its own.
        """
        dotted = f"{module.name}.{name}"
        if self.newest is None or self._writes(dotted):
            return ""
        own = re.compile(rb"\b(?:def|class)\s+%b\b" % name.encode())
        homes = {mention.module for mention in self.text.mentions(name)}
        if not all(own.search(self.text.text_of(home)) for home in homes):
            return ""
        version, newest = self.newest() or ("", self)
        return version if newest._writes(dotted) else ""

    def _writes(self, dotted: str) -> bool:
        """Whether the package's own code has the dotted name anywhere."""
        word = re.compile(rb"(?<![\w.])%b\b" % re.escape(dotted.encode()))
        return any(word.search(text) for _, text in self.text.containing(dotted.encode()))

    def _is_written_out(self, module: Module, name: str) -> bool:
        """Whether the package's own code says `torch.cuda.FloatTensor`, which its compiled code alone sets."""
        written = re.compile(rb"(?:^|[\s(\[,=])%s$" % re.escape(f"{module.name}.".encode()))
        return any(written.search(self.text.before(one)) for one in self.text.mentions(name))

    def bound(self, module: Module, binding: Binding, name: str) -> Resolution:
        """What one binding of a name in a module's body gives."""
        match binding.value:
            case ClassHeader() as header:
                return Resolution(Class(module.name, name, header))
            case FunctionHeader() as header:
                return Resolution(Function(module.name, name, header))
            case Imported() as imported:
                found = self.imported(module.name, imported)
                return reexported(module, name, found)
            case value:
                # `LLM = _LLM` is the same class by another name.
                if isinstance(value, Name | Attribute):
                    found = self.expression(module.name, value)
                    if isinstance(found.definition, Class | Function | Module):
                        return reexported(module, name, found)
                # `AutoModel = auto_class_update(AutoModel)` returns what it was given.
                elif (given := returned_argument(self, module, value)) is not None:
                    same = bound_before(self, module, name, binding) if given.id == name else None
                    found = same or self.expression(module.name, given)
                    if isinstance(found.definition, Class | Function):
                        return found
                return Resolution(Variable(module.name, name, value, binding.annotation))

    def _submodule(self, module: Module, name: str) -> Resolution | None:
        if module.folder is None:
            return None
        found = self.modules.find(f"{module.name}.{name}")
        return None if found is None else Resolution(found)

    def _through_star(self, module: Module, written: str, name: str) -> Resolution:
        target = self.modules.absolute(module, written)
        if not self.modules.inside(target) and self.modules.find(f"{module.name}.{target}") is not None:
            target = f"{module.name}.{target}"  # a dot forgotten where type checkers alone look
        if not self.modules.inside(target):
            return Resolution(Unknown(f"{module.name} imports everything from {target}"))
        found = self.modules.find(target)
        # The star import of a module that is served under an earlier name gives what another module has.
        if isinstance(found, Unknown) and self.modules.served_by_root(target) and not self.text.mentions(name):
            found = None
        if not isinstance(found, Module):
            return Resolution(found or Absent(module.name, name))
        if self.modules.cannot_bind(found, name):
            return Resolution(Absent(module.name, name))
        summary = self.modules.summary(found)
        exported = summary.exported if isinstance(summary, ModuleSummary) else None
        # Without `__all__`, a star import leaves out names with an underscore.
        if exported is None and name.startswith("_"):
            return Resolution(Absent(module.name, name))
        if exported is not None and exported.complete and name not in exported.entries:
            return Resolution(Absent(module.name, name))
        resolved = self.module_member(found, name)
        if (
            exported is None
            and isinstance(resolved.definition, Module)
            and resolved.definition.name == f"{found.name}.{name}"
        ):
            return Resolution(Absent(module.name, name))
        return reexported(module, name, resolved)

    def _instance_member(
        self, module: str, annotation: Expression | None, value: Expression | None, name: str, asked: str
    ) -> Resolution:
        """An attribute of a value whose class its annotation or its constructor call tells."""
        class_node = class_expression(annotation) if annotation is not None else None
        # `config = Config(...)` says the class as an annotation does.
        if class_node is None and isinstance(value, Call):
            class_node = value.of
        if class_node is not None:
            found = self.expression(module, class_node).definition
            if isinstance(found, Class):
                return member_of_class(self, found, name)
        return Resolution(Unknown(f"the class of {asked} is not known"))


def _is_listed_to_set(index: TextIndex, mention: Mention, word: str) -> bool:  # noqa: ARG001
    """Whether a module names it in quotes and sets attributes of the package by computed names.

    `API_LIST = ["_npu_rotary_embedding", …]` and `setattr(torch_npu, api_name, func)`.
    """
    if not index.before(mention).endswith((b'"', b"'")):
        return False
    package = mention.module.partition(".")[0].encode()
    return re.search(rb"\bsetattr\(\s*%b\s*,\s*[^\s\"']" % package, index.text_of(mention.module)) is not None


def _is_none(definition: Definition) -> bool:
    return isinstance(definition, Variable) and is_none(definition.value)
