"""Runs under the interpreter of an environment: asks released packages, by importing and binding, whether uses hold.

Imports nothing of this project, so that what it says is independent of `check`.
"""
