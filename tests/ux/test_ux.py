"""`make test-ux`: every command on a stale fork, in terminals of tmux; what they show is kept in `golden`.

`make test-ux UPDATE=1` writes the goldens anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.ux import place as places
from tests.ux import terminals
from tests.ux.commands import CALLS, Call
from tests.ux.judging import faults, settled
from tests.ux.terminals import Screen, Terminal

pytestmark = [pytest.mark.ux, pytest.mark.network]

GOLDEN = Path(__file__).parent / "golden"
WIDE = 400
TERMINALS = (
    *(("en", columns, "dark") for columns in (80, 60, 100, 140)),
    *(("zh", columns, "dark") for columns in (80, 60)),
    ("C", 80, "light"),
    ("C.UTF-8", 60, "light"),
)
WHOLE = (("en", 80), ("zh", 80))
"""Terminals whose screens are all kept; of the others, those of the commands in `SAMPLE`."""
SAMPLE = ("status", "check", "apply", "verify", "diagnose", "migrate", "bundle")
OF_THE_MACHINE = ("bundle", "clean", "data", "migrate", "model", "probe", "render", "watch")
"""What these show differs from machine to machine, by its variables, disks and processors: judged, and not kept."""
HANDFUL = {"C": SAMPLE, "C.UTF-8": SAMPLE}
"""Terminals on which not every command is run."""


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    if reason := terminals.why_not():
        pytest.fail(reason)
    found = places.make()
    yield found
    shutil.rmtree(found, ignore_errors=True)


def screens(place: Path, tongue: str, columns: int, background: str) -> dict[Call, Screen]:
    """Each command's screen on such a terminal, on one tree from the first to the last."""
    tree = places.fresh_tree(place)
    terminal = Terminal(place, columns, tongue, background)
    once = columns == 80
    wanted = [
        call
        for call in CALLS
        if (once or not call.once) and (tongue not in HANDFUL or call.arguments[0] in HANDFUL[tongue])
    ]
    try:
        return {call: terminal.run(tree, *(part.format(place=place) for part in call.arguments)) for call in wanted}
    finally:
        terminal.end()


@cache
def wide(place: Path, tongue: str) -> dict[Call, Screen]:
    return screens(place, tongue, WIDE, "dark")


@pytest.mark.parametrize(
    ("tongue", "columns", "background"),
    [pytest.param(*one, marks=pytest.mark.xdist_group(one[0][:2])) for one in TERMINALS],
)
def test_screens(place: Path, tongue: str, columns: int, background: str) -> None:
    found = screens(place, tongue, columns, background)
    compared = wide(place, tongue) if tongue in ("en", "zh") else {}
    wrong = [
        f"{call.name}: {fault}"
        for call, screen in found.items()
        for fault in faults(call, screen, compared.get(call), columns, tongue)
    ]
    kept = [call for call in found if (tongue, columns) in WHOLE or call.arguments[0] in SAMPLE]
    text = "".join(shown(call, found[call]) for call in kept if call.arguments[0] not in OF_THE_MACHINE)
    if os.environ.get("UPDATE"):
        golden(tongue, columns).write_text(text, encoding="utf-8")
    assert not wrong, "\n".join(wrong)
    assert golden(tongue, columns).read_text(encoding="utf-8").splitlines() == text.splitlines()


def shown(call: Call, screen: Screen) -> str:
    """A command, its exit code and its screen, as a golden keeps them."""
    return f"$ {call.name}\n[{screen.code}]\n{settled(screen.text)}\n\n"


def golden(tongue: str, columns: int) -> Path:
    return GOLDEN / f"{tongue}-{columns}.txt"
