"""What statements bind, in files of a tree and of packages alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Imported:
    """`import module` (`name` is None) or `from module import name`, "*" for all names; `local` is what it binds."""

    local: str
    module: str
    name: str | None
    line: int
    whole: bool = True
    """False for `import a.b`, which binds `a` alone."""

    @property
    def dotted(self) -> str:
        """What the local name stands for."""
        return self.needed if self.whole else self.local

    @property
    def needed(self) -> str:
        """What must be there for the import to succeed: `a.b` for `import a.b`, `from a.b import *`."""
        return self.module if self.name in (None, "*") else f"{self.module}.{self.name}"


def imports(node: ast.Import | ast.ImportFrom, package: str | None = None) -> Iterator[Imported]:
    """What an import statement binds. `package` is where relative imports start; without it their dots stay."""
    if isinstance(node, ast.ImportFrom):
        written = "." * node.level + (node.module or "")
        module = written if package is None else absolute_module(package, written)
        for alias in node.names:
            yield Imported(alias.asname or alias.name, module, alias.name, alias.lineno)
    else:
        for alias in node.names:
            local = alias.asname or alias.name.partition(".")[0]
            yield Imported(local, alias.name, None, alias.lineno, whole=alias.asname is not None)


def absolute_module(package: str, written: str) -> str:
    """The module that an import names, dots in front included, by its full name.

    In `verl.trainer.main`, whose package is `verl.trainer`, `from ..utils import x` is from `verl.utils`.
    """
    name = written.lstrip(".")
    level = len(written) - len(name)
    if not level:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])
