"""Uses outside of the tree's Python: in shell scripts, yaml, launchers, environment files. Nothing is run."""
