"""The line of what is under way: its amount fits the terminal, and rich is imported for it alone."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from patcher.terminal.progress import progress

MESSAGE = "fetching vllm 0.20.2 for Python 3.12 from https://packages.example/simple/vllm"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> Terminal:
    """Standard error as a terminal; set in the test itself, for pytest puts its own there before each phase."""
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def last_line(shown: Terminal) -> str:
    return shown.getvalue().rpartition("\x1b[K")[2]


@pytest.mark.parametrize(("columns", "bar"), [(60, False), (80, False), (120, True)])
def test_the_amount_is_whole_and_the_line_fits(monkeypatch: pytest.MonkeyPatch, columns: int, bar: bool) -> None:
    shown = terminal(monkeypatch, columns)
    progress(f"{columns} {MESSAGE}", 20_000_000, 200_000_000)
    line = last_line(shown)
    assert "20.0/200.0 MB" in line
    assert len(line) < columns
    assert ("━" in line) == bar
    progress("", 0, None)


def test_bytes_of_an_unknown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch, 80)
    progress("sending", 60_000_000, None)
    assert last_line(shown) == "sending  60.0 MB"
    progress("", 0, None)


def test_rich_is_not_imported_to_list_the_records() -> None:
    program = "import sys; from patcher.cli.app import run; run(['list']); sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False).returncode == 0
