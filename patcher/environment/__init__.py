"""What is installed under an interpreter, without importing it, and what specifiers make of the versions found."""

from patcher.environment.model import NAMES, Environment, Installed, Origin
from patcher.environment.probe import probe

__all__ = ["NAMES", "Environment", "Installed", "Origin", "probe"]
