"""Labels made by reading: which findings are right, and which places a job runs that a release breaks.

`labels.jsonl` is a sample of findings of severity `break`, each judged by hand. `places.jsonl` holds true breaks of the
plain path that were found without `check`, and beside them judged findings on forks' own pins: those that are false
only explain docs/forks.md. A line of either names a place by facts alone; it quotes no fork.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bench.forks.running import Finding, Run

LABELS = Path(__file__).with_name("labels.jsonl")
PLACES = Path(__file__).with_name("places.jsonl")


@dataclass(frozen=True, slots=True)
class Label:
    """One place of one fork at one commit, on one release of vLLM."""

    fork: str
    commit: str
    target: str
    file: str
    line: int
    symbol: str
    verdict: bool
    """Whether the plain job runs this line on that release, and fails there."""
    why: str

    def meets(self, finding: Finding) -> bool:
        """Whether `finding` is about this place: the symbol may be told by its module, or as a re-export."""
        one, other = self.symbol, finding.symbol
        parent = one.startswith(f"{other}.") or other.startswith(f"{one}.")
        same = parent or one.rpartition(".")[2] == other.rpartition(".")[2]
        return same and (self.file, self.line) == (finding.file, finding.line)


def load(path: Path) -> list[Label]:
    """The labels of a file. Raises ValueError with the lines that are no label."""
    found, wrong = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        table = json.loads(line)
        if fault := _fault(table):
            wrong.append(f"{path.name}:{number}: {fault}")
        else:
            found.append(Label(**table))
    if wrong:
        raise ValueError("\n".join(wrong))
    return found


def _fault(table: dict[str, Any]) -> str:
    kinds = {"line": int, "verdict": bool}
    names = [field.name for field in fields(Label)]
    if sorted(table) != sorted(names):
        return f"its keys are not {', '.join(names)}"
    wrong = [name for name in names if type(table[name]) is not kinds.get(name, str)]
    return f"of the wrong type: {', '.join(wrong)}" if wrong else ""


PARTS = ("legacy", "old", "new")
"""Parts of the findings: modules that are made for one release of vLLM, the rest of verl 0.5 or older, newer verl."""


def part_of(verl: str, file: str) -> str:
    """The part that a finding belongs to, by the fork's verl and the file, `…/vllm_v_0_3_1/llm.py` for example."""
    numbers = [int(number) for number in verl.split(".")[:2] if number.isdigit()]
    return "new" if numbers > [0, 5] else "legacy" if "/vllm_v_" in file else "old"


@dataclass(frozen=True, slots=True)
class Score:
    """What the labels say about the runs. A label counts only where its fork was run at the label's commit."""

    reported_true: int
    reported_false: tuple[Label, ...]
    parts: Mapping[str, tuple[int, int, int]]
    """By part: how many labels still reported are true, how many are reported, how many breaks the runs have in all."""
    missed: tuple[Label, ...]
    """True breaks, of both files, that are not reported as break."""
    found: int
    left_out: int
    """Labels of forks that were not run, at another commit, or that could not be checked."""

    @property
    def precision(self) -> float | None:
        reported = self.reported_true + len(self.reported_false)
        return self.reported_true / reported if reported else None

    @property
    def recall(self) -> float | None:
        true = self.found + len(self.missed)
        return self.found / true if true else None


def score(runs: Iterable[Run], labels: Sequence[Label], places: Sequence[Label]) -> Score:
    """Compare what is reported as break with the labels."""
    ran = {(one.clone.name, one.clone.commit, one.target): one for one in runs if not (one.refused or one.crash)}
    everything = Counter(part_of(one.clone.verl, finding.file) for one in ran.values() for finding in one.breaks)
    true: Counter[str] = Counter()
    false: list[Label] = []
    missed: list[Label] = []
    found, left_out = 0, 0
    judged = set()
    for label, sampled in (*((one, True) for one in labels), *((one, False) for one in places)):
        one = ran.get((label.fork, label.commit, label.target))
        if one is None:
            left_out += 1
            continue
        reported = any(label.meets(finding) for finding in one.breaks)
        if sampled and reported:
            true[part_of(one.clone.verl, label.file)] += label.verdict
            false += [] if label.verdict else [label]
        # A place may be in both files; it counts once.
        place = (label.fork, label.target, label.file, label.line, label.symbol)
        if label.verdict and place not in judged:
            judged.add(place)
            found += reported
            missed += [] if reported else [label]
    wrong = Counter(part_of(ran[label.fork, label.commit, label.target].clone.verl, label.file) for label in false)
    parts = {part: (true[part], true[part] + wrong[part], everything[part]) for part in PARTS}
    return Score(true.total(), tuple(false), parts, tuple(missed), found, left_out)


def draw(runs: Iterable[Run], count: int, seed: int) -> list[tuple[Run, Finding]]:
    """`count` findings of severity `break` to judge; the same ones for the same seed and runs.

    Half of them are of verl 0.5 or older. Of that half a quarter is of modules made for one release of vLLM
    (`vllm_v_0_3_1/`): these are nearly all findings of such a tree, and alike. Within a part, fork and release take
    turns, so that no tree with a thousand findings fills the sample.
    """
    dice = random.Random(seed)
    parts: dict[str, dict[tuple[str, str], list[tuple[Run, Finding]]]] = {part: {} for part in PARTS}
    for one in runs:
        for finding in one.breaks:
            part = part_of(one.clone.verl, finding.file)
            parts[part].setdefault((one.clone.name, one.target), []).append((one, finding))
    quotas = {"legacy": count // 8, "old": count // 2 - count // 8, "new": count - count // 2}
    chosen: list[tuple[Run, Finding]] = []
    for part, quota in quotas.items():
        heaps = [dice.sample(heap, len(heap)) for _, heap in sorted(parts[part].items())]
        dice.shuffle(heaps)
        taken: list[tuple[Run, Finding]] = []
        while len(taken) < quota and any(heaps):
            taken += [heap.pop() for heap in heaps if heap][: quota - len(taken)]
        chosen += taken
    return chosen


def by_verdict(findings: Iterable[Finding], labels: Iterable[Label]) -> dict[str, list[Finding]]:
    """Findings that a label calls true, false, and those that no label judges."""
    sorted_: dict[str, list[Finding]] = defaultdict(list)
    known = list(labels)
    for finding in findings:
        verdict = next((label.verdict for label in known if label.meets(finding)), None)
        sorted_["unjudged" if verdict is None else "true" if verdict else "false"].append(finding)
    return sorted_
