"""The ladder of checks above the markers: environment, data, model, engine, job; here and on a host alike."""

from patcher.preflight.run import Wish, climb

__all__ = ["Wish", "climb"]
