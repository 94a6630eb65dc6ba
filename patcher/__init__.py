"""uky-patch: keep a fork of verl running on the vLLM, torch and Triton that are installed."""

from __future__ import annotations

__version__ = "0.1.0"
