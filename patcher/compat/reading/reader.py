"""Read one file: a single walk over its syntax."""

from __future__ import annotations

import ast
import warnings

from patcher.compat.facts import FileFacts
from patcher.compat.model import Context, ImportOf, Use


def read_file(content: bytes, file: str) -> FileFacts:
    """What the file says. One that is no Python says so in `problem`."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError) as error:
        return FileFacts(file, module, problem=str(error))
    uses = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                uses += [Use(file, alias.lineno, ImportOf(alias.name, None), Context()) for alias in aliases]
            case ast.ImportFrom(module=str(name), level=0, names=aliases):
                uses += [Use(file, alias.lineno, ImportOf(name, alias.name), Context()) for alias in aliases]
            case _:
                pass
    return FileFacts(file, module, tuple(uses))
