"""Repairs of imports: from where the symbol, or the whole module, is now."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst

from patcher.analysis.findings import Finding
from patcher.analysis.symbols import Absent, Class, Definition, Function, Module, Symbols, Unknown, Variable, full_name
from patcher.analysis.symbols.classes import body_of_class
from patcher.analysis.uses import ImportOf
from patcher.check.drafts.constants import renamed_constants
from patcher.check.drafts.inputs import DraftInputs, Namesake, Repair
from patcher.check.drafts.parameters import named_instead
from patcher.check.drafts.sites import fitted
from patcher.i18n import Phrase, phrase
from patcher.rewrite.edits import Edit, MoveImport, RenameAttribute, Replace
from patcher.rewrite.names import aliases, imported, local
from patcher.rewrite.names import module as imported_from
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.source import parse


@dataclasses.dataclass(frozen=True, slots=True)
class Moved:
    """Where something is now, and what says so."""

    path: str
    evidence: Phrase
    members: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What it calls its members now, by their old names, where they differ."""


def import_repairs(finding: Finding, inputs: DraftInputs) -> list[Repair]:
    """A repair for each name that the import of the finding takes from where it no longer is."""
    facts, text = inputs.project.facts(finding.file), inputs.text(finding.file)
    if facts is None or text is None:
        return []
    wanted: dict[str, ImportOf] = {}
    for use in facts.uses:
        if isinstance(use.need, ImportOf) and use.context.function == finding.function:
            old = _dotted(use.need)
            if finding.symbol == old or (finding.symbol == use.need.module and use.line == finding.line):
                wanted[old] = use.need
    if not wanted:
        return _renamed_beside(finding, text, inputs)
    repairs = []
    for old, need in wanted.items():
        if need.name == "*" or (moved := moved_to(old, finding, inputs)) is None:
            continue
        edit = MoveImport(file=finding.file, old=old, new=moved.path)
        lines = frozenset(use.line for use in facts.uses if isinstance(use.need, ImportOf) and _dotted(use.need) == old)
        if (exact := fitted(edit, text, lines, finding.function)) is None:
            continue
        symbols = inputs.symbols(finding.package)
        repairs.append(
            Repair(
                finding,
                (exact, *_members_renamed(finding.file, text, need, moved)),
                cause=old.rpartition(".")[0] if need.name is not None else old,
                verb="moved" if _last(old) == _last(moved.path) else "renamed",
                title=_title(old, moved.path),
                evidence=moved.evidence,
                has=(moved.path,) if "." in moved.path else (),
                lacks=(old,) if "." in old and symbols is not None and symbols.has(old) is False else (),
            )
        )
    return repairs


def _renamed_beside(finding: Finding, text: str, inputs: DraftInputs) -> list[Repair]:
    """What is asked of a module, `parallel_state.old_name()`, by the name that the module has for it now."""
    symbols, moved = inputs.symbols(finding.package), moved_to(finding.symbol, finding, inputs)
    if symbols is None or moved is None:
        return []
    module, _, name = finding.symbol.rpartition(".")
    new = _last(moved.path)
    here = symbols.resolve(f"{module}.{new}").definition
    if isinstance(here, Absent | Unknown) or full_name(here) != full_name(symbols.resolve(moved.path).definition):
        return []
    edit = RenameAttribute(file=finding.file, old=f"{_last(module)}.{name}", new=new)
    exact = fitted(edit, text, frozenset({finding.line}), finding.function)
    if exact is None:
        return []
    title = phrase("Use {new} in place of {old}", new=new, old=name)
    has, lacks = (f"{module}.{new}",), (finding.symbol,) if symbols.has(finding.symbol) is False else ()
    return [Repair(finding, (exact,), finding.symbol, "renamed", title, moved.evidence, has, lacks)]


def moved_to(old: str, finding: Finding, inputs: DraftInputs) -> Moved | None:
    """Where the target has what `old` was; None unless one place alone comes into question."""
    package = old.partition(".")[0]
    symbols, search = inputs.symbols(package), inputs.namesakes(package)
    if symbols is None or search is None:
        return None
    before = inputs.before(dataclasses.replace(finding, symbol=old))
    was = before.resolve(old).definition if before is not None else None
    # `import a.b as b`: a module that moved as a whole.
    if isinstance(was, Module) or (was is None and finding.kind == "module-moved" and finding.symbol == old):
        return _module(old, finding, search.modules(_last(old)))
    names = [_last(old)]
    renamed = False
    # What goes by the old name now is something else. The old definition's own words may name its successor.
    if isinstance(was, Class | Function) and not _alike(search.of(names[0]), was, before, symbols):
        assert before is not None
        names = [_last(full_name(was)), *named_instead(before.syntax(was), names[0])]
        renamed = True
    for name in names:
        found = _alike(search.of(name), None if renamed else was, before, symbols)
        if len(found) > 1 and finding.moved_to:
            found = [one for one in found if finding.moved_to in one.paths]
        if len(found) == 1 and not (renamed and name == _last(old)):
            path = best_path(found[0].paths, inputs.releases.near(package, inputs.release(package)))
            return Moved(path, _evidence(old, path, was, renamed=renamed))
    if isinstance(was, Class) and before is not None and (heir := renamed_constants(was, before, symbols)) is not None:
        for one in search.of(heir.name):
            if isinstance(one.definition, Class) and one.definition.module == was.module:
                path = best_path(one.paths, inputs.releases.near(package, inputs.release(package)))
                same = phrase("{new} stands in its module since {old} is gone, with the same values", new=path, old=old)
                return Moved(path, same, heir.members)
    return None


