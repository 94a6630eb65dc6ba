"""Attributes: does what a value can be have them? Gives the kind attribute-removed.

Where one of the values may have the attribute, or a subclass of its class, the use is undecided, so that a finding is
no false positive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patcher.analysis.conditions.names import summaries_of
from patcher.analysis.expressions import Call, Constant, Name, below
from patcher.analysis.findings import Broken, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import (
    Container,
    InstanceOf,
    Meaning,
    Meanings,
    Method,
    Outside,
    Program,
    SuperOf,
    TreeClass,
    TypeOf,
)
from patcher.analysis.meaning.members import ancestry, dotted, lookup, may_have, registered
from patcher.analysis.meaning.program import moved, named
from patcher.analysis.symbols import Absent, Class, Function, Module, Unknown, Variable, full_name
from patcher.analysis.symbols.classes import external_has
from patcher.analysis.uses import Element, Member, MemberOf, Named, Result, Use, Value, When
from patcher.check.rules.imports import absent_from_module
from patcher.i18n import phrase

JUDGED_WHOLE = ("vllm", "transformers")
"""Packages whose attributes, arguments and overrides are judged too, as labels made by execution allow.

Of any other (torch, peft) only modules and their names are, and only where none can be there unseen: much of what such
a package offers is compiled, generated or put together while it is imported.
"""
ARGUMENTS_JUDGED = ("ray", "numpy")
"""Packages of which the arguments of functions that are written in Python are judged too: `np.reshape(a, newshape=…)`,
which numpy 2.4 does not take."""


def judge_member(use: Use, need: MemberOf, program: Program, baseline: Program | None) -> Verdict:
    """Whether the attribute is there."""
    values = present_on_target(program.evaluate(need.of))
    asked = [one for one in values if is_of_target(program, one)]
    if not asked or _was_a_module(need.of, asked, program):
        return Unrelated()
    # `getattr(x, "name", None)` and `hasattr` cannot fail.
    if need.soft:
        return Fine(f"{symbol_of(asked[0])}.{need.name}")
    absent: list[tuple[Meaning, Absent]] = []
    unsure: list[Unknown] = []
    for one in asked:
        found = lookup(program, one, need.name)
        gone = [inner for inner in found if isinstance(inner, Absent)]
        open_ = [inner for inner in found if isinstance(inner, Unknown) and inner.symbol]
        if gone and len(gone) == len(found):
            # The fork sets the attribute itself: `engine.my_hook = ...` in some other file.
            if _set_in_tree(program, need.name, symbol_of(one)):
                return Fine(f"{symbol_of(one)}.{need.name}")
            if isinstance(one, Module) and _named_by_its_package(program, one, need.name):
                unsure.append(Unknown("its package uses it itself", f"{one.name}.{need.name}"))
            elif _subclass_has(program, one, need.name) or tree_subclass_has(program, one, need.name):
                unsure.append(Unknown("only classes that inherit from it have it", f"{symbol_of(one)}.{need.name}"))
            else:
                absent.append((one, gone[0]))
        elif open_ and len(open_) == len(found):
            # `config.hf_config.rope_theta`: the declared class is the base of many, and some of them have it.
            if _some_subclass_defines(program, one, need.name):
                return Fine(f"{symbol_of(one)}.{need.name}")
            unsure += open_[:1]
        elif _tree_defines(program, one, need.name):
            return Unrelated()
        else:
            return Fine(f"{symbol_of(one)}.{need.name}")
    # `x = {} if ... else Config()`, then `x.items()`: the dict has it.
    others = [_builtin_has(one, need.name) for one in values if one not in asked]
    if absent and not unsure and True in others:
        return Fine(f"{symbol_of(absent[0][0])}.{need.name}")
    if absent and not unsure and None not in others and not _is_filled_by_tree(use.file, need.of, program):
        return Broken((_problem(use, need.name, *absent[0], program, baseline),))
    if unsure and _is_behind_hasattr(use, need.name):
        return Fine(unsure[0].symbol)
    # One of the values is of a package that nobody asked about; the attribute is most likely meant for that.
    if unsure and any(isinstance(one, Outside) and not one.name.startswith("builtins.") for one in values):
        return Fine(unsure[0].symbol)
    if unsure:
        return Undecided(unsure[0].symbol, unsure[0].reason)
    one, _ = absent[0]
    return Undecided(f"{symbol_of(one)}.{need.name}", "not all of the values that may be meant are known")


def _was_a_module(value: Value, found: list[Meaning], program: Program) -> bool:
    """Whether what is found is a function by chance: `models()` for `import pkg.models as m; m.Model`."""
    if not isinstance(value, Named) or not all(isinstance(one, Function) for one in found):
        return False
    return bool(moved(program, value.dotted, named(program, value.dotted)))


_REPLACED = re.compile(rb"^[ \t]*(\w+)\.\w+ = (\w+)[ \t]*$", re.MULTILINE)


def _is_filled_by_tree(file: str, value: Value, program: Program) -> bool:
    """Whether a function of the file that takes the place of a package's method has to do with what the value is read
    from, so that the package's annotations tell nothing of it.

    Processor.update = _update    # which fills `self.logprobs` in a way of its own
    """
    project = program.project
    facts, summary = project.facts(file), summaries_of(project).file(file)
    replaced = project.answers.once(("replaced", file), lambda: _REPLACED.findall(project.content(file) or b""))
    if not replaced or facts is None or summary is None:
        return False
    names = {b".%b" % name.encode() for name in _members(value)}
    lines = (project.content(file) or b"").splitlines()
    for owner, function in replaced:
        bounds = facts.bindings.get(owner.decode(), ())
        body = summary.bodies.get(function.decode())
        if body is None or not any(_is_of_package(bound.value, program) for bound in bounds):
            continue
        text = b"\n".join(lines[body.first - 1 : body.last])
        if any(re.search(re.escape(name) + rb"\b", text) for name in names):
            return True
    return False


def _members(value: Value) -> Iterator[str]:
    """The attributes that a value is read from: `x.outputs[0].logprobs` gives logprobs and outputs."""
    while isinstance(value, Member | Element | Result):
        if isinstance(value, Member):
            yield value.name
        value = value.of


def _is_of_package(value: Value, program: Program) -> bool:
    return isinstance(value, Named) and value.dotted.partition(".")[0] in program.names


def _named_by_its_package(program: Program, module: Module, name: str) -> bool:
    """Whether the package's own code reads the name off the module, though no source of it binds the name there.

    A compiled part does: `torch.cuda.FloatTensor`, which torch/_dynamo uses.
    """
    if module.name.partition(".")[0] in JUDGED_WHOLE:
        return False
    text = program.symbols(module.name).text
    owner = f"{module.name}.".encode()
    lines = (text.before(mention) for mention in text.mentions(name))
    return any(line.endswith(owner) and not any(mark in line for mark in (b"#", b'"', b"'")) for line in lines)


def _is_behind_hasattr(use: Use, name: str) -> bool:
    """Whether the use runs only where `hasattr` has found an attribute of that name."""
    return any(
        isinstance(condition, When)
        and condition.holds
        and any(
            isinstance(one, Call)
            and one.of == Name("hasattr")
            and any(isinstance(key, Constant) and key.value == name for key in one.positional)
            for one in below(condition.test)
        )
        for condition in use.context.conditions
    )


def _builtin_has(one: Meaning, name: str) -> bool | None:
    """Whether a value of the language itself has the attribute; None if it is no such value."""
    match one:
        case Outside(name=outside) if outside.count(".") == 1 and outside.startswith("builtins."):
            return external_has(outside, name)
        case Container():
            return any(hasattr(kind, name) for kind in (list, dict, tuple, set))
        case _:
            return None


def present_on_target(values: Meanings) -> Meanings:
    """The values that are there on this target. An instance that code makes replaces a declared one of its class."""
    # `self.llm: LLM = LLM(...)`: the instance that is seen to be made says more than the declaration.
    made = {one.of for one in values if isinstance(one, InstanceOf) and one.exact}
    return tuple(
        one
        for one in values
        if not isinstance(one, Absent) and not (isinstance(one, InstanceOf) and not one.exact and one.of in made)
    )


def is_of_target(program: Program, one: Meaning) -> bool:
    """Whether a meaning belongs to a package that is checked against, itself or by a base class."""
    match one:
        case InstanceOf(of=TreeClass() as of) | TypeOf(of=TreeClass() as of) | SuperOf(of=of) | (TreeClass() as of):
            return any(isinstance(base, Class) for base in ancestry(program, of))
        # A method is one of a package; the tree's own are functions of the tree.
        case Module() | Class() | Function() | Variable() | InstanceOf() | TypeOf() | Method():
            return True
        case Unknown(symbol=symbol):
            return bool(symbol)
        case _:
            return False


def symbol_of(one: Meaning) -> str:
    """The dotted name of a meaning, as problems name it."""
    match one:
        case InstanceOf(of=of) | TypeOf(of=of) | SuperOf(of=of):
            return dotted(of)
        case TreeClass():
            return dotted(one)
        case Module() | Class() | Function() | Variable():
            return full_name(one)
        case Method(function=function):
            return full_name(function)
        case Unknown(symbol=symbol):
            return symbol
        case _:
            return ""


def _problem(use: Use, name: str, of: Meaning, gone: Absent, program: Program, baseline: Program | None) -> Problem:
    if isinstance(of, Module):
        return absent_from_module(use, f"{of.name}.{name}", gone, program, baseline)
    owner = symbol_of(_package_class(program, of))
    detail = phrase("{parent} has no attribute {name}", parent=owner, name=name)
    return Problem("attribute-removed", f"{owner}.{name}", use.line, detail)


def _package_class(program: Program, of: Meaning) -> Meaning:
    """For a class of the tree: the first class of a package among its bases. Else the meaning itself."""
    match of:
        case (
            InstanceOf(of=TreeClass() as tree)
            | TypeOf(of=TreeClass() as tree)
            | SuperOf(of=TreeClass() as tree)
            | (TreeClass() as tree)
        ):
            return next((base for base in ancestry(program, tree) if isinstance(base, Class)), of)
        case _:
            return of


def _tree_defines(program: Program, one: Meaning, name: str) -> bool:
    """Whether a class of the tree itself has the attribute, rather than a base of it from a package."""
    match one:
        case InstanceOf(of=TreeClass() as of) | TypeOf(of=TreeClass() as of) | (TreeClass() as of):
            return any(
                isinstance(base, TreeClass) and (name in base.facts.methods or name in base.facts.attributes)
                for base in ancestry(program, of)
            )
        case _:
            return False


def _some_subclass_defines(program: Program, one: Meaning, name: str) -> bool:
    """Whether the value is declared as a base class, and some subclass defines the attribute."""
    match one:
        # Of a package such as torch attributes are not judged: looking through its classes would decide nothing.
        case InstanceOf(of=Class() as of, exact=False) if of.module.partition(".")[0] in JUDGED_WHOLE:
            return bool(program.symbols(of.module).text.setters(name)) and may_have(program, of, name)
        case _:
            return False


def _declared(one: Meaning) -> Class | None:
    """The package's class that a value is declared as, where it may be of a class that inherits from that."""
    match one:
        case InstanceOf(of=Class() as of, exact=False) | TypeOf(of=Class() as of):
            return of
        case _:
            return None


