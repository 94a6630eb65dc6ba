"""What became of a parameter between two releases: kept, renamed, turned into its opposite, or of no effect; and what
says so (a deprecation warning, a docstring, its place among its neighbours).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from patcher.analysis.symbols import Class, Function, Symbols
from patcher.analysis.symbols.classes import body_of_class, linearise
from patcher.analysis.symbols.definition import is_static
from patcher.analysis.syntax import FunctionNode, with_defaults
from patcher.i18n import Phrase, phrase


@dataclass(frozen=True, slots=True)
class Formal:
    """One parameter or constructor field."""

    name: str
    position: int | None
    """Among those that can be passed by position, `self` left out; None for keyword-only ones."""
    default: ast.expr | None = None
    annotation: ast.expr | None = None

    @property
    def boolean(self) -> bool:
        """Whether it is evidently a flag."""
        annotated_bool = self.annotation is not None and _bare(self.annotation) == "bool"
        return annotated_bool or (isinstance(self.default, ast.Constant) and isinstance(self.default.value, bool))

    @property
    def kind(self) -> str:
        """The annotation without `None`, as text; "" if there is none."""
        return _bare(self.annotation) if self.annotation is not None else ""


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    formals: Mapping[str, Formal]
    node: FunctionNode | None
    """The function, or the constructor if it is written out."""
    owner: Class | None = None

    @property
    def positional(self) -> tuple[str, ...]:
        return tuple(formal.name for formal in self.formals.values() if formal.position is not None)


def callee_of(symbols: Symbols, dotted: str) -> Callee | None:
    """What a call of the dotted name runs; None if that is not written in the package."""
    match symbols.resolve(dotted).definition:
        case Function(header=header, owner=owner) as function:
            node = symbols.syntax(function)
            return Callee(_formals(node.args, drop=owner is not None and not is_static(header)), node, owner)
        case Class() as owner:
            return _constructor(symbols, owner)
        case _:
            return None


def _constructor(symbols: Symbols, owner: Class) -> Callee | None:
    order = [base for base in linearise(symbols, owner) if isinstance(base, Class)]
    for base in order:
        if (node := _init(symbols, base)) is not None:
            return Callee(_formals(node.args, drop=True), node, owner)
    found = {
        node.target.id: Formal(node.target.id, None, node.value, node.annotation)
        for base in reversed(order)
        for node in symbols.syntax(base).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return Callee(found, None, owner) if found else None


def _init(symbols: Symbols, owner: Class) -> FunctionNode | None:
    """The constructor that the class itself writes out."""
    found = [method for method in body_of_class(symbols, owner).methods if method.name == "__init__"]
    return symbols.modules.holding(owner.module).syntax(found[-1]) if found else None


def _formals(args: ast.arguments, *, drop: bool) -> dict[str, Formal]:
    plain = len(args.posonlyargs) + len(args.args)
    first = 1 if drop and plain else 0
    return {
        argument.arg: Formal(argument.arg, index - first if index < plain else None, default, argument.annotation)
        for index, (argument, default) in enumerate(with_defaults(args))
        if index >= first
    }


def _bare(annotation: ast.expr) -> str:
    text = ast.unparse(annotation).strip("'\"")
    if text.startswith(("Optional[", "typing.Optional[")):
        text = text.partition("[")[2].removesuffix("]")
    return " | ".join(part for part in text.split(" | ") if part != "None")


def attribute_set_elsewhere(symbols: Symbols, owner: Class, name: str) -> str | None:
    """The method, other than the constructor, that gives the class's attribute `name` its value."""
    for base in linearise(symbols, owner):
        if not isinstance(base, Class):
            continue
        for one in body_of_class(symbols, base).attributes.get(name, ()):
            if one.method is not None and one.method.name != "__init__":
                return one.method.name
    return None


_INSTEAD = re.compile(
    r"(?:\buse|\bprefer|\bswitch(?:ing)? to|\bmigrate to|\brenamed(?: to)?|\bmoved to|\breplaced (?:with|by)"
    r"|\bin favou?r of|\bsuperseded by)\s+(?:the\s+)?(?:new\s+)?[`'\"]*([A-Za-z_][\w.]*)",
    re.IGNORECASE,
)
_NO_EFFECT = re.compile(r"\bno effect\b|\bignored\b|\bnot used\b|\bunused\b|\bno longer used\b", re.IGNORECASE)
_PARTS = re.compile(r"[._]")
_POLARITY = {
    "disable": False, "disabled": False, "no": False, "skip": False, "without": False, "not": False, "ignore": False,
    "exclude": False, "enable": True, "enabled": True, "use": True, "with": True, "include": True, "do": True,
    "allow": True, "forbid": False, "disallow": False,
}  # fmt: skip


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in a definition: docstrings, warnings, arguments of decorators; the parts of an f-string joined."""
    inside: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            inside |= {id(value) for value in part.values}
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in part.values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inside:
            yield part.value


def named_instead(node: ast.AST, old: str) -> tuple[str, ...]:
    """The names that the definition's own words give in place of `old`, last parts alone."""
    found: list[str] = []
    word = re.compile(rf"\b{re.escape(old)}\b")
    for call in _passages(node):
        if word.search(call):
            found += [name.rstrip(".").rpartition(".")[2] for name in _INSTEAD.findall(call)]
    return tuple(dict.fromkeys(name for name in found if name and name != old))


