"""When does a use run? Version tests, feature tests, `try`: evaluated for one target without running the tree."""

from patcher.analysis.conditions.severity import prefetch_reachability, severity_in_place, severity_of
from patcher.analysis.conditions.text_versions import text_comparisons

__all__ = ["prefetch_reachability", "severity_in_place", "severity_of", "text_comparisons"]
