"""The syntax of one file -> its outline: what its bodies import, mention and assign. Pure."""

from patcher.analysis.outlining.drawing import draw
from patcher.analysis.outlining.lightening import lighten
from patcher.analysis.outlining.outline import Outline

__all__ = ["Outline", "draw", "lighten"]
