"""Methods that override a target's: can they be called the way the target's package calls its own?

Gives the kind override-mismatch: a parameter that callers pass and the override refuses, one that it requires and
nobody passes, and abstract methods that a class leaves out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from patcher.analysis.bindings import FunctionHeader
from patcher.analysis.expressions import Attribute, Call, Expression, Name, expression
from patcher.analysis.findings import Broken, Fine, Problem, Unrelated, Verdict
from patcher.analysis.meaning import Program, TreeClass
from patcher.analysis.meaning.callables import changes_parameters
from patcher.analysis.meaning.members import ancestry, dotted
from patcher.analysis.meaning.program import named
from patcher.analysis.severity.guards import guards_of
from patcher.analysis.symbols import Class, Function, Parameter, Signature
from patcher.analysis.symbols.classes import body_of_class, own_member
from patcher.analysis.symbols.definition import is_property, is_static
from patcher.analysis.symbols.signature import read_parameters
from patcher.analysis.symbols.text_index import TextIndex
from patcher.analysis.syntax import FunctionNode, below
from patcher.analysis.uses import MethodOf, Use
from patcher.i18n import phrase

_FREE = frozenset({"__init__", "__new__", "__init_subclass__", "__post_init__", "__class_getitem__", "__getattr__"})


@dataclass(frozen=True, slots=True)
class _Base:
    """What a target's class defines under the name."""

    owner: Class
    signature: Signature


def judge_override(use: Use, need: MethodOf, program: Program) -> Verdict:
    """Whether a method takes what its base's callers pass, and whether its class is complete."""
    owner = next((one for one in named(program, need.owner) if isinstance(one, TreeClass)), None)
    if owner is None or not any(isinstance(base, Class) for base in ancestry(program, owner)):
        return Unrelated()
    problems = _incomplete(owner, need, program)
    base = _overridden(program, owner, need.name)
    if base is None:
        return Broken(problems) if problems else Unrelated()
    symbol = f"{dotted(base.owner)}.{need.name}"
    if need.name not in _FREE:
        problems += _mismatches(use, need, base, owner, program)
    return Broken(problems) if problems else Fine(symbol)


def _overridden(program: Program, owner: TreeClass, name: str) -> _Base | None:
    for base in ancestry(program, owner)[1:]:
        if isinstance(base, Class) and (found := own_member(program.symbols(base.module), base, name)) is not None:
            if not isinstance(found.definition, Function) or is_property(found.definition.header):
                return None
            if changes_parameters(program, found.definition) is None:
                return None
            bound = not is_static(found.definition.header)
            return _Base(base, read_parameters(found.definition.header, bound=bound))
    return None


def _mismatches(use: Use, need: MethodOf, base: _Base, owner: TreeClass, program: Program) -> tuple[Problem, ...]:
    symbol = f"{dotted(base.owner)}.{need.name}"
    ours, theirs = need.signature, base.signature
    found: list[Problem] = []
    calls = passed(program, base.owner.module, need.name)
    own = owner.facts.methods.get(need.name)
    for index, one in enumerate(theirs.parameters):
        if not _is_refused(index, one, ours, calls):
            continue
        # `def forward(self, x, **kwargs)` takes the new keyword and ignores it: that matters only if `kwargs` is never
        # looked at, and if the value is always passed.
        swallowed = ours.any_keyword and one.kind != "positional"
        if swallowed and (own is None or not own.ignores_keywords):
            continue
        outside = not swallowed and (
            one.required or calls.from_outside(index if one.kind != "keyword" else None, one.name)
        )
        if not outside and not _passed_by_inherited_method(program, owner, need.name, one.name, swallowed=swallowed):
            continue
        text = "{method} is called with {name}, which this override does not take"
        if swallowed:
            text = "{method} is called with {name}, which this override takes by ** and never looks at"
        detail = phrase(text, method=symbol, name=one.name)
        found.append(Problem("override-mismatch", f"{symbol}({one.name})", use.line, detail))
    for problem, name in _required_by_override(use, ours, theirs, symbol):
        # `_init_executor(self, model)`, which the tree calls itself, in a class whose `__init__` replaces the base's:
        # the package's own calls without `model` do not run.
        inherited = any(_inherited_calls(program, owner, need.name))
        alone = not inherited and _tree_passes(program, need.name, name)
        found.append(replace(problem, own_callers=alone))
    return tuple(found)


