"""Leave out one positional argument of a call."""

from __future__ import annotations

import ast

from patcher.check.drafts.callees import Callee
from patcher.check.drafts.calls import Site
from patcher.rewrite.edits import Replace


def without_position(file: str, site: Site, at: int, old: Callee, new: Callee) -> Replace | None:
    """The edit, if the other positional arguments then stand where their parameters are now."""
    call = site.call
    if any(isinstance(argument, ast.Starred) for argument in call.args[: at + 1]):
        return None
    left = [name for index, name in enumerate(old.positional[: len(call.args)]) if index != at]
    if tuple(left) != new.positional[: len(left)]:
        return None
    called = ast.unparse(call.func)
    before = [f"$ARG{index + 1}" for index in range(at)]
    pattern = ", ".join([*before, site.code.segment(call.args[at]), "$$$REST"])
    return Replace(
        file=file,
        within=site.function or None,
        pattern=f"{called}({pattern})",
        replacement=f"{called}({', '.join([*before, '$$$REST'])})",
    )
