"""What is installed under an interpreter, without importing it, and what specifiers make of the versions found."""

from patcher.packages.agent.installed import Installed
from patcher.packages.environment import NAMES, Environment, probe

__all__ = ["NAMES", "Environment", "Installed", "probe"]