def _is_refused(index: int, one: Parameter, ours: Signature, calls: Passed) -> bool:
    """Whether callers pass a parameter that the override does not take."""
    if one.kind != "positional" and any(own.name == one.name for own in ours.parameters):
        return False
    if one.kind != "keyword" and (ours.any_positional or index < len(ours.positional)):
        return one.name in calls.keywords and not ours.any_positional
    return one.required or calls.reaches(index if one.kind != "keyword" else None, one.name)


def _required_by_override(use: Use, ours: Signature, theirs: Signature, symbol: str) -> Iterator[tuple[Problem, str]]:
    """Parameters that the override requires and that the base does not have, so that no caller of the package passes
    them."""
    # A base that takes anything is called with anything.
    if theirs.any_keyword or theirs.any_positional:
        return
    names = {one.name for one in theirs.parameters}
    passed_by_position = ours.positional[: len(theirs.positional)]
    for name in (one.name for one in ours.parameters if one.required):
        if name in names or name in passed_by_position:
            continue
        detail = phrase("{method} is called without {name}, which this override requires", method=symbol, name=name)
        yield Problem("override-mismatch", f"{symbol}({name})", use.line, detail), name


def _inherited_calls(program: Program, owner: TreeClass, name: str) -> Iterator[tuple[Class, FunctionHeader, Call]]:
    """The calls `self.name(…)` in methods that the tree's class inherits and does not override."""
    own = _defined(program, owner)
    for base in ancestry(program, owner):
        if not isinstance(base, Class):
            continue
        symbols = program.symbols(base.module)
        for method in body_of_class(symbols, base).methods:
            # A method that the tree overrides itself does not run with the tree's class.
            if method.name in own:
                continue
            for call in symbols.modules.holding(base.module).asked_of(method, _calls_on_self):
                if isinstance(call.of, Attribute) and call.of.name == name:
                    yield base, method, call


