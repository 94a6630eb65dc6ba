"""A fork's modules imported by an interpreter that has other versions: untouched, and repaired by records and drafts.

`check` reads sources and runs nothing. With an environment at hand, such as one with vLLM's CPU build, the interpreter
itself has the last word. The fork's tree is only read: both states are copies in a scratch folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.analysis.meaning import Program
from patcher.analysis.severity.guards import guards_of
from patcher.check.entries import open_project
from patcher.check.pair import judge
from patcher.check.targets import Against, AsInstalled, locate, target_of
from patcher.checks import Check
from patcher.i18n import phrase
from patcher.i18n.codec import decode
from patcher.preflight.agent.run_programs import Launch, run_programs
from patcher.preflight.agent.run_programs import Program as CheckProgram
from patcher.secrets.redacting import here
from patcher.terminal.progress import progress
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.check.pinning import Pins
    from patcher.session.session import Session

_BUDGET = 900.0
"""Seconds for one state of the tree. A guess, far above the 53 that verl 0.7.1 took for both and for all else."""
_WARM = ("torch", "transformers", "ray", "vllm")
"""Imported once before the fork's modules, each of which would otherwise import them anew."""


@dataclass(frozen=True, slots=True)
class Imports:
    """A check per module of the plain job: `ok`; `skip` where a package is not installed or the module refuses to be
    imported on this machine; `fail` with what was raised; `warn` where it takes too long."""

    python: Path
    versions: Mapping[str, str]
    """What is installed there, of the proposed packages."""
    untouched: tuple[Check, ...]
    repaired: tuple[Check, ...]
    """Once the records and the drafts are applied."""

    @property
    def failed(self) -> tuple[Check, ...]:
        """What does not import though everything known is repaired."""
        return tuple(one for one in self.repaired if one.status in ("fail", "warn"))


def import_modules(done: Pins, there: Session) -> Imports:
    """Import what the plain job imports, before and after the repairs of `done`.

    `there` is a session of the interpreter, which has the proposed versions.
    """
    python = there.environment.python
    assert python is not None
    modules = _modules(there, done.proposed)
    texts = _repaired_texts(done)
    with _copies(there.tree.root, modules, texts) as (untouched, repaired):
        before = tuple(_imported(python, untouched, modules))
        after = tuple(_imported(python, repaired, modules)) if texts else before
    versions = {name: str(there.environment.version(name)) for name in done.proposed}
    return Imports(python, versions, before, after)


def _modules(there: Session, proposed: Iterable[str]) -> tuple[str, ...]:
    """The modules that the plain job imports or runs code of there, by dotted name."""
    located = [locate(Against(name, AsInstalled()), there) for name in proposed]
    target = target_of(located, there)
    project, _ = open_project(there.tree.root, target.against, target.words)
    program = Program(project, target, judge)
    reached = {file for file, _ in guards_of(program).reached.here}
    project.keep()
    return tuple(sorted(file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in reached))


def _repaired_texts(done: Pins) -> Mapping[str, str]:
    """The texts, by path, that records and drafts change."""
    if done.check is None:
        return {}
    return done.check.drafted.texts if done.check.drafted is not None else done.check.repaired.plan.texts


@contextmanager
def _copies(root: Path, modules: Iterable[str], texts: Mapping[str, str]) -> Iterator[tuple[Path, Path]]:
    """Two copies of the packages and single files that the modules are in, the second one with `texts`."""
    tops = sorted({module.partition(".")[0] for module in modules})
    with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
        states = Path(scratch) / "untouched", Path(scratch) / "repaired"
        for state in states:
            state.mkdir()
            for top in tops:
                if (root / top).is_dir():
                    unwanted = shutil.ignore_patterns("__pycache__", ".git")
                    shutil.copytree(root / top, state / top, symlinks=True, ignore=unwanted)
                else:
                    shutil.copy(root / f"{top}.py", state)
        for file, text in texts.items():
            # Records change run scripts and settings too, which no import needs.
            if file.partition("/")[0].removesuffix(".py") in tops:
                files.write_whole_file(states[1] / file, text.encode(), mode=0o644, durable=False)
        yield states


def _imported(python: Path, root: Path, modules: tuple[str, ...]) -> list[Check]:
    """A check for each module, in order."""
    found: dict[str, Check] = {}

    def tell(verdict: Mapping[str, Any]) -> None:
        text = here().text(str(decode(verdict["detail"])))
        found[verdict["name"]] = Check(verdict["name"], "env", verdict["status"], verdict["seconds"], text)
        progress(phrase("importing: {done} of {total} modules", done=len(found), total=len(modules)))

    with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
        launch = Launch(str(python), str(root), dict(os.environ), scratch)
        program = CheckProgram(["modules"], list(modules), {"modules": modules, "warm": _WARM})
        run_programs([program], launch, _BUDGET, tell)
    progress("")
    return [found[module] for module in modules]
