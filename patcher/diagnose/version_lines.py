"""Lines of a log that name versions: what a program says of itself, pip's list, pins, a printed configuration.

`VERSION_WORDS` are the words that such lines hold; `versions_in` reads a line that holds one of them.
"""

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
SERVER_STARTS = "vllm api server version"
"""A word of the line that a server prints first."""
_NAMES = "|".join(sorted((re.escape(name).replace(r"\-", "[-_]") for name in DISTRIBUTIONS), key=len, reverse=True))
_INSTALLED = re.compile(rf"(?<![\w-])(?P<name>{_NAMES})-{_VERSION}", re.IGNORECASE)
_PINNED = re.compile(rf"(?<![\w\[-])(?P<name>{_NAMES})(?:\[[\w,-]+\])?==\s*{_VERSION}", re.IGNORECASE)
# The configuration of a model is printed as JSON, and its "transformers_version" names the release that saved the
# model. Only in a printed object (`Qwen2Config {`) it is the installed release.
_OF_CONFIG = re.compile(rf'^\s+"transformers_version": "{_VERSION}"')
_CONFIG = re.compile(r"\w+Config \{$")
_VERSION_PATTERNS = {word: (name, re.compile(pattern, re.IGNORECASE)) for word, name, pattern in _SAYINGS}

INSTALLED = "successfully installed"
OF_CONFIG = '"transformers_version"'
PINS = tuple(f"{name}==" for name in DISTRIBUTIONS)
VERSION_WORDS = (*_VERSION_PATTERNS, *PINS, INSTALLED, OF_CONFIG)


def versions_in(text: str, word: str, before: list[str]) -> dict[str, str]:
    """The versions that a line names, by distribution. `before`: the lines before it, which show what some versions are
    of."""
    if word == INSTALLED and text.lower().startswith(INSTALLED):
        return {_distribution_name(found["name"]): found["version"] for found in _INSTALLED.finditer(text)}
    if word == OF_CONFIG:
        found = _OF_CONFIG.match(text)
        printed = found is not None and any(_CONFIG.search(line.rstrip()) for line in before)
        return {"transformers": found["version"]} if found is not None and printed else {}
    if word in PINS:
        match = re.match(rf"\s*{_PINNED.pattern}\s*$", text, re.IGNORECASE)
        return {_distribution_name(match["name"]): match["version"].rstrip(".")} if match else {}
    if word in _VERSION_PATTERNS:
        name, pattern = _VERSION_PATTERNS[word]
        if match := pattern.search(text):
            return {name: match["version"].rstrip(".")}
    return {}


_EGG = re.compile(r"/(?P<name>[A-Za-z]\w*)-(?P<version>\d+(?:\.\d+)+[\w.]*)-py\d[\w.-]*\.egg/")


def version_of_egg(path: str) -> dict[str, str]:
    """The version that stands in the path of a package installed as an egg: `…/vllm-0.2.1-py3.10.egg/vllm/a.py`."""
    found = _EGG.search(path)
    return {_distribution_name(found["name"]): found["version"]} if found is not None else {}


def _distribution_name(name: str) -> str:
    return name.lower().replace("_", "-")