def is_documented_as_ignored(node: ast.AST, name: str) -> bool:
    """Whether the definition's words say that `name` has no effect."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(word.search(text) and _NO_EFFECT.search(text) for text in _passages(node))


def _passages(node: ast.AST) -> Iterator[str]:
    """What is said in one go: the texts of one call together, a docstring paragraph by paragraph."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield " ".join(texts(part))
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str):
            # A paragraph, or one entry of a list of arguments, is about one thing. Words of another entry must not
            # count.
            yield from re.split(r"\n\s*\n|\n(?=\s*\w+\s*(?:\([^)]*\))?:)", part.value.value)


def inverted(old: str, new: str) -> bool:
    """Whether two names of a flag say the opposite: `disable_x` and `enable_x`, `no_x` and `x`."""
    return _polarity(old) is not _polarity(new)


def same_stem(old: str, new: str) -> bool:
    """Whether two names are alike but for words of yes and no."""
    return _stem(old) == _stem(new) != ()


def _polarity(name: str) -> bool:
    answer = True
    for word in _PARTS.split(name.lower()):
        answer = answer is _POLARITY.get(word, True)
    return answer


def _stem(name: str) -> tuple[str, ...]:
    return tuple(word for word in _PARTS.split(name.lower()) if word and word not in _POLARITY)


_ALIKE = 0.7
"""How alike two names must be (`SequenceMatcher.ratio`) where only their place speaks for a renaming. A guess."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """The parameter's new name, whether its sense is the opposite, and what says so."""

    name: str
    inverted: bool
    evidence: Phrase


def renamed(name: str, old: Callee | None, new: Callee) -> Renamed | None:
    """What the parameter is called now; None unless a witness supports one name."""
    if old is None or name not in old.formals:
        return None
    was = old.formals[name]
    if old.node is not None:
        # A warning or docstring names the new parameter: "use `max_model_len` instead". A type that does not fit speaks
        # against it.
        for other in named_instead(old.node, name):
            if other in new.formals and (found := _by_words(was, new.formals[other])) is not None:
                return found
        if (found := _by_code(name, old, new)) is not None:
            return found
    return _by_place(was, old, new)


def _by_words(was: Formal, now: Formal) -> Renamed | None:
    opposite = inverted(was.name, now.name)
    if opposite and not (was.boolean and now.boolean):
        return None
    if not opposite and not _same_kind(was, now):
        return None
    evidence = phrase("the last release that took {old} says to use {new} in its place", old=was.name, new=now.name)
    return Renamed(now.name, opposite, evidence)


def _by_code(name: str, old: Callee, new: Callee) -> Renamed | None:
    """`new = old` or `new = not old` in the function that took both."""
    for part in ast.walk(old.node) if old.node is not None else ():
        match part:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=source)) if source == name:
                opposite = False
            case ast.Assign(
                targets=[ast.Name(id=target)], value=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=source))
            ) if source == name:
                opposite = True
            case _:
                continue
        # Both releases must have the new name as a parameter, and the sense must agree with the words: `enable_x = not
        # disable_x`.
        if target not in old.formals or target not in new.formals or inverted(name, target) != opposite:
            continue
        if opposite and not (old.formals[name].boolean and new.formals[target].boolean):
            continue
        evidence = phrase("the last release that took {old} handed it on as {new}", old=name, new=target)
        return Renamed(target, opposite, evidence)
    return None


def _by_place(was: Formal, old: Callee, new: Callee) -> Renamed | None:
    """A parameter that came in the very place of the one that went, of the same kind, default and almost name."""
    came = [formal for formal in new.formals.values() if formal.name not in old.formals]
    went = [formal for formal in old.formals.values() if formal.name not in new.formals]
    if _place(was, old) is None:
        return None
    found = [
        formal
        for formal in came
        if _place(formal, new) == _place(was, old)
        and _same_kind(was, formal)
        and (SequenceMatcher(None, was.name, formal.name).ratio() >= _ALIKE or same_stem(was.name, formal.name))
    ]
    # Two candidates for one place, or two parameters that went from it: not clear.
    if len(found) != 1 or len([formal for formal in went if _place(formal, old) == _place(was, old)]) != 1:
        return None
    now = found[0]
    opposite = inverted(was.name, now.name)
    if opposite:
        # `disable_log` -> `enable_log`: the same word, both flags, and opposite defaults.
        if not (was.boolean and now.boolean and same_stem(was.name, now.name) and _opposite_defaults(was, now)):
            return None
    elif not _same_default(was, now):
        return None
    evidence = phrase(
        "{new} stands in the place of {old}, with the same type and a default to match", old=was.name, new=now.name
    )
    return Renamed(now.name, opposite, evidence)


