"""Places where a tree uses a release, found by a plain walk that shares nothing with `patcher.check`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Site:
    """`name` imported from `module`; what is done with it; the lines, from 1, on which a finding may stand."""

    file: str
    lines: tuple[int, int]
    module: str
    name: str
    is_import: bool = False
    """The statement that imports it; else what is done with it below."""
    member: str = ""
    keywords: tuple[tuple[str, int], ...] = ()
    positional: int = 0
    methods: tuple[tuple[str, int], ...] = ()
    """Methods that a class derived from it defines, with their lines; those that take any keyword left out."""

    @property
    def symbol(self) -> str:
        return f"{self.module}.{self.name}" + (f".{self.member}" if self.member else "")


def sites(root: Path, package: str) -> Iterator[Site]:
    """Imports from the package, and attributes, calls and subclasses of what they bind at a file's top level."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if package not in text:
            continue
        tree = ast.parse(text)
        file = path.relative_to(root.parent).as_posix()
        yield from _imports(tree, file, package)
        yield from _uses(tree, file, _bound(tree, package))


def _imports(tree: ast.Module, file: str, package: str) -> Iterator[Site]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _of(node.module, package):
            for alias in node.names:
                yield Site(file, (alias.lineno, alias.lineno), str(node.module), alias.name, is_import=True)


def _bound(tree: ast.Module, package: str) -> dict[str, tuple[str, str]]:
    """Names that one import at the top level binds, and nothing else in the file."""
    found: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _of(node.module, package):
            found |= {alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names}
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    taken = stored | {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    return {name: origin for name, origin in found.items() if name not in taken}


def _uses(tree: ast.Module, file: str, bound: dict[str, tuple[str, str]]) -> Iterator[Site]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function, args=args, keywords=words):
                owner, member = (
                    (function.value, function.attr) if isinstance(function, ast.Attribute) else (function, "")
                )
                if not isinstance(owner, ast.Name) or owner.id not in bound:
                    continue
                plain = not any(isinstance(argument, ast.Starred) for argument in args)
                given = tuple((word.arg, word.value.lineno) for word in words if word.arg)
                spread = any(word.arg is None for word in words)
                yield Site(
                    file,
                    (node.lineno, node.end_lineno or node.lineno),
                    *bound[owner.id],
                    member=member,
                    keywords=given,
                    positional=len(args) if plain and not spread else 0,
                )
            case ast.Attribute(value=ast.Name(id=name), attr=member) if name in bound:
                yield Site(file, (node.lineno, node.end_lineno or node.lineno), *bound[name], member=member)
            case ast.ClassDef(bases=bases, body=body):
                for base in bases:
                    if isinstance(base, ast.Name) and base.id in bound:
                        methods = tuple(
                            (n.name, n.lineno) for n in body if isinstance(n, ast.FunctionDef) and n.args.kwarg is None
                        )
                        if methods:
                            yield Site(file, (node.lineno, node.end_lineno or 0), *bound[base.id], methods=methods)
            case _:
                pass


def _of(module: str | None, package: str) -> bool:
    return module is not None and (module == package or module.startswith(package + "."))
