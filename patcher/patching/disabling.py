"""Records that are left out from now on: `apply --skip ID --remember` writes them into `disable` of uky-patch.toml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.patching.applying import Order, apply, preview
from patcher.patching.result import ApplyResult
from patcher.session.config_edits import with_items

if TYPE_CHECKING:
    from patcher.session.session import Session


def apply_and_disable(session: Session, order: Order, *, dry_run: bool) -> ApplyResult:
    """Apply, or preview; where the order says so, what it skips is left out from now on, if the rest can be applied.

    Raises what `apply` does, RecordError where uky-patch.toml cannot be edited safely, TreeError where not written.
    """
    if not order.remember:
        return preview(session, order) if dry_run else apply(session, order)
    config = session.config
    ids = [record.id for record in session.records if record.id in order.request.skipped]
    missing = tuple(name for name in ids if name not in config.disable)
    change = with_items(session.tree.root, "disable", ids)
    remembered = replace(config, disable=(*config.disable, *missing), root=session.tree.root)
    session = replace(session, given_config=remembered)
    request = replace(order.request, skipped=frozenset(), disabled=order.request.disabled | set(ids))
    asked = replace(order, request=request)
    done = preview(session, asked)
    if dry_run or done.failed:
        return replace(done, settings=change.texts)
    change.write()
    try:
        done = apply(session, asked)
    except BaseException:
        change.take_back()
        raise
    if done.failed:
        change.take_back()
    return replace(done, settings=change.texts)