def _members_renamed(file: str, text: str, need: ImportOf, moved: Moved) -> Iterator[Edit]:
    """`Level.PIECEWISE` in other words, for each member that is called differently and used in the file."""
    code = parse(text)
    if isinstance(code, Unparseable):
        return
    bound_as = {
        local(alias)
        for node in code.everything
        if isinstance(node, cst.ImportFrom) and imported_from(node) == need.module
        for alias in aliases(node)
        if imported(alias) == need.name
    }
    for bound in sorted(bound_as):
        for old, new in moved.members.items():
            # Not RenameAttribute: it goes by what a name is imported from, which the edit of the import has changed.
            change = Replace(file=file, pattern=f"{bound}.{old}", replacement=f"{bound}.{new}")
            if (edit := fitted(change, text, frozenset(), "")) is not None:
                yield edit


def _module(old: str, finding: Finding, modules: tuple[str, ...]) -> Moved | None:
    others = [module for module in modules if module != old]
    if len(others) > 1 and finding.moved_to in others:
        others = [finding.moved_to]
    # Two modules of that name: which one is meant cannot be known.
    if len(others) != 1:
        return None
    evidence = phrase("{new} is the only module of its name there now, and has all that is used of it", new=others[0])
    return Moved(others[0], evidence)


def _alike(
    found: tuple[Namesake, ...], was: Definition | None, before: Symbols | None, symbols: Symbols
) -> list[Namesake]:
    if was is None or before is None or isinstance(was, Absent | Unknown):
        return list(found)
    return [one for one in found if same_thing(was, before, one.definition, symbols)]


def _evidence(old: str, new: str, was: Definition | None, *, renamed: bool) -> Phrase:
    if renamed:
        return phrase("the last release that had {old} says to use {new} in its place", old=old, new=new)
    if was is None:
        return phrase("{new} is the only definition of that name there now", new=new)
    both = "{new} is the only definition of that name there now, with members or parameters as {old} had them"
    return phrase(both, old=old, new=new)


def _title(old: str, new: str) -> Phrase:
    module, _, name = new.rpartition(".")
    if not module:
        return phrase("Import {new} in place of {old}", new=new, old=old)
    if name == _last(old):
        return phrase("Import {name} from {module}", name=name, module=module)
    return phrase("Import {name} from {module} in place of {old}", name=name, module=module, old=_last(old))


def _dotted(need: ImportOf) -> str:
    return f"{need.module}.{need.name}" if need.name else need.module


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


_ENOUGH = 0.5
"""Share of the old members or parameters that the new definition must have. A guess: half of them changing at a move is
rare, and two namesakes that share half are rarer."""


def same_thing(old: Definition, old_symbols: Symbols, new: Definition, new_symbols: Symbols) -> bool:
    """Whether `new` may stand in for `old`: a class with its members, a function with its parameters."""
    match old, new:
        case Class(), Class():
            return _shared(_members(old_symbols, old), _members(new_symbols, new)) >= _ENOUGH
        case Function(), Function():
            return _shared(_parameters(old_symbols, old), _parameters(new_symbols, new)) >= _ENOUGH
        case Variable(value=before), Variable(value=after):
            return before is None or after is None or type(before) is type(after)
        # `LLM = make()` became a class: an import works as before.
        case Variable(), Class() | Function():
            return True
        case _:
            return False


def _shared(old: frozenset[str], new: frozenset[str]) -> float:
    return len(old & new) / len(old) if old else 1.0


def _members(symbols: Symbols, owner: Class) -> frozenset[str]:
    body = body_of_class(symbols, owner)
    return frozenset({method.name for method in body.methods} | {field.name for field in body.fields})


def _parameters(symbols: Symbols, definition: Function) -> frozenset[str]:
    found = symbols.signature(definition)
    return frozenset(parameter.name for parameter in getattr(found, "parameters", ()))


def best_path(paths: Iterable[str], near: Sequence[Symbols]) -> str:
    """The path that promises to last the longest. `near` are the releases next to the target."""
    return min(paths, key=lambda path: (_is_private(path), -_presence(path, near), path.count("."), path))


def _is_private(path: str) -> bool:
    return any(part.startswith("_") for part in path.split(".")[:-1])


def _presence(path: str, near: Sequence[Symbols]) -> int:
    return sum(not isinstance(symbols.resolve(path).definition, Absent | Unknown) for symbols in near)
