"""Leave out one positional argument of a call."""

from __future__ import annotations

from patcher.check.drafts.callees import Callee
from patcher.check.drafts.calls import Site, text_of, written
from patcher.rewrite.edits import Replace


def without_position(file: str, site: Site, at: int, old: Callee, new: Callee) -> Replace | None:
    """The edit, if the other positional arguments then stand where their parameters are now."""
    passed = site.positional
    if any(argument.star for argument in passed[: at + 1]):
        return None
    left = [name for index, name in enumerate(old.positional[: len(passed)]) if index != at]
    if tuple(left) != new.positional[: len(left)]:
        return None
    called = written(site.code, site.call.func)
    before = [f"$ARG{index + 1}" for index in range(at)]
    pattern = ", ".join([*before, text_of(site.code, passed[at].value), "$$$REST"])
    return Replace(
        file=file,
        within=site.function or None,
        pattern=f"{called}({pattern})",
        replacement=f"{called}({', '.join([*before, '$$$REST'])})",
    )
