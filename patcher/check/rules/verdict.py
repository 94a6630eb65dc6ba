"""One verdict a use."""

from __future__ import annotations

from patcher.analysis.meaning import Universe
from patcher.analysis.model import (
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
from patcher.check.registry import judge_flag, judge_key, judge_variable
from patcher.check.rules.calls import judge_call
from patcher.check.rules.imports import judge_import
from patcher.check.rules.members import judge_member
from patcher.check.rules.overrides import judge_override


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
