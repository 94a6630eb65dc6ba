"""Looks at data sets and models on the host. Part of the agent: standard library of Python 3.8 alone."""
