"""Attributes of values: where `x.name` leads, or that it is absent, or that this cannot be known.

Looked up on modules, and along the method resolution order of classes whose bases lead from the tree to a package.
Members of enumerations, properties, `self.x = …` in methods, names that `torch.nn.Module` has, and a `__getattr__` that
only asks another object are followed.
"""

from __future__ import annotations

import ast
import builtins
import re

from patcher.analysis.bindings import ClassHeader, FunctionHeader, class_header
from patcher.analysis.expressions import Expression, Name, expression, shown
from patcher.analysis.meaning.inference import function_result, infer, meaning_of, variable_value
from patcher.analysis.meaning.lookup import Base, Lookup
from patcher.analysis.meaning.meanings import (
    Container,
    ElementGetter,
    Frame,
    InstanceOf,
    Meaning,
    Meanings,
    Method,
    Outside,
    Receiver,
    SuperOf,
    TooFarError,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    class_of,
    frame_of,
    union,
    without_absent,
)
from patcher.analysis.symbols import Absent, Class, Definition, External, Function, Module, Unknown, Variable, full_name
from patcher.analysis.symbols.classes import body_of_class, external_has, is_open, own_member
from patcher.analysis.symbols.definition import is_property
from patcher.analysis.symbols.text_index import Mention, TextIndex
from patcher.analysis.syntax import FunctionNode, below, statements_below

_ONE_ELEMENT = frozenset({"get", "pop", "popleft", "setdefault", "__enter__", "__aenter__"})
"""`__enter__` is that of a context manager: `-> Iterator[X]` of a function that is made into one."""
_EVERY_ELEMENT = frozenset({"copy", "values"})


def lookup(program: Lookup, of: Meaning, name: str) -> Meanings:
    """What the attribute can be; `Absent` if it is not there, `Unknown` with a symbol if that cannot be known."""
    match of:
        case Module():
            return _of_module(program, of, name)
        case Class() | TreeClass() | TypeOf() | InstanceOf():
            return _of_class(program, class_of(of), name, of)
        case SuperOf():
            return _of_super(program, of, name)
        case Function() | Method():
            function = of if isinstance(of, Function) else of.function
            # Every function has `__name__` and its like; a package may also set attributes on a function.
            if hasattr(_plain, name) or program.symbols(function.module).set_from_outside(function, name) is not None:
                return (Outside(f"{full_name(function)}.{name}"),)
            if function.header.decorators:
                return (Unknown(f"{function.qualname} is decorated", f"{full_name(function)}.{name}"),)
            return (Absent(full_name(function), name),)
        case TreeModule(name=module):
            return program.tree_member(module, name)
        case Outside(name=owner):
            return (Outside(f"{owner}.{name}"),)
        case ElementGetter():
            return (Outside(f"builtins.method.{name}"),)
        case Variable():
            symbol = full_name(of)
            return (Unknown(f"the class of {symbol} is not known", f"{symbol}.{name}"),)
        case Container() if name in _ONE_ELEMENT or name in _EVERY_ELEMENT:
            return (ElementGetter(of, every=name in _EVERY_ELEMENT),)
        case Container():
            return (Outside(f"builtins.{name}"),)
        case Absent():
            return (of,)
        case Unknown() | TreeFunction():
            return (Unknown("its owner is not known"),)


def _plain() -> None: ...


def _of_module(program: Lookup, module: Module, name: str) -> Meanings:
    found = program.symbols(module.name).module_member(module, name)
    asked = f"{module.name}.{name}"
    if isinstance(found.definition, Absent) and hasattr(builtins.__class__, name):
        return (Outside(f"types.ModuleType.{name}"),)
    if isinstance(found.definition, Absent):
        return (Absent(module.name, name, found.definition.newer),)
    definition = _for_checkers(program, module, name, found.definition)
    return union(*(meaning_of(program, one, asked) for one in (definition, *found.alternatives)))


def _for_checkers(program: Lookup, module: Module, name: str, found: Definition) -> Definition:
    """For a name that is served on demand, the variable that the module declares for type checkers."""
    scope = program.symbols(module.name).modules.scope(module)
    if (
        isinstance(found, Variable | Unknown)
        and not isinstance(scope, Unknown)
        and getattr(found, "value", None) is None
    ):
        for binding in scope.for_checkers.get(name, ()):
            if binding.annotation is not None:
                return Variable(module.name, name, None, binding.annotation)
    return found


_MOST_BASES = 150
"""How many classes one class may inherit from, each as often as a way leads there. A class of verl has 6 at most."""
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})
_MEMBER_NAMES = frozenset({"name", "value", "_name_", "_value_"})


