"""The ladder of checks above the markers: environment, data, model, engine, job; here and on a host alike."""

from patcher.ladder.climbing import Wish, climb

__all__ = ["Wish", "climb"]
