"""The plan for a session's tree, in which `check` has a say of records that find no place, or only some."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from patcher.check.tried import newest_tried
from patcher.plan.planning import plan_apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from patcher.check.causes import Causes
    from patcher.check.plan_cache import PlanCache
    from patcher.plan.inputs import PlanInputs, Request
    from patcher.plan.outcome import Plan
    from patcher.session.session import Session


def kept_plan(cache: PlanCache, inputs: PlanInputs, lasting: Callable[[], bool], *, elsewhere: bool) -> Plan:
    """The plan for the tree as `plan_on_tree` makes it, from the user's cache where it is the same as before.

    `lasting` tells whether what the inputs' lookup has answered stays true as long as the versions do.
    """
    plan = cache.read(inputs, elsewhere=elsewhere)
    if plan is None:
        plan = plan_on_tree(cache.session, cache.request, inputs, elsewhere=elsewhere)
        if lasting():
            cache.keep(plan, inputs, elsewhere=elsewhere)
    return plan


def plan_on_tree(session: Session, request: Request, inputs: PlanInputs, *, elsewhere: bool = False) -> Plan:
    """The plan for the tree. `elsewhere`: the environment of the inputs is another machine's."""

    @cache
    def causes() -> Causes:
        # Most plans ask nothing of `check`, whose modules take longer to load than a small plan takes.
        from patcher.check.causes import Causes

        base = {path: state.base for path, state in inputs.files.items() if state.base is not None}
        return Causes(session.tree.root, base, inputs.environment, elsewhere=elsewhere)

    known = replace(inputs, remaining=lambda record: causes().remaining(record), newest=newest_tried())
    plan = plan_apply(session.records, request, known)
    session.keep_answers()
    return plan
