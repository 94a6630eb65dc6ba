"""The versions of packages that a log itself tells."""

from __future__ import annotations

import re

from patcher.records.rules import DISTRIBUTIONS

_VERSION = r"v?(?P<version>\d+\.\d+[\w.+!-]*)"
_SAYINGS = (
    ("llm engine (v", "vllm", rf"LLM engine \({_VERSION}\)"),
    ("vllm api server version", "vllm", rf"vLLM API server version {_VERSION}"),
    ("vllm version", "vllm", rf"vLLM version *[:=]? *{_VERSION}"),
    ("pytorch version", "torch", rf"PyTorch version *[:=]? *{_VERSION}"),
    ("torch version", "torch", rf"torch version *[:=]? *{_VERSION}"),
    ("transformers version", "transformers", rf"transformers version *[:=]? *{_VERSION}"),
    ("ray version", "ray", rf"Ray version *[:=]? *{_VERSION}"),
    ("verl version", "verl", rf"verl version *[:=]? *{_VERSION}"),
    ("triton version", "triton", rf"triton version *[:=]? *{_VERSION}"),
)
_NAMES = "|".join(sorted((re.escape(name).replace(r"\-", "[-_]") for name in DISTRIBUTIONS), key=len, reverse=True))
_INSTALLED = re.compile(rf"(?<![\w-])(?P<name>{_NAMES})-{_VERSION}", re.IGNORECASE)
_PINNED = re.compile(rf"(?<![\w\[-])(?P<name>{_NAMES})(?:\[[\w,-]+\])?==\s*{_VERSION}", re.IGNORECASE)
_OF_CONFIG = re.compile(rf'^\s+"transformers_version": "{_VERSION}"')
_CONFIG = re.compile(r"\w+Config \{$")
_PATTERNS = {needle: (name, re.compile(pattern, re.IGNORECASE)) for needle, name, pattern in _SAYINGS}

INSTALLED = "successfully installed"
OF_CONFIG = '"transformers_version"'
PINS = tuple(f"{name}==" for name in DISTRIBUTIONS)
NEEDLES = (*_PATTERNS, *PINS, INSTALLED, OF_CONFIG)


def told(text: str, needle: str, before: list[str]) -> dict[str, str]:
    """Versions by distribution that a line tells. `before`: lines before it, for what needs them."""
    if needle == INSTALLED and text.lower().startswith(INSTALLED):
        return {_plain(found["name"]): found["version"] for found in _INSTALLED.finditer(text)}
    if needle == OF_CONFIG:
        found = _OF_CONFIG.match(text)
        printed = found is not None and any(_CONFIG.search(line.rstrip()) for line in before)
        return {"transformers": found["version"]} if found is not None and printed else {}
    if needle in PINS:
        match = re.match(rf"\s*{_PINNED.pattern}\s*$", text, re.IGNORECASE)
        return {_plain(match["name"]): match["version"].rstrip(".")} if match else {}
    if needle in _PATTERNS:
        name, pattern = _PATTERNS[needle]
        if match := pattern.search(text):
            return {name: match["version"].rstrip(".")}
    return {}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
