"""Which processes write a log on this machine. Part of the agent: standard library of Python 3.8 only."""
