"""When does a use run? Version tests, feature tests, `try`: evaluated for one target without running the tree."""

from patcher.analysis.conditions.severity import severity_in_place, severity_of, ways_ahead
from patcher.analysis.conditions.text_versions import text_comparisons

__all__ = ["severity_in_place", "severity_of", "text_comparisons", "ways_ahead"]
