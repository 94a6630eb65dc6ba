"""Settings that a file makes for others: environment variables that it sets, and flags of `vllm serve` that it passes.

Both look at the syntax of the whole file, and ask the walk only under which conditions a node runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from patcher.analysis.bindings import imports
from patcher.analysis.syntax import FunctionNode, below, last_name, own_nodes, text_in
from patcher.analysis.uses import Context, EngineFlag, EnvironmentVariable, Use

_SETS_VARIABLES = (b"environ", b"env_vars", b"setenv", b"putenv", b"ENV")
_CONTAINER = re.compile(r"(?i)(?:\w*_)?(?:env|envs|environ|environment|env_?vars?|env_?variables)(?:_\w+)?")
_SETTERS = frozenset({"setenv", "putenv", "set_env", "set_env_var", "temp_env_var"})
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_\w+|[A-Z]{4,}")


def environment_uses(
    content: bytes, tree: ast.Module, file: str, context_of: Callable[[ast.AST], Context]
) -> Iterator[Use]:
    """The variables that the file sets under names that are spelled out, each where its name stands.

    `context_of` is asked for statements, calls and dicts.
    """
    if any(word in content for word in _SETS_VARIABLES):
        reader = _VariableReader(file, context_of, _constants(tree))
        reader.read(tree)
        yield from reader.uses


@dataclass(slots=True)
class _VariableReader:
    file: str
    context_of: Callable[[ast.AST], Context]
    constants: dict[str, str]
    uses: list[Use] = field(default_factory=list)
    _dicts: set[int] = field(default_factory=set)

    def read(self, tree: ast.Module) -> None:
        for node in below(tree):
            match node:
                case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=items) | ast.List(elts=items)):
                    self._looped(node, name, items)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assigned(node, target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assigned(node, target, value)
                # `os.environ |= {...}`
                case ast.AugAssign(target=target, op=ast.BitOr(), value=value) if _is_container(target):
                    self._items(value)
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        # `ray.init(runtime_env={"env_vars": {...}})`
                        if isinstance(key, ast.Constant) and key.value in ("env_vars", "env"):
                            self._items(value)
                case ast.Call():
                    self._called(node)

    def _assigned(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Subscript(value=container, slice=key) if _is_container(container):
                self._set(statement, key, value)
                self._items(value)
            case ast.Name() | ast.Attribute() if _is_container(target):
                self._items(value)

    def _looped(self, loop: ast.For, name: str, items: list[ast.expr]) -> None:
        """`for key in ("A", "B"): os.environ[key] = …`"""
        for node in ast.walk(loop):
            match node:
                case ast.Assign(targets=[ast.Subscript(value=container, slice=ast.Name(id=key))]) if (
                    key == name and _is_container(container)
                ):
                    for item in items:
                        self._set(node, item, None)

    def _called(self, call: ast.Call) -> None:
        match call:
            case ast.Call(func=ast.Attribute(value=container, attr="setdefault"), args=[key, value]) if _is_container(
                container
            ):
                self._set(call, key, value)
            case ast.Call(func=ast.Attribute(value=container, attr="update"), args=arguments) if _is_container(
                container
            ):
                self._keywords(call)
                for argument in arguments:
                    self._items(argument)
            # `mock.patch.dict(os.environ, {...})`
            case ast.Call(func=ast.Attribute(attr="dict"), args=[container, changed, *_]) if _is_container(container):
                self._items(changed)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[key, *rest]) if name in _SETTERS:
                self._set(call, key, rest[0] if rest else None)
        for keyword in call.keywords:
            # `subprocess.run(..., env={...})`
            if keyword.arg in ("env", "env_vars"):
                self._items(keyword.value)

    def _items(self, value: ast.expr) -> None:
        """The variables that a dict literal holds, however it is put together."""
        match value:
            case ast.Dict(keys=keys, values=values) if id(value) not in self._dicts:
                self._dicts.add(id(value))
                for key, item in zip(keys, values, strict=True):
                    if key is None:
                        self._items(item)
                    elif isinstance(item, ast.Dict):
                        continue
                    else:
                        self._set(value, key, item)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self._items(left)
                self._items(right)
            case ast.IfExp(body=body, orelse=orelse):
                self._items(body)
                self._items(orelse)
            case ast.Call(func=ast.Name(id="dict"), args=arguments):
                self._keywords(value)
                for argument in arguments:
                    self._items(argument)

    def _keywords(self, call: ast.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._add(call, keyword.arg, keyword.lineno, keyword.value)

    def _set(self, where: ast.AST, key: ast.expr, value: ast.expr | None) -> None:
        match key:
            case ast.Constant(value=str(name)):
                self._add(where, name, key.lineno, value)
            # `NAME = "VLLM_X"` at module level, then `os.environ[NAME] = "1"`.
            case ast.Name(id=constant) if constant in self.constants:
                self._add(where, self.constants[constant], key.lineno, value)

    def _add(self, where: ast.AST, name: str, line: int, value: ast.expr | None) -> None:
        # Keys in lower case are no variables: an `env` dict of a reinforcement-learning environment has such.
        if _VARIABLE.fullmatch(name):
            self.uses.append(Use(self.file, line, EnvironmentVariable(name, text_in(value)), self.context_of(where)))


def _is_container(node: ast.expr) -> bool:
    """Whether an expression is an environment by its name: `os.environ`, `runtime_env["env_vars"]`, `worker_env`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _CONTAINER.fullmatch(name) is not None and not name.endswith(("_keys", "_names"))
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in ("env_vars", "env")
        case _:
            return False


