"""One verdict a use."""

from __future__ import annotations

from patcher.compat.judging.calls import judge_call
from patcher.compat.judging.imports import judge_import
from patcher.compat.judging.members import judge_member
from patcher.compat.judging.overrides import judge_override
from patcher.compat.meaning import Universe
from patcher.compat.model import (
    Beside,
    CallOf,
    ConfigKey,
    EngineFlag,
    EnvironmentVariable,
    ImportOf,
    MemberOf,
    MethodOf,
    TextComparison,
    Use,
    Verdict,
)
from patcher.compat.registry import judge_flag, judge_key, judge_variable


def judge(use: Use, universe: Universe, baseline: Universe | None = None) -> Verdict:
    """Whether what a use needs is there.

    `baseline`, a release that the tree is known to work with, tells what positional arguments were meant for.
    """
    match use.need:
        case ImportOf() as need:
            return judge_import(use, need, universe, baseline)
        case MemberOf() as need:
            return judge_member(use, need, universe, baseline)
        case CallOf() as need:
            return judge_call(use, need, universe, baseline)
        case MethodOf() as need:
            return judge_override(use, need, universe)
        case EnvironmentVariable():
            return judge_variable(use, universe, baseline)
        case EngineFlag():
            return judge_flag(use, universe, baseline)
        case ConfigKey():
            return judge_key(use, universe, baseline)
        case TextComparison():
            return Beside()
