"""What is installed under an interpreter, without importing it, and what specifiers make of the versions found.

`environment` says what is installed here, `chosen_interpreter` under which interpreter, `versions` whether a version is
in a range, `pins` what a requirements file asks for. `releases` fetches and caches the sources of releases. `agent`
reads what is installed, on this machine and on hosts, with the standard library alone.
"""

from patcher.packages.agent.installed import Installed
from patcher.packages.environment import NAMES, Environment, probe

__all__ = ["NAMES", "Environment", "Installed", "probe"]
