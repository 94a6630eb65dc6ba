"""The parameters of functions, methods and constructors; those of dataclasses, attrs, pydantic and msgspec are
generated from their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from patcher.analysis import expressions as ex
from patcher.analysis.bindings import FunctionHeader
from patcher.analysis.expressions import Expression, dotted_or_called, last_name, shown
from patcher.analysis.parameters import Parameter, Signature
from patcher.analysis.symbols.classes import Base, body_of_class, linearise
from patcher.analysis.symbols.definition import Class, Definition, External, Function, Unknown, Variable, is_static
from patcher.analysis.symbols.lookup import Lookup
from patcher.analysis.syntax import FunctionNode, below
from patcher.analysis.syntax import last_name as last_name_in


def signature_of(symbols: Lookup, definition: Definition) -> Signature | Unknown:
    """The parameters that a call of the definition takes. Decorators are taken to keep them."""
    match definition:
        case Function(header=header, owner=owner):
            return read_parameters(header, bound=owner is not None and not is_static(header))
        case Class():
            return _constructor(symbols, definition)
        case Variable(value=ex.Lambda(signature=signature)):
            return signature
        case _:
            return Unknown("what a call of it takes is not known")


def _constructor(symbols: Lookup, owner: Class) -> Signature | Unknown:
    maker = constructor_of(linearise(symbols, owner), lambda _: symbols)
    if isinstance(maker, FunctionHeader):
        return maker.signature.bound()
    if isinstance(maker, Unknown):
        return Unknown(f"the constructor of {owner.qualname} is that of a class from outside")
    return maker


def constructor_of(
    order: Sequence[Base], symbols_of: Callable[[Class], Lookup]
) -> FunctionHeader | Signature | Unknown:
    """What makes instances of a class with these bases: a method, or fields; `Unknown` if a class from outside does."""
    maker: FunctionHeader | None = None
    for index, base in enumerate(order):
        match base:
            case Class():
                own = {method.name: method for method in body_of_class(symbols_of(base), base).methods}
                # The first class in Python's order that says how it is made: an `__init__`, or the fields of a
                # dataclass.
                if "__init__" in own:
                    return own["__init__"]
                if _is_dataclass(symbols_of(base), base):
                    return _from_fields([b for b in _own(order[index:]) if _is_dataclass(symbols_of(b), b)], symbols_of)
                # `__new__` alone decides only if no base has an `__init__`.
                if "__new__" in own and maker is None:
                    maker = own["__new__"]
            case External(name=name) if name in _FIELDS:
                return _from_fields(_own(order), symbols_of, positional=name in _POSITIONAL)
            case External(name=name) if name in _PLAIN:
                continue
            case External(name=name) if maker is None:
                return Unknown(f"{name} is from outside", name)
            case Unknown() if maker is None:
                return base
            case _:
                continue
    return maker or Signature(())


def read_parameters(header: FunctionHeader, *, bound: bool) -> Signature:
    """A function's parameters; without the first if it is `bound`."""
    return header.signature.bound() if bound else header.signature


def _own(order: Iterable[Base]) -> list[Class]:
    """The package's own among a class and its bases."""
    return [base for base in order if isinstance(base, Class)]


_FIELDS = ("pydantic.BaseModel", "pydantic.main.BaseModel", "msgspec.Struct", "typing.NamedTuple", "typing.TypedDict",
           "typing_extensions.TypedDict")  # fmt: skip
_POSITIONAL = ("msgspec.Struct", "typing.NamedTuple")
_PLAIN = ("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol")


def _is_dataclass(symbols: Lookup, owner: Class) -> bool:
    return any(_makes_dataclass(symbols, owner, dotted_or_called(mark)) for mark in owner.header.decorators)


def _makes_dataclass(symbols: Lookup, owner: Class, called: Expression) -> bool:
    if not isinstance(called, ex.Name | ex.Attribute):
        return False
    if last_name(called).endswith("dataclass"):
        return True
    found = symbols.expression(owner.module, called).definition
    # Decorators of attrs make fields as those of dataclasses do.
    if isinstance(found, External):
        return found.name in ("attr.s", "attr.define", "attrs.define", "attrs.frozen")
    return isinstance(found, Function) and symbols.modules.holding(found.module).asked_of(
        found.header, _names_dataclass
    )


def _names_dataclass(node: FunctionNode) -> bool:
    return any(last_name_in(one) in ("dataclass", "dataclass_transform") for one in below(node))


def _from_fields(bases: list[Class], symbols_of: Callable[[Class], Lookup], *, positional: bool = True) -> Signature:
    """The constructor that is generated from annotated fields, those of the furthest base first."""
    found: dict[str, Parameter] = {}
    any_keyword = False
    for base in reversed(bases):
        body = body_of_class(symbols_of(base), base)
        made = [mark.keywords for mark in base.header.decorators if isinstance(mark, ex.Call)]
        keyword_only = any(_is_true(dict(words).get("kw_only")) for words in (*made, base.header.keywords))
        any_keyword = any_keyword or body.allows_extra
        for name, annotation, value in body.fields:
            # pydantic takes names with an underscore for private attributes, not for fields.
            if not positional and name.startswith("_"):
                continue
            written = shown(annotation).strip("'\"")
            # `_: KW_ONLY` in a dataclass: the fields after it are passed by keyword.
            if written.rpartition(".")[2] == "KW_ONLY":
                keyword_only = True
            elif not written.startswith(("ClassVar", "typing.ClassVar")):
                words = dict(value.keywords) if isinstance(value, ex.Call) else {}
                # `field(init=False)` is no parameter.
                if "init" in words and not _is_true(words["init"]):
                    found.pop(name, None)
                    continue
                alone = keyword_only or not positional or _is_true(words.get("kw_only"))
                found[name] = Parameter(name, "keyword" if alone else "either", required=_has_no_default(value))
    return Signature(tuple(found.values()), any_keyword=any_keyword)


def _has_no_default(value: Expression | None) -> bool:
    if not isinstance(value, ex.Call) or last_name(value.of) not in ("field", "Field"):
        return value is None
    given = dict(value.keywords).keys() & {"default", "default_factory", "factory"}
    first = value.positional[:1]
    return not given and (not first or (isinstance(first[0], ex.Constant) and first[0].value is ...))


def _is_true(value: Expression | None) -> bool:
    return isinstance(value, ex.Constant) and value.value is True