def dotted(owner: Class | TreeClass) -> str:
    return owner.dotted if isinstance(owner, TreeClass) else f"{owner.module}.{owner.qualname}"


def ancestry(program: Lookup, owner: Class | TreeClass) -> tuple[Base, ...]:
    """The class and its bases, in the order in which Python asks them."""
    return program.once(("bases", owner), lambda: _merge(program, owner), (owner,))


def _merge(program: Lookup, owner: Class | TreeClass) -> tuple[Base, ...]:
    found: list[Base] = []
    for base in _direct(program, owner):
        if isinstance(base, Class | TreeClass):
            found += ancestry(program, base)
            # Classes generated in a test inherit from each other by the thousand; the product of their ancestries does
            # not end.
            if len(found) > _MOST_BASES:
                raise TooFarError("it inherits from too many classes")
        else:
            found.append(base)
    last = {base: index for index, base in enumerate(found)}
    return (owner, *(base for index, base in enumerate(found) if last[base] == index))


def _direct(program: Lookup, owner: Class | TreeClass) -> list[Base]:
    found: list[Base] = []
    if isinstance(owner, TreeClass):
        for value in owner.facts.bases:
            classes = [one for one in program.evaluate(value) if not isinstance(one, Absent)]
            match classes:
                case [Class() | TreeClass() | Outside() | Unknown() as one, *_]:
                    found.append(one)
                case [TypeOf(of=of), *_]:
                    found.append(of)
                case _:
                    found.append(Unknown(f"a base of {owner.facts.qualname} is not known"))
        return found
    symbols = program.symbols(owner.module)
    for node in owner.header.bases:
        definition = symbols.expression(owner.module, node).definition
        if isinstance(definition, External):
            definition = program.resolve(definition.name).definition
        match definition:
            case Class():
                found.append(definition)
            case External(name=name):
                found.append(Outside(name))
            case _:
                found.append(Unknown(f"{owner.qualname} inherits from {shown(node)}"))
    return found


def _of_class(program: Lookup, owner: Class | TreeClass, name: str, receiver: Receiver) -> Meanings:
    """The attribute of a class, asked of the class or of an instance."""
    asked = f"{dotted(owner)}.{name}"

    def find() -> Meanings:
        found = _search(program, ancestry(program, owner), name, receiver, asked)
        # `AutoTokenizer.from_pretrained()` is annotated as, and looks like, an AutoTokenizer; its `__init__` only
        # raises.
        absent = isinstance(receiver, InstanceOf) and all(isinstance(one, Absent) for one in found)
        if absent and isinstance(owner, Class) and body_of_class(program.symbols(owner.module), owner).refuses:
            return (Unknown(f"{owner.qualname} makes instances of other classes only", asked),)
        return found

    return program.once(("member", name, receiver), find, (Unknown(asked),))


def _of_super(program: Lookup, of: SuperOf, name: str) -> Meanings:
    """The attribute that `super()` finds: along the receiver's bases behind the class."""
    order = ancestry(program, of.receiver.of)
    order = order[order.index(of.of) + 1 :] if of.of in order else ancestry(program, of.of)[1:]
    return _search(program, order, name, of.receiver, f"{dotted(of.of)}.{name}")


def _search(program: Lookup, order: tuple[Base, ...], name: str, receiver: Receiver, asked: str) -> Meanings:
    unsure: Meanings = ()
    ours = asked if any(isinstance(base, Class) for base in order) else ""
    is_instance = isinstance(receiver, InstanceOf)
    for base in order:
        match base:
            case Class():
                if (found := _of_target(program, base, name, receiver, order)) is not None:
                    return found
                if isinstance(receiver, InstanceOf) and (reason := is_open(program.symbols(base.module), base)):
                    # A `__getattr__` that asks another object can be followed; any other makes the class open.
                    through = _delegates(program, base, name, receiver)
                    if through is None:
                        unsure = unsure or (Unknown(reason, ours),)
                    elif through and not all(isinstance(one, Absent) for one in through):
                        return tuple(one for one in through if not isinstance(one, Absent))
            case TreeClass():
                if (found := _of_tree(program, base, name, receiver)) is not None:
                    return found
            case Outside(name=outside):
                # `State.RUNNING.value`
                if is_instance and outside in _ENUMS and name in _MEMBER_NAMES:
                    return (Outside(f"{outside}.{name}"),)
                present = external_has(outside, name)
                # torch is not looked into; the names of `nn.Module` are in a table.
                if present is None and ours and outside.startswith("torch.nn."):
                    present = _of_torch_module(program, order, name)
                if present:
                    return (Outside(f"{outside}.{name}"),)
                if present is None:
                    unsure = unsure or (Unknown(f"it inherits from {outside}", ours),)
            case Unknown(reason=reason):
                unsure = unsure or (Unknown(reason, ours),)
    if hasattr(object if is_instance else type, name) or name in ("__dict__", "__annotations__", "__slots__"):
        return (Outside(f"builtins.object.{name}"),)
    if name in ("__dataclass_fields__", "__wrapped__", "__orig_bases__", "__signature__"):
        return (Outside(f"builtins.object.{name}"),)
    return unsure or (Absent(*asked.rpartition(".")[::2]),)


