"""Draw the outline of a file: one walk over its statements."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Sequence

from patcher.compat.conditions.outline import Assigned, Body, Family, Import, Outline, Step
from patcher.compat.conditions.written import caught, is_typing, leaves, may_be_of_versions, may_name, strings, written
from patcher.compat.model import Condition, Otherwise, When

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Conditions = tuple[Condition, ...]


def module_name(file: str) -> str:
    """`verl/a/__init__.py` -> `verl.a`."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def draw(content: bytes, file: str) -> Outline:
    """The outline of a file; empty if it is no Python."""
    outline = Outline(file, module_name(file), {"": Body("", 1, 1 << 30)}, {}, [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return outline
    _Walk(outline).block(tree.body, outline.bodies[""], (), "")
    return outline


class _Walk:
    def __init__(self, outline: Outline) -> None:
        self.outline = outline

    def block(self, body: Sequence[ast.stmt], into: Body, conditions: _Conditions, owner: str) -> None:
        """`owner`: the class whose body this is, "" otherwise."""
        for node in body:
            self.statement(node, into, conditions, owner)
            match node:
                case ast.If(test=test, body=inner, orelse=[]) if leaves(inner):
                    conditions = (*conditions, When(test, False))
                case ast.If(test=test, orelse=other) if other and leaves(other):
                    conditions = (*conditions, When(test, True))
                case ast.Assert(test=test):
                    conditions = (*conditions, When(test, True))
                case _:
                    pass

    def statement(self, node: ast.stmt, into: Body, conditions: _Conditions, owner: str) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node, into, conditions)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, into, conditions, owner)
            case ast.ClassDef():
                self._class(node, into, conditions)
            case ast.If(test=test):
                self._mention(test, into, conditions)
                if not is_typing(test):
                    self.block(node.body, into, (*conditions, When(test, True)), owner)
                self.block(node.orelse, into, (*conditions, When(test, False)), owner)
            case ast.Try():
                self._try(node, into, conditions, owner)
            case ast.For() | ast.AsyncFor():
                self._mention(node.iter, into, conditions)
                self._assign([node.target], None, into, conditions, owner)
                self.block([*node.body, *node.orelse], into, conditions, owner)
            case ast.While(test=test):
                self._mention(test, into, conditions)
                self.block([*node.body, *node.orelse], into, conditions, owner)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._mention(item.context_expr, into, conditions)
                    if item.optional_vars is not None:
                        self._assign([item.optional_vars], None, into, conditions, owner)
                self.block(node.body, into, conditions, owner)
            case ast.Match(subject=subject, cases=cases):
                self._mention(subject, into, conditions)
                for case in cases:
                    self.block(case.body, into, conditions, owner)
            case ast.Assign(targets=targets, value=value):
                self._mention(value, into, conditions)
                self._assign(targets, value, into, conditions, owner)
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                if value is not None:
                    self._mention(value, into, conditions)
                    self._assign([target], value, into, conditions, owner)
                if isinstance(target, ast.Name):
                    into.annotations.setdefault(target.id, annotation)
            case ast.AugAssign(target=target, value=value):
                self._mention(value, into, conditions)
                self._assign([target], None, into, conditions, owner)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._mention(child, into, conditions)

    def _try(self, node: ast.Try, into: Body, conditions: _Conditions, owner: str) -> None:
        self.block(node.body, into, conditions, owner)
        last = node.body[-1].end_lineno or node.body[-1].lineno
        for handler in node.handlers:
            condition = Otherwise(node.body[0].lineno, last, caught(handler.type))
            self.block(handler.body, into, (*conditions, condition), owner)
        self.block([*node.orelse, *node.finalbody], into, conditions, owner)

    def _import(self, node: ast.Import | ast.ImportFrom, into: Body, conditions: _Conditions) -> None:
        step = _step(into, conditions)
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                self._bind(Import(local, alias.name, None, alias.lineno, into.qualname), step, into)
            return
        module = node.module or ""
        if node.level:
            parts = self.outline.package.split(".")
            kept = parts[: len(parts) - node.level + 1]
            module = ".".join([*kept, *([module] if module else [])])
        for alias in node.names:
            if alias.name == "*":
                self.outline.stars.append(module)
                step.imports.append(Import("", module, None, alias.lineno, into.qualname))
            else:
                found = Import(alias.asname or alias.name, module, alias.name, alias.lineno, into.qualname)
                self._bind(found, step, into)

    @staticmethod
    def _bind(found: Import, step: Step, into: Body) -> None:
        step.imports.append(found)
        into.assigned.setdefault(found.local, []).append(Assigned(found, step.conditions))

    def _function(self, node: _Function, into: Body, conditions: _Conditions, owner: str) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for part in (*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)):
            self._mention(part, into, conditions)
        name = f"{owner}.{node.name}" if owner else f"{into.qualname}.{node.name}" if into.qualname else node.name
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(
            zip([a.arg for a in plain[len(plain) - len(arguments.defaults) :]], arguments.defaults, strict=True)
        )
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        body = Body(
            name,
            node.lineno,
            node.end_lineno or node.lineno,
            tuple(argument.arg for argument in every),
            {argument.arg: argument.annotation for argument in every if argument.annotation is not None},
            defaults | {argument.arg: default for argument, default in pairs if default is not None},
            tuple(written(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list),
            owner,
            conditions=conditions,
        )
        if name in self.outline.bodies and conditions:
            self._merge(self.outline.bodies[name], body)
        self.outline.bodies[name] = body
        if owner:
            self.outline.classes[owner].methods[node.name] = name
        self.block(node.body, body, (), "")

    @staticmethod
    def _merge(old: Body, new: Body) -> None:
        """Two definitions under different conditions: what both mention counts."""
        new.steps += old.steps

    def _class(self, node: ast.ClassDef, into: Body, conditions: _Conditions) -> None:
        for part in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self._mention(part, into, conditions)
        name = f"{into.qualname}.{node.name}" if into.qualname else node.name
        bases = tuple(written(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
        marks = [mark for mark in node.decorator_list if "dataclass" not in ast.dump(mark)]
        given = (*(text for mark in marks for text in strings(mark)), *(written(m) for m in marks[:1]))
        self.outline.classes[name] = Family(name, bases, given if marks else None)
        self.block(node.body, into, conditions, name)

    def _assign(
        self, targets: Iterable[ast.expr], value: ast.expr | None, into: Body, conditions: _Conditions, owner: str
    ) -> None:
        for target in targets:
            match target:
                case ast.Name(id=name) if owner:
                    family = self.outline.classes[owner]
                    family.attributes.setdefault(name, []).append(("", Assigned(value, conditions)))
                case ast.Name(id=name):
                    into.assigned.setdefault(name, []).append(Assigned(value, conditions))
                case ast.Attribute(value=ast.Name(id="self"), attr=name) if into.owner:
                    attributes = self.outline.classes[into.owner].attributes
                    attributes.setdefault(name, []).append((into.qualname, Assigned(value, conditions)))
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    values: Sequence[ast.expr | None] = [None] * len(parts)
                    if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                        values = value.elts
                    for part, one in zip(parts, values, strict=True):
                        self._assign([part], one, into, conditions, owner)
                case _:
                    pass

    def _mention(self, node: ast.expr, into: Body, conditions: _Conditions) -> None:
        """Note what an expression calls and names."""
        step = _step(into, conditions)
        waiting: list[ast.AST] = [node]
        while waiting:
            one = waiting.pop()
            match one:
                case ast.Name(id=name):
                    step.named.add(name)
                case ast.Attribute(value=value):
                    step.named.add(written(one))
                    if not isinstance(value, ast.Name):
                        waiting.append(value)
                case ast.Call(func=func):
                    step.called.add(written(func))
                    waiting += [*one.args, *(word.value for word in one.keywords)]
                    if isinstance(func, ast.Attribute):
                        waiting.append(func.value)
                    elif not isinstance(func, ast.Name):
                        waiting.append(func)
                case ast.Constant(value=str() as text):
                    if may_name(text):
                        step.texts.add((text,))
                case ast.Compare(ops=ops) if isinstance(ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    if may_be_of_versions(one):
                        step.orderings.append(one)
                    waiting += [one.left, *one.comparators]
                case ast.IfExp(test=test, body=body, orelse=orelse):
                    self._mention(body, into, (*conditions, When(test, True)))
                    self._mention(orelse, into, (*conditions, When(test, False)))
                    step = _step(into, conditions)
                    waiting.append(test)
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        if isinstance(value, ast.Constant) and isinstance(value.value, str) and may_name(value.value):
                            step.texts.add((value.value, *strings(key)))
                        else:
                            waiting += [part for part in (key, value) if part is not None]
                case _:
                    waiting += ast.iter_child_nodes(one)


def _step(into: Body, conditions: _Conditions) -> Step:
    if not into.steps or into.steps[-1].conditions is not conditions:
        for step in into.steps[-4:]:
            if len(step.conditions) == len(conditions) and all(
                a is b for a, b in zip(step.conditions, conditions, strict=True)
            ):
                return step
        into.steps.append(Step(conditions))
    return into.steps[-1]