def _place(formal: Formal, callee: Callee) -> tuple[str, ...] | None:
    """The neighbours that a parameter stands between; None where it stands alone."""
    names = list(callee.formals)
    at = names.index(formal.name)
    around = (names[at - 1] if at else "", names[at + 1] if at + 1 < len(names) else "")
    return around if len(names) > 1 and any(around) else None


def _same_kind(was: Formal, now: Formal) -> bool:
    if was.kind and now.kind:
        return was.kind == now.kind
    return was.boolean and now.boolean


def _same_default(was: Formal, now: Formal) -> bool:
    if was.default is None or now.default is None:
        return was.default is now.default
    return ast.dump(was.default) == ast.dump(now.default)


def _opposite_defaults(was: Formal, now: Formal) -> bool:
    match was.default, now.default:
        case ast.Constant(value=bool() as one), ast.Constant(value=bool() as two):
            return one is not two
        case _:
            return False


def droppable(
    name: str, value: ast.expr, old: Callee | None, new: Callee | None, symbols: Symbols, called: frozenset[str]
) -> Phrase | None:
    """Why leaving out `name`, passed as `value`, changes nothing; None if nothing says so.

    `called` are the methods that the tree calls in the same file on what the call gives.
    """
    if old is not None and name in old.formals:
        default = old.formals[name].default
        # `f(x, flag=False)` where the old default was False.
        if default is not None and _is_literal(value) and ast.dump(value) == ast.dump(default):
            text = "{name} is passed as {value}, which was its default"
            return phrase(text, name=name, value=ast.unparse(value))
        if default is not None and _is_falsy(value) and _is_falsy(default) and _only_tested(old, name):
            text = "{name} is passed as {value}, its default was {default}, and it was only tested for truth"
            return phrase(text, name=name, value=ast.unparse(value), default=ast.unparse(default))
        # The docstring or a warning of the old release: "`seed` is ignored".
        if old.node is not None and is_documented_as_ignored(old.node, name):
            return phrase("the last release that took {name} says that it has no effect", name=name)
        # No line of the old function reads the parameter, and it does not pass on `locals()` either.
        if old.node is not None and not _reads(old.node, name) and not _forwards(old.node):
            return phrase("the last release that took {name} did nothing with it", name=name)
        if old.node is not None and new is not None and new.owner is not None and not _escapes(old.node, name):
            setter = attribute_set_elsewhere(symbols, new.owner, name)
            # `sampler.set_seed(seed)` is called in the same file, so the constructor need not get the seed.
            if setter is not None and setter in called:
                text = "the constructor did not keep {name}; the object gets it from {method}, which is called here too"
                return phrase(text, name=name, method=setter)
    # `def __init__(self, config): dtype = config.dtype`: what was an argument comes from another one now.
    if new is not None and (source := _derived(new, name, symbols)):
        return phrase("it takes {name} from {source} itself now", name=name, source=source)
    return None


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_falsy(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _reads(node: ast.AST, name: str) -> list[ast.Name]:
    body = getattr(node, "body", [])
    return [
        part
        for statement in body
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]


def _forwards(node: ast.AST) -> bool:
    """Whether the function may use its parameters without naming them."""
    return any(isinstance(part, ast.Name) and part.id in ("locals", "vars") for part in ast.walk(node))


def _only_tested(callee: Callee, name: str) -> bool:
    if callee.node is None or _forwards(callee.node):
        return False
    tested: set[int] = set()
    for part in ast.walk(callee.node):
        match part:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                tested |= {id(one) for one in _truths(test)}
    return all(id(read) in tested for read in _reads(callee.node, name))


def _truths(test: ast.expr) -> list[ast.expr]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _truths(inner)
        case ast.BoolOp(values=values):
            return [one for value in values for one in _truths(value)]
        case _:
            return [test]


def _escapes(node: ast.AST, name: str) -> bool:
    """Whether the value itself is kept or passed on, rather than asked for its attributes."""
    asked = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return _forwards(node) or any(id(read) not in asked for read in _reads(node, name))


def _derived(callee: Callee, name: str, symbols: Symbols) -> str:
    """The attribute of another parameter that the function, or its class's constructors, takes for `name`."""
    bases = linearise(symbols, callee.owner) if callee.owner is not None else ()
    constructors = [node for base in bases if isinstance(base, Class) and (node := _init(symbols, base)) is not None]
    for node in [callee.node, *constructors] if callee.node is not None else []:
        for statement in node.body:
            match statement:
                # `dtype = config.dtype`, `self.model_config = self.engine.model_config`
                case ast.Assign(
                    targets=[ast.Name(id=target) | ast.Attribute(value=ast.Name(id="self"), attr=target)],
                    value=ast.Attribute(
                        value=ast.Name(id=owner) | ast.Attribute(value=ast.Name(id="self"), attr=owner), attr=attr
                    ),
                ) if target == attr == name and owner in callee.formals:
                    return f"{owner}.{attr}"
    return ""
