"""Writes rendered files into the tree on the host. Part of the agent: standard library of Python 3.8 alone."""
