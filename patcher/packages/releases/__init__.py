"""The sources of a release by name and version: fetched the cheapest way, checked, and cached."""

from patcher.packages.releases.cache import Progress
from patcher.packages.releases.fetch import is_cached, may_be_had, sources, versions, wheel

__all__ = ["Progress", "is_cached", "may_be_had", "sources", "versions", "wheel"]
