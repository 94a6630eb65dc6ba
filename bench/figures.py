"""The figures, each a ratio of medians with a limit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.clock import Times, Trial, in_turn, once, peak
from bench.matrix import RELEASES, timeline
from bench.measures import Amount, Figure, Unmeasured
from bench.trees import BIN, UKY_PATCH, VERL, VLLM, command, fresh, patched, release, renamed
from patcher.packages.releases.cache import cache_root

TRANSFORMERS = "4.57.6"


def figures(folder: Path, rounds: int, *, runner: bool) -> Iterator[Figure | Amount | Unmeasured]:
    """Measure in `folder`. `runner`: libcst's own codemod runner and the whole matrix too, which take minutes."""
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
    yield Figure(f"apply for vLLM {VLLM} / one ast-grep pattern", apply, searched, 5, ceiling=6)
    memory = peak(Trial(command(scratch, "apply"), prepare=partial(fresh, scratch, source)))
    yield Amount("the same: peak memory", memory, "MB", 80)
    from bench.migration import migration
    from bench.reading import reading

    yield from reading(folder, rounds)
    yield from migration(folder, rounds)
    from bench.watching import watching

    yield from watching(folder)
    from bench.recording import recording

    yield from recording(folder)
    from bench.importing import importing

    yield from importing(folder, rounds)
    yield from checks(folder, rounds)
    yield from growth(folder, rounds)
    yield from matrix(RELEASES if runner else RELEASES[:1])
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


def checks(folder: Path, rounds: int) -> Iterator[Figure]:
    """One pair, and a type checker on the same tree with the same sources of vLLM: an old fork, and the newest verl."""
    from patcher.packages.releases import sources, wheel

    for verl, vllm in ((VERL, VLLM), ("0.9.1", "0.24.0")):
        tree = folder / f"verl-{verl}"
        fresh(tree, wheel("verl", verl))
        places = ["--extra-search-path", str(sources("vllm", vllm))]
        types = [str(BIN / "ty"), "check", str(tree / "verl"), *places, "--exit-zero", "--output-format", "concise"]
        asked = [UKY_PATCH, "--root", str(tree), "check", "--against", f"vllm=={vllm}", "--no-since"]
        found = frozenset({0, 1})
        anew = Trial(asked, exits=found, prepare=_forget_readings)
        check, checked = in_turn([anew, Trial(types)], max(rounds // 2, 3))
        yield Figure(f"check verl {verl} against vLLM {vllm} / ty check", check, checked, 1.2, ceiling=6)
        changed = Trial(asked, exits=found, prepare=_forget_results)
        check, checked = in_turn([changed, Trial(types)], max(rounds // 2, 3))
        yield Figure("the same with its files read before / ty check", check, checked, 0.5, ceiling=4)
        again, checked = in_turn([Trial(asked, exits=found), Trial(types)], max(rounds // 2, 3))
        yield Figure("the same, a second time / ty check", again, checked, 0.5)
    asked += ["--against", f"transformers=={TRANSFORMERS}"]
    types += ["--extra-search-path", str(sources("transformers", TRANSFORMERS))]
    both, checked = in_turn([Trial(asked, exits=found, prepare=_forget_readings), Trial(types)], max(rounds // 2, 3))
    yield Figure(f"the same against transformers {TRANSFORMERS} too / ty check", both, checked, 2, ceiling=5)


def growth(folder: Path, rounds: int) -> Iterator[Figure]:
    """What one use costs on a checkout with 2 and 4 times the files: the package, and renamed copies beside it."""
    from patcher.packages.releases import wheel

    seconds: dict[int, tuple[float, ...]] = {}
    for times in (1, 2, 4):
        tree = folder / f"verl-{times}-times"
        fresh(tree, wheel("verl", "0.9.1"))
        for number in range(1, times):
            renamed(tree / "verl", tree / f"copy{number}")
        asked = [UKY_PATCH, "--root", str(tree), "--format", "json", "check", "--against", "vllm==0.24.0", "--no-since"]
        answer = subprocess.run(asked, stdout=subprocess.PIPE, check=False).stdout
        uses = json.loads(answer)["uses"]
        anew = Trial(asked, exits=frozenset({0, 1}), prepare=_forget_readings)
        seconds[times] = tuple(once(anew) / uses for _ in range(max(rounds // 2, 3)))
    for times in (2, 4):
        name = f"check of {times} times the files, for each use / of the package alone"
        yield Figure(name, Times(seconds[times]), Times(seconds[1]), 1.2)


def _forget_results() -> None:
    """Take away what earlier checks have found, so that the next one computes it."""
    shutil.rmtree(cache_root() / "checks", ignore_errors=True)


def _forget_readings() -> None:
    """The same, and what they have read of the trees and of packages."""
    _forget_results()
    for kind in ("readings", "modules"):
        shutil.rmtree(cache_root() / kind, ignore_errors=True)


def matrix(counts: Sequence[int]) -> Iterator[Amount]:
    """Every verl release on the newest vLLM releases, how its time grows, and what memory its processes take."""
    _forget_readings()
    first, again = timeline(max(counts)), timeline(max(counts))
    for count in counts:
        limits = {"limit": LIMITS[count], "ceiling": CEILINGS[count]}
        yield Amount(f"matrix of {first.verl} verl x {count} vLLM releases", first.seconds[count], "s", **limits)
        yield Amount("the same with its files read before", again.seconds[count], "s", **limits)
    megabytes = max(first.megabytes, again.megabytes)
    yield Amount("the same: peak memory of all its processes", megabytes, "MB", 600, ceiling=1000)


LIMITS = {10: 35, 20: 55, 40: 60}
CEILINGS = {10: 52, 20: 82, 40: 135}
"""Seconds by the number of vLLM releases, on two cores."""
