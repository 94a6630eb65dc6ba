"""Uses outside of the tree's Python: in shell scripts, yaml, launchers, environment files. Nothing is run."""

from patcher.check.scripts.files import script_uses, uses_of_scripts

__all__ = ["script_uses", "uses_of_scripts"]