def _of_torch_module(program: Lookup, order: tuple[Base, ...], name: str) -> bool | None:
    """A torch module also has what its package registers by that name, wherever that is done."""
    if name in MODULE_NAMES:
        return True
    package = next(base.module for base in order if isinstance(base, Class))
    return True if registered(program.symbols(package).text, name) else None


def _of_tree(program: Lookup, base: TreeClass, name: str, receiver: Receiver) -> Meanings | None:
    if name in base.facts.methods:
        function = base.facts.methods[name]
        if isinstance(receiver, InstanceOf) and function.is_property:
            return program.evaluate(function.result)
        return (TreeFunction(function),)
    facts = program.project.module(base.module)
    if facts is not None and (inner := facts.classes.get(f"{base.facts.qualname}.{name}")) is not None:
        return (TreeClass(base.module, inner),)
    if name in base.facts.attributes:
        return without_absent(union(*(program.evaluate(bound.value) for bound in base.facts.attributes[name])))
    if "__getattr__" in base.facts.methods or "__getattribute__" in base.facts.methods:
        return (Unknown(f"{base.facts.qualname} has a __getattr__"),)
    return None


def _of_target(program: Lookup, base: Class, name: str, receiver: Receiver, order: tuple[Base, ...]) -> Meanings | None:
    symbols = program.symbols(base.module)
    found = own_member(symbols, base, name)
    set_here = body_of_class(symbols, base).attributes.get(name, ()) if isinstance(receiver, InstanceOf) else ()
    if found is not None:
        match found.definition:
            case Function() as function:
                if is_property(function.header):
                    if isinstance(receiver, InstanceOf):
                        results = function_result(program, function, receiver)
                        nothing = Variable(base.module, f"{base.qualname}.{name}")
                        return tuple(one for one in results if not isinstance(one, Unknown | Absent)) or (nothing,)
                    return (Outside("builtins.property"),)
                return (Method(function, receiver),)
            case Variable() as variable:
                # A variable in the body of an enumeration is one of its members.
                if any(isinstance(one, Outside) and one.name in _ENUMS for one in order):
                    return (InstanceOf(base, exact=True),)
                if variable.annotation is not None or not set_here:
                    return variable_value(program, variable, Frame(base.module, base)) or (variable,)
            case definition:
                return meaning_of(program, definition)
    parts: list[Meanings] = []
    # `self.x = ...` in up to six places; the number is a guess, and the first places are the constructor's.
    for one in set_here[:6]:
        variable = Variable(base.module, f"{base.qualname}.{name}", one.value, one.annotation)
        frame = Frame(base.module, base)
        if one.method is not None:
            frame = frame_of(base.module, base, one.method, receiver)
        parts.append(variable_value(program, variable, frame))
        # `self.x: X = ...` settles it.
        if one.annotation is not None and not isinstance(one.value, Name):
            break
    if set_here:
        nothing = Variable(base.module, f"{base.qualname}.{name}")
        every = union(*parts)
        results = tuple(one for one in every if not isinstance(one, Variable))
        return results or every[:1] or (nothing,)
    if (outside := symbols.set_from_outside(base, name)) is not None:
        return meaning_of(program, outside)
    return None


def _delegates(program: Lookup, owner: Class, name: str, receiver: InstanceOf) -> Meanings | None:
    """What the class's `__getattr__` gives for a name; None if that cannot be known."""
    symbols = program.symbols(owner.module)
    own = {method.name: method for method in body_of_class(symbols, owner).methods}
    header = own.get("__getattr__")
    if header is None or "__getattribute__" in own:
        return None
    asked = symbols.modules.holding(owner.module).asked_of(header, _delegate_expression)
    if asked is None:
        return None
    if_circular: Meanings | None = ()
    return program.once(
        ("delegates", owner, name, receiver),
        lambda: _delegated(program, owner, header, asked, name, receiver),
        if_circular,
    )


