"""The text of one file -> what it says: uses, bindings, classes, functions. Pure."""

from patcher.compat.reading.reader import read_file

__all__ = ["read_file"]