def _constants(tree: ast.Module) -> dict[str, str]:
    """Names that the module's body sets to a text."""
    return {
        target.id: text
        for node in tree.body
        if isinstance(node, ast.Assign) and (text := text_in(node.value)) is not None
        for target in node.targets
        if isinstance(target, ast.Name)
    }


_PASSES_FLAGS = re.compile(rb"""f["']--\{|["']serve["']|vllm\.entrypoints\.openai\.api_server""")
_TO_ARGUMENTS = re.compile(r"\w*(?:cli_args|cmd_args|command_line|argv)\w*")
_OPTION = re.compile(r"--[A-Za-z][\w.-]*(?:=.*)?", re.DOTALL)
_SERVERS = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main")


def engine_flag_uses(
    content: bytes, tree: ast.Module, file: str, context_of: Callable[[ast.AST], Context]
) -> Iterator[Use]:
    """The flags, each where its name stands. `context_of` is asked for statements, calls and dicts."""
    # Cheap tests of the text come first: few files pass flags.
    if b"vllm" not in content or _PASSES_FLAGS.search(content) is None:
        return
    nodes = below(tree)
    if _imports_vllm(nodes):
        functions = {node: own_nodes(node) for node in nodes if isinstance(node, FunctionNode)}
        given = _parameters_given(functions)
        for function, own in functions.items():
            reader = _FlagReader(file, context_of, own)
            reader.read(given.get(function.name, frozenset()))
            yield from reader.uses
    yield from _ArgumentLists(file, context_of).read(nodes)


def _imports_vllm(nodes: Iterable[ast.AST]) -> bool:
    statements = (node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return any(one.module.partition(".")[0] == "vllm" for node in statements for one in imports(node))


def _flagged(nodes: Iterable[ast.AST], given: Iterable[str]) -> set[str]:
    """The local names of dicts whose keys become options, or go into a dict whose do, in a function of these nodes."""
    found = set(given)
    for node in nodes:
        match node:
            # `for key, value in args.items(): command += [f"--{key}", ...]`
            case ast.For(iter=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="items"))) if _writes_options(
                node
            ):
                found.add(name)
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Call(func=func, args=[ast.Name(id=name), *_])) if (
                _is_serve(left) or _TO_ARGUMENTS.fullmatch(last_name(func))
            ):
                found.add(name)
            # `command.extend(to_cli_args(args))`
            case ast.Call(func=ast.Attribute(attr="extend"), args=[ast.Call(func=func, args=[ast.Name(id=name), *_])]):
                if _TO_ARGUMENTS.fullmatch(last_name(func)):
                    found.add(name)
    # Dicts are poured into each other: `args.update(defaults)`. Repeated until no new name comes.
    while more := {name for node in nodes for name in _merged_into(node, found)} - found:
        found |= more
    return found


