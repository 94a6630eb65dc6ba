"""Two migrations at once: one goes on, the other is told who is at work; a lock never outlives its holder."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import forks
from tests.migrate import moving
from tests.migrate.cuts import Course
from tests.migrate.moving import Mover, Site, Told
from tests.remote.cutting import Fault

pytestmark = [pytest.mark.network, pytest.mark.hosts]

WORDS = ("--only", "transfer", "--only", "render", "--only", "verify")


def test_the_second_is_told_who_is_at_work(course: Course) -> None:
    course.reset()
    site, line = course.site, course.line
    line.set(Fault(rate=100_000))
    first = site.mover.start("migrate", "line", *WORDS)
    deadline = time.monotonic() + 30
    while line.total < course.whole["transfer"][0] + 20_000 and time.monotonic() < deadline:
        time.sleep(0.01)
    second = site.mover.migrate("site", *WORDS)
    out, err = first.communicate(timeout=60)
    assert second.code == 5, second.text
    assert "another migration is under way" in second.text
    assert "root" in second.text
    assert "since" in second.text
    assert first.returncode == 0, out + err
    assert moving.differing(moving.shape(site.there), course.new) == []
    course.finished()


def test_many_at_once_from_two_trees(site: Site, tmp_path: Path) -> None:
    """Whoever wins, the tree is one of the two, whole; losers are told, and nothing is left locked."""
    other = Mover(tmp_path / "other" / site.mover.tree.name, tmp_path / "other-state", site.machine.shims)
    forks.fork(other.tree, small=True)
    forks.edit(other.tree / "README.md", lambda text: text + "of the other\n")
    (other.tree / "only there.txt").write_text("x\n")
    shapes = []
    for mover in (site.mover, other):
        assert mover.migrate("site", *WORDS, "--yes").code == 0
        shapes.append(moving.shape(site.there))
    movers = [site.mover, other] * 3
    with ThreadPoolExecutor(len(movers)) as pool:
        told: list[Told] = list(pool.map(lambda mover: mover.migrate("site", *WORDS, "--yes"), movers))
    for one in told:
        assert one.code in (0, 5), one.text
        assert one.code == 0 or "another migration" in one.text or "changed" in one.text, one.text
    assert any(one.code == 0 for one in told)
    site.machine.quiet()
    found = moving.shape(site.there)
    differences = [moving.differing(found, shape) for shape in shapes]
    assert [] in differences, differences
    for mover, shape in zip((site.mover, other), shapes, strict=True):
        one = mover.migrate("site", *WORDS, "--yes")
        assert one.code == 0, one.text
        assert moving.differing(moving.shape(site.there), shape) == []


def test_the_tree_here_changes_meanwhile(course: Course) -> None:
    """A file that is edited while it is sent: told, or sent as it was or as it is; never a mixture."""
    course.reset()
    site, line = course.site, course.line
    line.set(Fault(rate=400_000))
    victim = site.mover.tree / "assets/noise 2.bin"
    was = victim.read_bytes()
    first = site.mover.start("migrate", "line", *WORDS)
    while line.total < course.whole["transfer"][0] + 20_000 and first.poll() is None:
        time.sleep(0.01)
    victim.write_bytes(was[::-1])
    out, err = first.communicate(timeout=60)
    try:
        told = Told(first.returncode, out, err, 0)
        assert "Traceback" not in told.text
        assert told.code in (0, 5), told.text
        there = site.there / "assets/noise 2.bin"
        assert not there.exists() or there.read_bytes() in (was, was[::-1])
    finally:
        victim.write_bytes(was)
        course.here = moving.local(site.mover.tree)
    course.finished()
