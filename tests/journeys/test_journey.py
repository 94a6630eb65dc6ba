"""The harness itself: which command is read out of what is told, and where it stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.journey import JourneyError, Ran, Stranger


@pytest.mark.parametrize(
    ("told", "command"),
    [
        ("3 pending. Next: uky-patch apply --diff", "uky-patch apply --diff"),
        ("Next: uky-patch explain a-b, or uky-patch revert --force", "uky-patch explain a-b"),
        ("Next: uky-patch apply --skip a-b    # goes on without it", "uky-patch apply --skip a-b"),
        ("Next: uky-patch check.\nNext: uky-patch check --draft drafts.", "uky-patch check --draft drafts"),
        ("13 applied. Nothing to do", None),
    ],
)
def test_the_last_next_counts_and_of_it_the_first_command(told: str, command: str | None) -> None:
    assert Ran("uky-patch status", 0, f"verl 0.6.1\n\n{told}\n").next == command


def scripted(folder: Path, status: str) -> Stranger:
    """Somebody whose uky-patch answers `status` by a script, and does nothing else."""
    program = folder / "bin/uky-patch"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" = status ] || exit 0\n{status}\n')
    program.chmod(0o755)
    (folder / "tree").mkdir()
    return Stranger(folder / "tree", folder / "tree", {"PATH": f"{program.parent}:/usr/bin:/bin"})


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("echo 'Next: uky-patch apply'; exit 1", "told to run `uky-patch apply` again"),
        ("echo 'Next: uky-patch status'; exit 1", "told to run `uky-patch status` again"),
        ("echo 'something is wrong'; exit 1", "tells nothing to do next"),
        ("echo 'Traceback (most recent call last)'", "shows a traceback"),
        ("exit 70", "ended with 70"),
    ],
)
def test_what_fails_or_leads_nowhere_ends_it(status: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(JourneyError, match=why):
        scripted(tmp_path, status).follows()


def test_what_is_done_ends_well(tmp_path: Path) -> None:
    assert scripted(tmp_path, "echo 'Nothing to do'").follows().code == 0
