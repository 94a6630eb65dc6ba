"""Breaks injected into a release, and whether `check` finds them."""
