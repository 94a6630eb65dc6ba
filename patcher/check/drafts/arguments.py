"""Repairs of calls that pass what is no longer taken: by its new name, or not at all."""

from __future__ import annotations

import ast
import dataclasses

import libcst as cst

from patcher.analysis.findings import Finding
from patcher.analysis.symbols import Symbols
from patcher.check.drafts.inputs import DraftInputs, Repair
from patcher.check.drafts.parameters import Callee, Renamed, callee_of, droppable, renamed
from patcher.check.drafts.sites import (
    Site,
    call_sites,
    expression,
    fitted,
    keyword_sites,
    split_symbol,
    text_of,
    written,
)
from patcher.i18n import Phrase, phrase
from patcher.rewrite.edits import Edit, RemoveArgument, RenameArgument, Replace


def argument_repairs(finding: Finding, inputs: DraftInputs) -> list[Repair]:
    """What to do with an argument that the target no longer takes; nothing unless the sources speak for it."""
    symbols = inputs.symbols(finding.package)
    if symbols is None:
        return []
    # Without a parameter: `Server takes fewer positional arguments`.
    callee, parameter = split_symbol(finding.symbol) or (finding.symbol, "")
    new = callee_of(symbols, callee)
    before = inputs.before(finding)
    old = callee_of(before, callee) if before is not None else None
    sites = keyword_sites(finding, parameter, inputs)
    if not sites:
        return _by_position(finding, callee, parameter, old, new, inputs)
    if len(sites) != 1:
        return []
    site, keyword = sites[0]
    title: Phrase
    edit: Edit
    has: tuple[str, ...] = ()
    name = callee.rpartition(".")[2]
    if new is not None and (found := renamed(parameter, old, new)) is not None:
        # The call passes the new name already; passing it twice is an error.
        if found.name in {arg.keyword.value for arg in site.call.args if arg.keyword is not None}:
            return []
        value = _value(found, parameter, keyword.value, site, inputs, finding)
        edit = RenameArgument(file=finding.file, call=site.tail, old=parameter, new=found.name, value=value)
        title = phrase("Pass {new} to {callee} in place of {old}", new=found.name, callee=name, old=parameter)
        verb, evidence, has = f"{parameter}.renamed", found.evidence, (f"{callee}({found.name})",)
    else:
        why = droppable(parameter, expression(site.code, keyword.value), old, new, symbols, _methods(site))
        if why is None:
            return []
        edit = RemoveArgument(file=finding.file, call=site.tail, old=parameter)
        title = phrase("Call {callee} without {old}", callee=name, old=parameter)
        verb, evidence = f"{parameter}.dropped", why
    return _repair(finding, edit, site, callee, verb, title, evidence, inputs, has)


def _repair(
    finding: Finding,
    edit: Edit,
    site: Site,
    callee: str,
    verb: str,
    title: Phrase,
    evidence: Phrase,
    inputs: DraftInputs,
    has: tuple[str, ...] = (),
) -> list[Repair]:
    text, symbols = inputs.text(finding.file), inputs.symbols(finding.package)
    if text is None or symbols is None:
        return []
    first, last = site.code.lines(site.call)
    exact = fitted(edit, text, frozenset(range(first, last + 1)), site.function)
    if exact is None or (isinstance(exact, RenameArgument) and exact.count != 1 and exact.value is not None):
        return []
    parts = split_symbol(finding.symbol)
    lacked = f"{callee}({parts[1]})" if parts is not None else ""
    return [
        Repair(
            finding,
            (exact,),
            cause=callee,
            verb=verb,
            title=title,
            evidence=evidence,
            has=tuple(symbol for symbol in has if symbols.has(symbol) is True),
            lacks=(lacked,) if lacked and symbols.has(lacked) is False else (),
        )
    ]


