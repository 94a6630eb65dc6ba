"""Does a use hold on a target? need x universe -> verdict. Pure."""

from patcher.check.rules.verdict import judge

__all__ = ["judge"]
