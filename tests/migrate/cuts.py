"""An old tree on a host, a new one here, and what a cut at any byte on the way from one to the other leaves behind."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patcher.migrate.order import StepName
from tests import forks
from tests.lanes import ALL_CASES
from tests.migrate import moving
from tests.migrate.moving import Site, Told
from tests.remote.cutting import Fault, Line

RENDERED = ("git_ignore.py", "run_standard.sh", "run_debug.sh", "run_fast_load.sh")
STEPS: tuple[StepName, ...] = ("preflight", "probe", "plan", "transfer", "render", "verify")
WORDS = tuple(word for step in STEPS[3:] for word in ("--only", step))
POINTS = 20 if ALL_CASES else 7
"""In each step at which the connection is cut. With UKY_PATCH_ALL_CASES=1 twenty: twelve minutes."""
Shape = Mapping[str, tuple[str, int, str]]


@dataclass
class Course:
    """From the old tree to the new one, over a line."""

    site: Site
    line: Line
    """It must be set before each run; whoever comes after has it set again."""
    old: Shape
    new: Shape
    whole: dict[str, tuple[int, int]]
    """For each step of an undisturbed run, the bytes that had passed when it began and when it ended."""
    here: dict[str, tuple[Any, ...]]

    def points(self, step: StepName) -> list[int]:
        """Where to cut: spread over the step's bytes; one where nothing passes."""
        begin, end = self.whole[step]
        if begin == end:
            return [begin]
        return [begin + (end - begin) * (2 * number + 1) // (2 * POINTS) for number in range(POINTS)]

    def run(self, fault: Fault | None = None) -> Told:
        self.line.set(fault)
        return self.site.mover.migrate("line", *WORDS)

    def reset(self) -> None:
        """The old tree again, as it was to the byte."""
        self.site.machine.do("sh", "-c", 'rm -rf "$0" && cp -a "$0.old" "$0"', str(self.site.there))

    def left(self, told: Told) -> None:
        """Check what a run has left, however it ended: one of two trees, none of it half; and ours as it was."""
        self.site.machine.quiet()
        shape = moving.shape(self.site.there)
        found = _without_rendered(shape)
        assert found in (_without_rendered(self.old), _without_rendered(self.new)), (
            moving.differing(found, _without_rendered(self.old)),
            moving.differing(found, _without_rendered(self.new)),
            told.text,
        )
        for name in RENDERED:
            assert shape.get(name) in (self.old.get(name), self.new.get(name)), name
        assert moving.local(self.site.mover.tree) == self.here

    def finished(self) -> None:
        """Check that running again, on a sound line, finishes the work."""
        told = self.run()
        assert told.code == 0, told.text
        assert moving.differing(moving.shape(self.site.there), self.new) == []


def _without_rendered(shape: Shape) -> dict[str, tuple[str, int, str]]:
    return {name: told for name, told in shape.items() if name not in RENDERED}


def begun(site: Site, line: Line, *, large: int = 700_000) -> Course:
    """Bring the old tree there, make the new one here, and measure an undisturbed run.

    Files of `large` bytes that cannot be compressed are new; rsync is used from a few hundred thousand bytes on.
    """
    tree, there = site.mover.tree, str(site.there)
    line.set()
    first = site.mover.migrate("line", *WORDS)
    assert first.code == 0, first.text
    old = moving.shape(site.there)
    noise = random.Random(4)
    (tree / "assets").mkdir()
    for number in range(4):
        (tree / f"assets/noise {number}.bin").write_bytes(noise.randbytes(large // 4))
    forks.edit(tree / "README.md", lambda text: text + "changed\n")
    forks.edit(tree / "verl/utils/dataset/rl_dataset.py", lambda text: text.replace("UKY_TRIED", "UKY_KNOWN"))
    (tree / forks.SPACES).unlink()
    (tree / "latest-notes").unlink()
    (tree / "scripts/serve reward.sh").chmod(0o644)
    (tree / "uky-patch.toml").write_text("[hosts.line]\noverrides = ['trainer.total_epochs=2']\n")
    site.machine.do("sh", "-c", 'rm -rf "$0.old" && cp -a "$0" "$0.old"', there)
    here = moving.local(tree)
    line.set()
    whole = _measured(site, line)
    new = moving.shape(site.there)
    assert _without_rendered(old) != _without_rendered(new)
    assert old["run_debug.sh"] != new["run_debug.sh"]
    return Course(site, line, old, new, whole, here)


def _measured(site: Site, line: Line) -> dict[str, tuple[int, int]]:
    process = site.mover.start("migrate", "line", *WORDS, fmt="text")
    killer = threading.Timer(60, process.kill)
    killer.start()
    assert process.stdout is not None
    found: dict[str, tuple[int, int]] = {}
    began = 0
    for text in process.stdout:
        words = text.split()
        if words and words[0] in STEPS and words[0] not in found:
            found[words[0]] = (began, line.total)
            began = line.total
    process.communicate()
    killer.cancel()
    assert process.returncode == 0
    assert tuple(found) == STEPS
    print({name: end - begin for name, (begin, end) in found.items()})
    return found