def _merged_into(node: ast.AST, found: set[str]) -> Iterator[str]:
    """Names whose content goes into one of `found`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=into)], value=ast.Dict(keys=keys, values=values)) if into in found:
            for key, value in zip(keys, values, strict=True):
                if key is None and isinstance(value, ast.Name):
                    yield value.id
        case ast.Call(func=ast.Attribute(value=ast.Name(id=into), attr="update"), args=[ast.Name(id=name)]) if (
            into in found
        ):
            yield name


def _writes_options(loop: ast.For) -> bool:
    """Whether the loop writes `f"--{key}"`."""
    return any(
        isinstance(node, ast.JoinedStr)
        and isinstance(node.values[0], ast.Constant)
        and str(node.values[0].value).endswith("--")
        for node in ast.walk(loop)
        if isinstance(node, ast.JoinedStr) and node.values
    )


def _is_serve(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.List)
        and bool(node.elts)
        and any(isinstance(item, ast.Constant) and item.value == "serve" for item in node.elts[:2])
    )


def _parameters_given(functions: Mapping[FunctionNode, list[ast.AST]]) -> dict[str, frozenset[str]]:
    """Parameters of the file's own functions that are handed such a dict."""
    by_name = {function.name: function for function in functions}
    found: dict[str, set[str]] = {}
    for nodes in functions.values():
        flagged = _flagged(nodes, ())
        for node in nodes:
            if isinstance(node, ast.Call) and (called := by_name.get(last_name(node.func))) is not None:
                names = [argument.arg for argument in called.args.args if argument.arg not in ("self", "cls")]
                for argument, name in zip(node.args, names, strict=False):
                    if isinstance(argument, ast.Name) and argument.id in flagged:
                        found.setdefault(called.name, set()).add(name)
    return {name: frozenset(parameters) for name, parameters in found.items()}


@dataclass(slots=True)
class _FlagReader:
    file: str
    context_of: Callable[[ast.AST], Context]
    nodes: list[ast.AST]
    """Those of one function."""
    uses: list[Use] = field(default_factory=list)

    def read(self, given: frozenset[str]) -> None:
        flagged = _flagged(self.nodes, given)
        if not flagged:
            return
        for node in self.nodes:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                    | ast.AugAssign(target=ast.Name(id=name), op=ast.BitOr(), value=value)
                ) if name in flagged:
                    self._keys(value)
                case (
                    ast.Assign(
                        targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key)) as place)],
                        value=value,
                    )
                    | ast.Call(
                        func=ast.Attribute(value=ast.Name(id=name), attr="setdefault"),
                        args=[ast.Constant(value=str(key)) as place, value],
                    )
                ) if name in flagged:
                    self._add(node, key, place.lineno, value)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=arguments) if (
                    name in flagged
                ):
                    for argument in arguments:
                        self._keys(argument)
                    self._keywords(node)

    def _keys(self, value: ast.expr) -> None:
        match value:
            case ast.Dict(keys=keys, values=values):
                for key, item in zip(keys, values, strict=True):
                    if key is None:
                        self._keys(item)
                    elif (name := text_in(key)) is not None:
                        self._add(value, name, key.lineno, item)
            case ast.Call(func=ast.Name(id="dict")):
                self._keywords(value)

    def _keywords(self, call: ast.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._add(call, keyword.arg, keyword.lineno, keyword.value)

    def _add(self, where: ast.AST, name: str, line: int, value: ast.expr) -> None:
        """Note a key as a flag. A switch whose value is False or None is left off the command line."""
        if not (isinstance(value, ast.Constant) and value.value in (False, None)):
            self.uses.append(Use(self.file, line, EngineFlag(name, option=True), self.context_of(where)))


@dataclass(slots=True)
class _ArgumentLists:
    """Options spelled out in an argument list that begins with `serve`, or runs one of vLLM's servers."""

    file: str
    context_of: Callable[[ast.AST], Context]

    def read(self, nodes: Iterable[ast.AST]) -> Iterator[Use]:
        names: set[str] = set()
        lists: list[tuple[ast.AST, ast.expr]] = []
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_command(value):
                    names.add(name)
                    lists.append((node, value))
                case ast.Call(args=[value, *_]) if _is_command(value):
                    lists.append((node, value))
        for node in nodes:
            match node:
                case (
                    ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"), args=[value])
                    | ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value)
                ) if name in names:
                    lists.append((node, value))
        for where, value in lists:
            for line, text in _texts(value):
                if _OPTION.fullmatch(text):
                    name = text[2:].partition("=")[0].replace("-", "_")
                    yield Use(self.file, line, EngineFlag(name, option=True), self.context_of(where))


def _is_command(value: ast.expr) -> bool:
    texts = [text for _, text in _texts(value)]
    return isinstance(value, ast.List | ast.BinOp) and (
        any(text in _SERVERS for text in texts) or texts[:1] == ["serve"] or texts[:2] == ["vllm", "serve"]
    )


def _texts(value: ast.expr) -> list[tuple[int, str]]:
    """The texts that stand in a list, in order, with their lines."""
    match value:
        case ast.Constant(value=str(text)):
            return [(value.lineno, text)]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [text for item in items if not isinstance(item, ast.List) for text in _texts(item)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_texts(left), *_texts(right)]
        case _:
            return []