def _by_position(
    finding: Finding, callee: str, parameter: str, old: Callee | None, new: Callee | None, inputs: DraftInputs
) -> list[Repair]:
    """An argument in the place of a parameter that is gone, where those behind it move up to their own."""
    symbols, sites = inputs.symbols(finding.package), call_sites(finding, callee, inputs)
    if symbols is None or new is None or len(sites) != 1:
        return []
    if old is None or old.positional == new.positional:
        old = _last_with_more(finding.package, callee, len(sites[0].positional), new, inputs)
        if old is None:
            return []
    # The finding speaks of the parameter that is reached now. The one that went is the one to leave out, if it is one
    # alone.
    if parameter in new.formals or parameter not in old.formals:
        gone = [name for name in old.positional if name not in new.formals]
        if len(gone) != 1:
            return []
        parameter = gone[0]
    if (at := old.formals[parameter].position) is None:
        return []
    site = sites[0]
    if at >= len(site.positional):
        return []
    why = droppable(parameter, expression(site.code, site.positional[at].value), old, new, symbols, _methods(site))
    edit = without_position(finding.file, site, at, old, new)
    if why is None or edit is None:
        return []
    title = phrase("Call {callee} without {old}", callee=callee.rpartition(".")[2], old=parameter)
    of_parameter = dataclasses.replace(finding, symbol=f"{callee}({parameter})")
    found = _repair(of_parameter, edit, site, callee, f"{parameter}.dropped", title, why, inputs)
    return [dataclasses.replace(repair, finding=finding) for repair in found]


def _last_with_more(package: str, callee: str, count: int, new: Callee, inputs: DraftInputs) -> Callee | None:
    """The callee in the last release in which it took so many arguments by position, where it takes fewer now."""
    if count <= len(new.positional):
        return None

    def takes_them(symbols: Symbols) -> bool:
        then = callee_of(symbols, callee)
        return then is not None and len(then.positional) >= count

    before = inputs.releases.last_that(package, inputs.release(package), takes_them)
    return callee_of(before, callee) if before is not None else None


def _value(
    found: Renamed, parameter: str, value: cst.BaseExpression, site: Site, inputs: DraftInputs, finding: Finding
) -> str | None:
    """The value under the new name: the same text (None), its opposite, or the attribute renamed along with it."""
    first, last = site.code.lines(value)
    gone = any(
        other.kind == "attribute-removed"
        and other.file == finding.file
        and other.symbol.endswith(f".{parameter}")
        and first <= other.line <= last
        for other in inputs.findings
    )
    if isinstance(value, cst.Attribute) and value.attr.value == parameter and gone:
        return f"{text_of(site.code, value.value)}.{found.name}"
    return opposite(expression(site.code, value), text_of(site.code, value)) if found.inverted else None


def _methods(site: Site) -> frozenset[str]:
    """The methods called in the same file on the name or attribute that the call's result is put into."""
    statement = site.code.statement(site.call)
    targets = statement.targets if isinstance(statement, cst.Assign) else []
    names = {written(site.code, target.target) for target in targets}
    return frozenset(
        node.func.attr.value
        for node in (site.code.everything if names else [])
        if isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and written(site.code, node.func.value) in names
    )


def without_position(file: str, site: Site, at: int, old: Callee, new: Callee) -> Replace | None:
    """The edit, if the other positional arguments then stand where their parameters are now."""
    passed = site.positional
    # Behind `*args` no position is known.
    if any(argument.star for argument in passed[: at + 1]):
        return None
    left = [name for index, name in enumerate(old.positional[: len(passed)]) if index != at]
    # Without the argument the others must stand where their parameters are now.
    if tuple(left) != new.positional[: len(left)]:
        return None
    called = written(site.code, site.call.func)
    before = [f"$ARG{index + 1}" for index in range(at)]
    pattern = ", ".join([*before, text_of(site.code, passed[at].value), "$$$REST"])
    return Replace(
        file=file,
        within=site.function or None,
        pattern=f"{called}({pattern})",
        replacement=f"{called}({', '.join([*before, '$$$REST'])})",
    )


_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Compare)


def opposite(value: ast.expr, text: str) -> str:
    """`not value`, without a `not` too many."""
    match value:
        case ast.Constant(value=bool() as flag):
            return str(not flag)
        case ast.UnaryOp(op=ast.Not(), operand=inner) if isinstance(inner, _TIGHT):
            return ast.unparse(inner)
        case _ if isinstance(value, _TIGHT):
            return f"not {text}"
        case _:
            return f"not ({text})"
