"""The syntax of one file -> its outline: what its bodies import, mention and assign. Pure."""

from patcher.compat.outlining.drawing import draw
from patcher.compat.outlining.lightening import lighten
from patcher.compat.outlining.outline import Outline

__all__ = ["Outline", "draw", "lighten"]
