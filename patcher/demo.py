"""The whole round on a real verl release in a scratch folder, with proof that nothing is left of it."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase

if TYPE_CHECKING:
    from patcher.packages.releases import Progress

ASSUMED: Mapping[str, str] = {
    "transformers": "4.57.6",
    "triton": "3.6.0",
    "torch": "2.11.0",
    "flash-attn": "none",
}
"""What is taken for installed beside vLLM: a machine on which verl 0.7.0 trained with vLLM 0.20.2."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the round, what it shows, and the exit codes that are in order."""

    arguments: tuple[str, ...]
    shows: Phrase
    exits: frozenset[int] = frozenset({0})
    changes: bool = False
    """Whether it may change the tree."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a step came to. `left` says whether the tree is as the step should leave it."""

    step: Step
    exit_code: int
    seconds: float
    left: bool

    @property
    def in_order(self) -> bool:
        return self.exit_code in self.step.exits and self.left


ROUND = (
    Step(("status",), phrase("what this verl needs on that vLLM"), exits=frozenset({0, 1})),
    Step(("apply", "--show-diff"), phrase("make the edits"), changes=True),
    Step(("status",), phrase("nothing is left to do")),
    Step(("verify",), phrase("the edits hold")),
    Step(("check", "--against", "vllm", "--no-since"), phrase("what is left between the two"), exits=frozenset({0, 1})),
    Step(("apply",), phrase("a second time: nothing is written")),
    Step(("revert",), phrase("take them out again"), changes=True),
)


def options(vllm: str) -> tuple[str, ...]:
    """The `--assume` options of the round."""
    return tuple(part for name, ver in {"vllm": vllm, **ASSUMED}.items() for part in ("--assume", f"{name}=={ver}"))


@contextmanager
def scratch(verl: str, keep: Path | None, progress: Progress) -> Iterator[Path]:
    """A folder with the release's verl/ in it: a temporary one, or `keep`, which stays.

    Raises ReleaseError where the release cannot be had, UsageError where `keep` holds something already.
    """
    from patcher.packages.releases import wheel

    source = wheel("verl", verl, progress=progress)
    progress("", 0, None)
    with TemporaryDirectory(prefix="uky-patch-demo-") as temporary:
        root = keep or Path(temporary) / f"verl-{verl}"
        if keep is not None and keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
            raise UsageError(
                phrase("{folder}: not empty", folder=keep), advice=phrase("Give --keep a folder that is new or empty.")
            )
        shutil.copytree(source / "verl", root / "verl", ignore=shutil.ignore_patterns("__pycache__"))
        yield root


def take(step: Step, root: Path, run: Callable[[], int]) -> Done:
    """Run one step and look at the tree before and after."""
    before = fingerprint(root)
    started = time.monotonic()
    code = run()
    return Done(step, code, time.monotonic() - started, step.changes or fingerprint(root) == before)


def fingerprint(root: Path) -> str:
    """One hash over the name, mode and bytes of everything below `root`."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        content = b"" if path.is_dir() else path.read_bytes()
        total.update(f"{path.relative_to(root)}\0{path.stat().st_mode:o}\0".encode() + hashlib.sha256(content).digest())
    return total.hexdigest()