def _subclass_has(program: Program, one: Meaning, name: str) -> bool:
    of = _declared(one)
    return of is not None and (may_have(program, of, name) or registered(program.symbols(of.module).text, name))


def tree_subclass_has(program: Program, one: Meaning, name: str) -> bool:
    """Whether the value may be of a class of the tree that inherits from the declared one and has the attribute.

    def __init__(self, executor_class: type[ExecutorBase]):    # called with the tree's own executor
        self.executor = executor_class()
        self.executor.offload()
    """
    of = _declared(one)
    if of is None:
        return False
    return program.once(("tree subclass", of, name), lambda: _find_in_subclass(program, of, name), False)


def _find_in_subclass(program: Program, of: Class, name: str) -> bool:
    for file in program.project.files([name]):
        facts = program.project.facts(file)
        for owner in facts.classes.values() if facts is not None else ():
            # Few classes have the name, so that the bases of few are followed.
            if (name in owner.methods or name in owner.attributes) and of in ancestry(
                program, TreeClass(facts.module if facts is not None else "", owner)
            ):
                return True
    return False


def _set_in_tree(program: Program, name: str, symbol: str) -> bool:
    """Whether a file of the tree that imports the symbol's package sets an attribute of that name on an object."""
    package = symbol.partition(".")[0]
    return program.project.answers.once(("sets", package, name), lambda: _search_tree(program, name, package))


def _search_tree(program: Program, name: str, package: str) -> bool:
    word = re.escape(name.encode())
    # Both begin with what is literal: so they are looked for at the speed of memory.
    assigned = re.compile(rb"\.%b(?<!self\.%b)\s*(:[^=\n]+)?=[^=]" % (word, word))
    given = re.compile(rb"setattr\([^,\n]+,\s*[\"']%b[\"']" % word)
    for file in _importing(program, package):
        content = program.project.content(file) or b""
        if assigned.search(content) or given.search(content):
            return True
    return False


def _importing(program: Program, package: str) -> tuple[str, ...]:
    """The files of the tree that import a package."""
    project, imported = program.project, re.compile(rb"(?:from|import)\s+%b\b" % package.encode())
    return project.answers.once(
        ("imports", package),
        lambda: tuple(file for file in project.files([package]) if imported.search(project.content(file) or b"")),
    )
