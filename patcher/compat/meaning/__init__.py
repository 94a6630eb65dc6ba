"""What symbols mean on one set of releases: dotted names and symbolic values -> definitions and instances."""

from patcher.compat.meaning.universe import Universe

__all__ = ["Universe"]
