"""Receives a tree on the host and verifies it. Part of the agent: standard library of Python 3.8 alone."""
