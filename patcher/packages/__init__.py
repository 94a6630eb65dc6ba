"""What is installed under an interpreter, without importing it, and what specifiers make of the versions found."""

from patcher.packages.model import NAMES, Environment, Installed, Origin
from patcher.packages.probe import probe

__all__ = ["NAMES", "Environment", "Installed", "Origin", "probe"]