def _delegated(
    program: Lookup, owner: Class, header: FunctionHeader, asked: Expression, name: str, receiver: InstanceOf
) -> Meanings | None:
    frame = frame_of(owner.module, owner, header, receiver)
    parts: list[Meanings] = []
    for one in infer(program, asked, frame):
        found = lookup(program, one, name)
        if all(isinstance(inner, Absent) for inner in found) and isinstance(one, InstanceOf):
            if not one.exact and isinstance(one.of, Class) and may_have(program, one.of, name):
                # It delegates in order to reach such classes.
                found = (Outside(f"{owner.module}.{owner.qualname}.{name}"),)
        elif any(isinstance(inner, Unknown) for inner in found):
            return None
        parts.append(found)
    return union(*parts) or None


def _delegate_expression(node: FunctionNode) -> Expression | None:
    """The object that `__getattr__` asks on every path that returns."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if len(arguments) != 2:
        return None
    key = arguments[1].arg
    asked: Expression | None = None
    for statement in statements_below(node, nested=False):
        match statement:
            case ast.Return(
                value=ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Name(id=given)], keywords=[])
            ) if given == key and (asked is None or asked == expression(value)):
                asked = expression(value)
            case ast.Return():
                return None
    return asked


_MOST = 12
"""Files that are read to find a subclass."""


def may_have(program: Lookup, owner: Class, name: str) -> bool:
    """Whether a class that inherits from `owner` in its package defines the name; True too if too many might."""
    key = ("subclass", owner, name)
    return program.once(key, lambda: _may_have(program, owner, name), True)


def _may_have(program: Lookup, owner: Class, name: str) -> bool:
    modules = program.symbols(owner.module).text.setters(name)
    return len(modules) > _MOST or any(_has_subclass(program, module, owner, name) for module in modules)


def _has_subclass(program: Lookup, module: str, owner: Class, name: str) -> bool:
    symbols = program.symbols(owner.module)
    home = symbols.modules.find(module)
    if not isinstance(home, Module):
        return False
    summary = symbols.modules.summary(home)
    if isinstance(summary, Unknown):
        return True
    # A class inside a function or an `if` counts as one of the module's.
    for header in summary.asked(_classes_that_define, name):
        if (module, header.first) != (owner.module, owner.header.first):
            bases = ancestry(program, Class(module, header.name, header))[1:]
            if any(isinstance(base, Class) and base.header is owner.header for base in bases):
                return True
    return False


def _classes_that_define(tree: ast.Module, name: str) -> list[ClassHeader]:
    return [
        class_header(node) for node in statements_below(tree) if isinstance(node, ast.ClassDef) and _defines(node, name)
    ]


def _defines(node: ast.ClassDef, name: str) -> bool:
    for inner in below(node):
        match inner:
            case ast.FunctionDef(name=own) | ast.AsyncFunctionDef(name=own) if own == name:
                return True
            case ast.Attribute(attr=own, ctx=ast.Store()) if own == name:
                return True
            case ast.Name(id=own, ctx=ast.Store()) if own == name:
                return True
    return False


# fmt: off
MODULE_NAMES = frozenset({
    "T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile",
    "cpu", "cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward", "get_buffer",
    "get_extra_state", "get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules", "mtia",
    "named_buffers", "named_children", "named_modules", "named_parameters", "parameters",
    "register_backward_hook", "register_buffer", "register_forward_hook", "register_forward_pre_hook",
    "register_full_backward_hook", "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "requires_grad_", "set_extra_state",
    "set_submodule", "share_memory", "state_dict", "to", "to_empty", "train", "training", "type", "xpu",
    "zero_grad", "_apply", "_buffers", "_modules", "_parameters", "__call__",
})
# fmt: on


_ON_NO_LAYER = re.compile(rb"\bself\.$|(?:^|[^\w.])(?:torch|numpy|np|transformers|ray|triton)\.[\w.]*\b[A-Z]\w*\.$")
"""Before the name that is set: on `self`, or on a class of another package."""


def registered(text: TextIndex, name: str) -> bool:
    """Whether some code registers a parameter or buffer by that name, or sets it on another object than `self`."""
    return text.some_mention(name, _registers)


def _registers(text: TextIndex, mention: Mention, name: str) -> bool:
    before, after = text.before(mention).rstrip(), text.after(mention, name, 20).lstrip(b"\"' ")
    if before.endswith((b'"', b"'")):
        bare = before.rstrip(b"\"'").rstrip()
        if not bare:
            return after.startswith(b",")
        # `self.register_buffer("name", ...)`, `replace_parameter(layer, "name", ...)`, `setattr(layer, "name", ...)`
        return bare.endswith((b"(", b",")) and any(word in before for word in (b"regist", b"setattr", b"replace_"))
    # `layer.name = ...`, set on a layer from outside. `torch.Tensor.name = ...` is no such: no class that is known
    # to lack the name inherits from another package's.
    return before.endswith(b".") and after[:1] == b"=" and after[1:2] != b"=" and not _ON_NO_LAYER.search(before)
