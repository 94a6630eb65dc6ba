"""The figures, each a ratio of medians with a limit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.clock import Times, Trial, in_turn, once
from bench.trees import BIN, UKY_PATCH, VERL, VLLM, command, fresh, patched, release


@dataclass(frozen=True, slots=True)
class Figure:
    """What `ours` takes in terms of what `theirs` takes."""

    name: str
    ours: Times
    theirs: Times
    limit: float

    @property
    def ratio(self) -> float:
        return self.ours.median / self.theirs.median


def figures(folder: Path, rounds: int, *, runner: bool) -> Iterator[Figure]:
    """Measure in `folder`. `runner`: libcst's own codemod runner too, which takes most of a minute."""
    version, nothing = in_turn(
        [Trial([UKY_PATCH, "--version"]), Trial([sys.executable, "-c", "pass"])], max(rounds, 15)
    )
    yield Figure("uky-patch --version / python -c pass", version, nothing, 6)

    source = release()
    tree, applied, scratch = folder / "tree", folder / "applied", folder / "scratch"
    fresh(tree, source)
    patched(applied, source)
    search = [str(BIN / "ast-grep"), "run", "-l", "python", "-p", "disable_log_requests=$X"]
    status, searched = in_turn(
        [
            Trial(command(applied, "status")),
            Trial([*search, str(applied)], exits=frozenset({0, 1})),
        ],
        rounds,
    )
    yield Figure(f"status on applied verl {VERL} / one ast-grep pattern", status, searched, 1)

    apply, searched = in_turn(
        [
            Trial(command(scratch, "apply"), prepare=partial(fresh, scratch, source)),
            Trial([*search, str(tree)], exits=frozenset({0, 1})),
        ],
        rounds,
    )
    yield Figure(f"apply for vLLM {VLLM} / one ast-grep pattern", apply, searched, 4)
    if runner:
        codemod = [sys.executable, "-m", "libcst.tool", "codemod", "--no-format", "--hide-progress"]
        rename = ["rename.RenameCommand", "--old_name", "vllm.utils.get_tcp_uri"]
        target = ["--new_name", "vllm.utils.network_utils.get_tcp_uri", str(tree)]
        yield Figure(
            "the same / libcst's codemod runner, one rename",
            apply,
            Times((once(Trial([*codemod, *rename, *target])),)),
            0.03,
        )
