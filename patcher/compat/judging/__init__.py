"""Does a use hold on a target? need x universe -> verdict. Pure."""

from patcher.compat.judging.verdict import judge

__all__ = ["judge"]