def _calls_on_self(method: FunctionNode) -> list[Call]:
    return [
        cast("Call", expression(node))
        for node in below(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    ]


def _tree_passes(program: Program, method: str, parameter: str) -> bool:
    """Whether the tree itself calls a method of that name with something that goes by the parameter's name."""
    call = re.compile(rb"\.%b\([^)]*\b%b\b" % (method.encode(), parameter.encode()))
    files = program.project.files([method])
    return any(call.search(program.project.content(file) or b"") is not None for file in files)


def _passed_by_inherited_method(
    program: Program, owner: TreeClass, name: str, parameter: str, *, swallowed: bool
) -> bool:
    """Whether a method that the tree's class inherits calls this one with the parameter.

    If the override swallows the parameter in `**kwargs`, a call that only passes on an optional parameter of its own
    counts where the callers of that method always give it.
    """
    return any(
        word == parameter
        and (
            not swallowed
            or (passed_on := _passed_on(value, method)) is None
            or always_passed(program, base, method.name, passed_on)
        )
        for base, method, call in _inherited_calls(program, owner, name)
        if method.name != name
        for word, value in call.keywords
    )


def _passed_on(value: Expression, method: FunctionHeader) -> str | None:
    """The parameter of the method that the value is, if callers may leave it out."""
    optional = {one.name for one in method.signature.parameters if not one.required and one.kind != "positional"}
    return value.id if isinstance(value, Name) and value.id in optional else None


def _defined(program: Program, owner: TreeClass) -> frozenset[str]:
    """The methods that the class has on this target; those under a test of versions that fails are left out."""
    facts = program.project.module(owner.module)
    guards = guards_of(program)
    without = {
        use.need.name
        for use in (facts.uses if facts is not None else ())
        if isinstance(use.need, MethodOf) and use.need.owner == owner.dotted and use.context.conditions
        if guards.runs(use, guards.target) is False
    }
    return frozenset(owner.facts.methods) - without


def _incomplete(owner: TreeClass, need: MethodOf, program: Program) -> tuple[Problem, ...]:
    """Problems for abstract methods that a class does not implement although it implements others. One time per
    class."""
    own = owner.facts.methods
    order = ancestry(program, owner)
    # Told once, at the first method of the class. A class with abstract methods of its own is a base for others.
    if not own or next(iter(own)) != need.name or any(one.abstract for one in own.values()):
        return ()
    if not all(
        isinstance(one, Class | TreeClass)
        or getattr(one, "name", "") in ("abc.ABC", "typing.Generic", "builtins.object")
        for one in order
    ):
        return ()
    abstract: dict[str, Class] = {}
    declared: set[str] = set()
    for base in reversed(order):
        if isinstance(base, TreeClass):
            for name in (*base.facts.methods, *base.facts.attributes):
                abstract.pop(name, None)
        elif isinstance(base, Class):
            for method in body_of_class(program.symbols(base.module), base).methods:
                if "abstractmethod" in method.marks:
                    abstract[method.name] = base
                    declared.add(method.name)
                else:
                    abstract.pop(method.name, None)
    # It implements none of those that its bases declare.
    if declared.isdisjoint(own):
        return ()
    return tuple(
        Problem(
            "override-mismatch",
            f"{dotted(base)}.{name}",
            owner.facts.line,
            phrase(
                "{owner} does not implement {method}, which is abstract",
                owner=owner.facts.qualname,
                method=f"{dotted(base)}.{name}",
            ),
        )
        for name, base in sorted(abstract.items())
    )


_LONGEST = 4000
"""Bytes behind a method's name that are searched for the end of its call: a guess at the longest call in a package."""


@dataclass(frozen=True, slots=True)
class Passed:
    """`keywords` that some call passes, and `most` positional arguments.

    `foreign` are the keywords of calls on anything but `self`.
    """

    keywords: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    most: int = 0

    def reaches(self, index: int | None, name: str) -> bool:
        """Whether some call gives the parameter a value, by its place or its name."""
        return name in self.keywords or (index is not None and index < self.most)

    def from_outside(self, index: int | None, name: str) -> bool:
        """The same of calls that are not a class's own on `self`, as far as they pass it by name."""
        return name in self.foreign or (index is not None and index < self.most)


def passed(program: Program, module: str, name: str) -> Passed:
    """What the package of `module` passes wherever it calls `….name(…)`."""
    key = ("passed", module.partition(".")[0], name)
    return program.once(key, lambda: _search(program.symbols(module).text, name), Passed())


def always_passed(program: Program, owner: Class, method: str, name: str) -> bool:
    """Whether every module that mentions the class and calls the method passes the parameter by name, and not as False.

    A method that is passed on without a call may be called without the parameter.
    """
    text = program.symbols(owner.module).text
    knowing = {mention.module for mention in text.mentions(owner.qualname)} - {owner.module}
    asked = False
    for mention in text.mentions(method):
        before = text.before(mention)
        if mention.module not in knowing or not before.endswith(b".") or before.lstrip().startswith(b"#"):
            continue
        call = _parsed(text.after(mention, method, _LONGEST))
        given = {word.arg: word.value for word in call.keywords} if call is not None else {}
        # A call without the parameter, or with False, means that the method works without it.
        value = given.get(name)
        if value is None or (isinstance(value, ast.Constant) and value.value is False):
            return False
        asked = True
    return asked


def _search(text: TextIndex, name: str) -> Passed:
    keywords: set[str] = set()
    foreign: set[str] = set()
    most = 0
    for mention in text.mentions(name):
        if not text.before(mention).rstrip().endswith(b".") or text.before(mention).lstrip().startswith(b"#"):
            continue
        call = _parsed(text.after(mention, name, _LONGEST))
        if call is None:
            continue
        words = {word.arg for word in call.keywords if word.arg}
        keywords |= words
        foreign |= set() if text.before(mention).endswith(b"self.") else words
        most = max(most, sum(1 for one in call.args if not isinstance(one, ast.Starred)))
    return Passed(frozenset(keywords), frozenset(foreign), most)


def _parsed(after: bytes) -> ast.Call | None:
    """The call whose arguments begin the text; None if it begins with anything else."""
    if not after.startswith(b"("):
        return None
    # Brackets are counted in the raw text. One inside a string may end the call too early; then it does not parse and
    # is left out.
    depth = 0
    for index, byte in enumerate(after):
        if byte in b"([{":
            depth += 1
        elif byte in b")]}":
            depth -= 1
            if depth == 0:
                try:
                    node = ast.parse(b"f" + after[: index + 1], mode="eval").body
                except (SyntaxError, ValueError):
                    return None
                return node if isinstance(node, ast.Call) else None
    return None
