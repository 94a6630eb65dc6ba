"""Answers about symbols that stay true as long as the sources do: kept from one run to the next."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import patcher.analysis.symbols
from patcher.packages.releases.cache import cache_root
from patcher.worktree import files
from patcher.worktree.json_text import parse_json


class Answers:
    """What is known of one package's sources. `whose` names them for good: a release, or a stamp of the files."""

    def __init__(self, whose: str) -> None:
        key = sha256(f"{whose}\n{_reader()}".encode()).hexdigest()[:24]
        self._file = cache_root(None) / "answers" / f"{key}.json"
        self._known: dict[str, bool | None] = {}
        try:
            known = parse_json(files.read(self._file, files.SETTINGS_BYTES))
            self._known = {symbol: answer for symbol, answer in known.items() if answer in (True, False, None)}
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            pass

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._known

    def __getitem__(self, symbol: str) -> bool | None:
        return self._known[symbol]

    def learn(self, symbol: str, answer: bool | None) -> None:
        """Keep an answer. A cache that cannot be written to is no mistake."""
        self._known[symbol] = answer
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            files.replace(self._file, json.dumps(self._known).encode())
        except OSError:
            pass


def _reader() -> str:
    """What answers depend on besides the sources: this version of the reading code."""
    files = sorted(Path(patcher.analysis.symbols.__file__).parent.glob("*.py"))
    return json.dumps([(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files])
