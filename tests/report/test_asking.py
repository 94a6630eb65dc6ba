"""Nothing is taken for a yes that is none."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from patcher.cli.confirm import confirmed\nfrom patcher.i18n import phrase\n"
    "print(confirmed(phrase('Write {path}?', path='x'), yes=False))\n"
)


@pytest.mark.parametrize(("typed", "told"), [("y\n", "True"), ("n\n", "False"), ("\n", "False")])
def test_on_a_terminal(typed: str, told: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[2])])
    with os.fdopen(terminal, "r+b", buffering=0) as stream:
        shown = b""
        while b"[y/N]" not in shown:
            shown += stream.read(100)
        stream.write(typed.encode())
        try:
            while piece := stream.read(100):
                shown += piece
        except OSError:
            pass
    os.waitpid(pid, 0)
    assert b"Write x?" in shown
    assert shown.split()[-1].decode() == told


def test_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from patcher.cli.confirm import confirmed
    from patcher.i18n import phrase

    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert not confirmed(phrase("Write {path}?", path="x"), yes=False)
    assert confirmed(phrase("Write {path}?", path="x"), yes=True)
