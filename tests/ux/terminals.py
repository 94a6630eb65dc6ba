"""A terminal of tmux, of a width, a language and a background, and what a command leaves on it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROWS = 6000
"""More than any command shows: what is captured has not scrolled away."""
LOCALES = {"en": "en_US.UTF-8", "zh": "zh_CN.UTF-8", "C": "C", "C.UTF-8": "C.UTF-8"}
BACKGROUNDS = {"dark": "15;0", "light": "0;15"}


@dataclass(frozen=True)
class Screen:
    """What stands on the terminal when a command has ended."""

    arguments: tuple[str, ...]
    code: int
    lines: tuple[str, ...]
    """As they stand there, one a row."""
    joined: tuple[str, ...]
    """The same; what the terminal itself had to wrap is one line."""
    coloured: str
    """The rows with the sequences for their colours."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Terminal:
    """tmux with a server of its own, in `place`, where a tool and a tree are."""

    def __init__(self, place: Path, columns: int, tongue: str, background: str = "dark") -> None:
        self.columns, self.tongue, self.background = columns, tongue, background
        self._place, self._socket = place, place / "tmux"
        (place / "tmux.conf").write_text(
            "set -g remain-on-exit on\nset -g remain-on-exit-format ''\nset -g status off\n"
            'set -g default-terminal "tmux-256color"\nset -g history-limit 0\nset -g exit-empty off\n'
        )

    def run(self, tree: Path, *arguments: str, limit: float = 120) -> Screen:
        """Run the tool in the tree, to its end."""
        command = shlex.join(["uky-patch", *arguments])
        done = shlex.join([*self._tmux, "wait-for", "-S", "ended"])
        script = f"{command}; echo $? > {self._place}/code; {done}"
        new = ["new-session", "-d", "-s", "one", "-x", str(self.columns), "-y", str(ROWS), "-c", str(tree)]
        subprocess.run([*self._tmux, *new, "sh", "-c", script], check=True, env=self._environment())
        try:
            subprocess.run([*self._tmux, "wait-for", "ended"], check=True, timeout=limit)
            return self._screen(arguments)
        finally:
            subprocess.run([*self._tmux, "kill-session", "-t", "one"], check=False, capture_output=True)

    def end(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    @property
    def _tmux(self) -> list[str]:
        return ["tmux", "-u", "-S", str(self._socket), "-f", str(self._place / "tmux.conf")]

    def _environment(self) -> dict[str, str]:
        unset = ("LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LANGUAGE", "TMUX", "NO_COLOR", "CI", "COLUMNS", "PYTHONUTF8")
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        return kept | {
            "PATH": f"{self._place}/bin:{os.environ['PATH']}",
            "HOME": str(self._place / "home"),
            "LANG": LOCALES[self.tongue],
            "COLORFGBG": BACKGROUNDS[self.background],
            "UKY_PATCH_CACHE": os.environ.get("UKY_PATCH_CACHE") or str(Path("~/.cache/uky-patch").expanduser()),
        }

    def _screen(self, arguments: Sequence[str]) -> Screen:
        code = int((self._place / "code").read_text())
        return Screen(tuple(arguments), code, self._captured(), self._captured("-J"), "\n".join(self._captured("-e")))

    def _captured(self, *options: str) -> tuple[str, ...]:
        words = [*self._tmux, "capture-pane", "-p", *options, "-t", "one"]
        text = subprocess.run(words, check=True, capture_output=True, encoding="utf-8").stdout
        return tuple(line.rstrip(" ") for line in text.rstrip("\n ").split("\n"))


def why_not() -> str:
    return "" if shutil.which("tmux") else "tmux is not installed"
