"""Names that a module or a class may have though no statement of it shows them: there nothing is certainly absent.

    for name in dir(_C):
        globals()[name] = getattr(_C, name)

The ways of binding a name that are looked for are those that packages of the field use. Only the syntax is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from patcher.analysis.bindings import imports
from patcher.analysis.statement_walk import replaces_module
from patcher.analysis.symbols.module_summary import ModuleSummary
from patcher.analysis.syntax import below, for_type_checkers, last_name, parts

_HINTS = (
    b"globals",
    b"vars(",
    b"locals",
    b"sys.modules",
    b"exec(",
    b"__dict__",
    b"import_module(",
    b"__import__(",
    b"setattr(",
)
"""One of these stands in the text of every module that stores into its own namespace by a computed name."""
_NAMED_HINTS = (b"global ", b":=", b"globals()")
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_READERS = frozenset({"dict", "dir", "eval", "frozenset", "getattr", "getmembers", "get_type_hints", "getsource",
                      "getsourcefile", "hasattr", "id", "isinstance", "iter", "len", "list", "print", "repr", "set",
                      "signature", "sorted", "tuple", "type"})  # fmt: skip
"""Functions that only read a namespace that they are given. `eval` binds a name only with `:=`."""


def may_compute(summary: ModuleSummary, module: str, name: str) -> bool:
    """Whether the module of that dotted name may bind a name though no statement of it shows that."""
    if may_compute_names(summary.text) and summary.asked(_stores_anything, module):
        return True
    named = name.encode() in summary.text and any(hint in summary.text for hint in _NAMED_HINTS)
    return named and name in summary.asked(_named)


def may_compute_names(text: bytes) -> bool:
    """Whether the text, unparsed, leaves open that its module stores into its own namespace by a computed name."""
    return any(hint in text for hint in _HINTS)


def may_put_submodules(text: bytes) -> bool:
    """Whether the text, unparsed, leaves open that `puts_submodules` of its module holds."""
    return b"sys.modules[f" in text or b"sys.modules[__name__ +" in text


def puts_submodules(tree: ast.Module, module: str) -> bool:
    """Whether modules are stored as ones below this one, by computed names: `sys.modules[f"pkg.old.{name}"] = new`."""
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "modules"
        and _begins_with(node.slice, module)
        for node in below(tree)
    )


def _begins_with(key: ast.expr, module: str) -> bool:
    match key:
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            return start == f"{module}."
        case ast.JoinedStr(values=[ast.FormattedValue(value=ast.Name(id="__name__")), *_]):
            return True
        case ast.BinOp(left=ast.Name(id="__name__"), op=ast.Add()):
            return True
        case ast.BinOp(left=ast.BinOp() as left):
            return _begins_with(left, module)
        case _:
            return False


def _named(tree: ast.Module) -> frozenset[str]:
    """Names that functions bind by `global name` or are given, those that the body binds by `name := value`, and those
    that a loop stores by a list."""
    found = {name for _, names in _by_listed_names(tree) for name in names}
    for node in below(tree):
        match node:
            case ast.Global(names=names):
                found.update(names)
            case ast.Call(args=[ast.Constant(value=str(name)), namespace, *_]) if _is_globals(namespace):
                found.add(name)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
        # What a function binds that way is its own.
        waiting += [one for one in parts(node) if not isinstance(one, _OWN_SCOPE)]
    return frozenset(found)


def _by_listed_names(tree: ast.Module) -> Iterator[tuple[ast.Subscript, tuple[str, ...]]]:
    """The stores by names of a list that stands in the loop's head, with these names.

    for name in ["float96", "float128"]:
        globals()[name] = getattr(_core, name)
    """
    for loop in below(tree):
        match loop:
            case ast.For(target=ast.Name(id=local), iter=ast.List(elts=values) | ast.Tuple(elts=values)):
                names = tuple(one.value for one in values if isinstance(one, ast.Constant) and type(one.value) is str)
                inside = [node for part in loop.body for node in below(part)]
                named = (one for one in inside if isinstance(one, ast.Name) and one.id == local)
                bound_again = any(not isinstance(one.ctx, ast.Load) for one in named)
                for node in inside if len(names) == len(values) and not bound_again else ():
                    match node:
                        case ast.Subscript(value=value, slice=ast.Name(id=key)) if key == local and _is_globals(value):
                            yield node, names
            case _:
                pass


def _stores_anything(tree: ast.Module, module: str) -> bool:
    listed = {node for node, _ in _by_listed_names(tree)}
    nodes = [node for node in _nodes(tree) if node not in listed]
    # `from numpy import dtypes` in numpy/dtypes.py, and `setattr(dtypes, name, value)`
    aliases = {
        one.local for node in nodes if isinstance(node, ast.ImportFrom) for one in imports(node) if one.dotted == module
    }
    # `this = sys.modules[__name__]` and `namespace = globals()`, stored into later.
    aliases |= {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and (_is_namespace(node.value, ()) or _is_itself(node.value, ()))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(_stores(node, aliases) for node in nodes)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        for node in parts(waiting.pop()):
            match node:
                case ast.FunctionDef(name="__getattr__" | "__dir__"):
                    continue  # What these store they also return, and whoever resolves names follows them.
                case ast.If(test=test, orelse=orelse) if for_type_checkers(test) and replaces_module(orelse):
                    continue  # The module that takes this one's place serves what type checkers are shown, and no more.
            yield node
            waiting.append(node)


def _stores(node: ast.AST, aliases: Iterable[str]) -> bool:
    match node:
        # globals()[name] = value, sys.modules[__name__] = Lazy()
        case ast.Subscript(value=value, ctx=ast.Store()):
            return _is_namespace(value, aliases) or _is_itself(node, ())
        # sys.modules[__name__].__class__ = Lazy
        case ast.Attribute(value=value, ctx=ast.Store()):
            return _is_itself(value, ())
        case ast.Call(func=ast.Attribute(value=value, attr="update" | "setdefault" | "__setitem__")) if _is_namespace(
            value, aliases
        ):
            return True
        # setattr(sys.modules[__name__], name, value)
        case ast.Call(func=ast.Name(id="setattr"), args=[value, *_]):
            return _is_itself(value, aliases)
        case ast.Call(func=ast.Name(id="exec")):
            return True
        # LazyLoader("models", globals(), "pkg.models") stores under the name that it is given.
        case ast.Call(args=[ast.Constant(value=str()), namespace, *_]) if _is_globals(namespace):
            return False
        # install(globals()): what the function stores there is not known.
        case ast.Call(func=func, args=args, keywords=words):
            given = [*args, *(word.value for word in words if word.arg)]
            return last_name(func) not in _READERS and any(_is_globals(one) or _is_itself(one, ()) for one in given)
        case ast.AugAssign(target=ast.Call() as target):
            return _is_namespace(target, aliases)
        case _:
            return False


def _is_globals(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "globals"


def _is_namespace(node: ast.expr, aliases: Iterable[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="globals" | "vars" | "locals"), args=[]):
            return True
        case ast.Call(func=ast.Name(id="vars"), args=[value]):
            return _is_itself(value, aliases)
        case ast.Attribute(value=value, attr="__dict__"):
            return _is_itself(value, aliases)
        case ast.Name(id=name):
            return name in aliases
        case _:
            return False


def _is_itself(node: ast.AST, aliases: Iterable[str]) -> bool:
    """`sys.modules[__name__]`: the module's own entry, not one of those that a lazy loader makes."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Name(id="__name__")):
            return True
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="modules"), attr="get"), args=[ast.Name(id=name), *_]
        ):
            return name == "__name__"
        case ast.Call(func=func, args=[ast.Name(id="__name__")]):
            return last_name(func) in ("import_module", "__import__")
        case ast.Name(id=name):
            return name in aliases
        case _:
            return False


def body_computes_names(owner: ast.ClassDef) -> bool:
    """Whether a class's body itself stores by a computed name: `vars()[name] = value` in a loop."""
    body = (node for node in owner.body if not isinstance(node, _OWN_SCOPE))
    return any(_stores(inner, ()) for node in body for inner in below(node))


def sets_by_computed_names(summary: ModuleSummary, owner: str) -> bool:
    """Whether the module sets attributes on a class of its own by computed names: `setattr(Tensor, name, method)`."""
    if b"setattr(" not in summary.text:
        return False
    call = rb"\bsetattr\(\s*%b\s*,\s*[^\s\"']" % owner.encode()
    return re.search(call, summary.text) is not None and owner in summary.asked(_set_by_computed_names)


def _set_by_computed_names(tree: ast.Module) -> frozenset[str]:
    return frozenset(
        node.args[0].id
        for node in below(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and len(node.args) == 3
        and isinstance(node.args[0], ast.Name)
        and not isinstance(node.args[1], ast.Constant)
    )
