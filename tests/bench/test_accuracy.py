"""Labels made by execution: `check` stays accurate on them, and the labeller tells what holds from what does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.accuracy import labels as kept
from bench.accuracy.figures import Score, scores
from bench.accuracy.labels import FOLDER, PACKAGES, Label, labels, releases
from bench.accuracy.ours import Checker, judged, pairs
from bench.accuracy.uses import uses
from patcher.analysis.findings import Finding, Unresolved
from patcher.i18n import phrase
from patcher.packages.releases import sources
from tests.lanes import ALL_CASES, one_in

WITNESS = Path(kept.__file__).parent

OLD = """
class Engine:
    def __init__(self, model, *, quiet=False): ...
    def stop(self, force): ...
    def helper(self) -> "Engine": ...
def start(engine, config, state): ...
"""
NEW = """
import compiled_part
class Engine:
    def __init__(self, model): ...
def start(engine, state, config=None): ...
"""
TREE = """
from pkg.core import Engine, start
from pkg.gone import nothing

engine = Engine("m", quiet=True)
engine.helper().stop()
start(engine, 1, 2)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl" / "user.py").write_text(TREE)
    return tmp_path


def witness(folder: Path, source: str, probes: list[object]) -> dict[str, list[object]]:
    package = folder / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "core.py").write_text(source)
    job = folder / "job.json"
    asked = [[json.dumps(probe), probe] for probe in probes]
    job.write_text(json.dumps({"package": "pkg", "folder": str(folder), "paths": [str(folder)], "probes": asked}))
    done = subprocess.run(
        [sys.executable, "-m", "witness", str(job)], cwd=WITNESS, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line[1]: line[2] for line in lines if line[0] == "end"}


def answers(tree: Path, folder: Path, source: str) -> dict[tuple[str, str], list[object]]:
    folder.mkdir()
    found = list(uses(tree, ("pkg",)))
    said = witness(folder, source, [use.probe for use in found])
    return {(use.kind, use.symbol): said[json.dumps(use.probe)] for use in found}


def test_what_a_release_offers_is_found_by_executing_it(tree: Path, tmp_path: Path) -> None:
    old = answers(tree, tmp_path / "old", OLD)
    assert old["import", "pkg.core.Engine"] == ["holds"]
    assert old["call", "pkg.core.Engine"][1:3] == [{}, ""]
    assert old["attribute", "pkg.core.Engine().helper().stop"] == ["holds"]
    assert "force" in str(old["call", "pkg.core.Engine().helper().stop"][2])


def test_what_a_release_lacks_is_broken_and_what_is_missing_around_it_is_stood_in_for(
    tree: Path, tmp_path: Path
) -> None:
    new = answers(tree, tmp_path / "new", NEW)
    assert new["import", "pkg.core.Engine"] == ["holds"]
    assert new["import", "pkg.gone.nothing"][0] == "broken"
    assert "quiet" in str(new["call", "pkg.core.Engine"][1])
    assert new["attribute", "pkg.core.Engine().helper"][0] == "broken"
    assert new["attribute", "pkg.core.Engine().helper().stop"][0] == "unknown"


def label(kind: kept.Kind, symbol: str, state: kept.State, line: int = 3) -> Label:
    name = symbol.partition("(")[2].rstrip(")") or symbol.rpartition(".")[2]
    return Label("0.7.0", "vllm", "0.20.2", "verl/a.py", (line,), kind, symbol, name, state, "")


def finding(kind: str, symbol: str, line: int = 3) -> Finding:
    return Finding("verl/a.py", line, symbol, kind, "break", phrase("{parent} has no {name}", parent="", name=""))  # type: ignore[arg-type]


def test_a_finding_counts_for_the_label_that_it_is_about_alone() -> None:
    given = [
        label("keyword", "vllm.LLM(model)", "holds"),
        label("keyword", "vllm.LLM(gone)", "broken"),
        label("positional", "vllm.LLM", "holds"),
        label("attribute", "vllm.LLM", "holds"),
        label("import", "vllm.away.Name", "broken", 9),
        label("attribute", "vllm.open_", "holds", 12),
    ]
    findings = [finding("argument-removed", "vllm.LLM(gone)"), finding("module-removed", "vllm.away", 9)]
    said = judged(given, findings, [Unresolved("verl/a.py", 12, "vllm.open_", "")])
    assert [each.said for each in said] == ["silent", "broken", "silent", "silent", "broken", "unresolved"]
    total = scores(said)["total"]
    assert (total.precision, total.recall, total.open_sound) == (1.0, 1.0, 1)


def test_a_broken_use_that_is_left_open_counts_as_missed() -> None:
    said = judged([label("attribute", "vllm.x", "broken")], [], [Unresolved("verl/a.py", 3, "vllm.x", "")])
    assert scores(said)["total"] == Score(missed=1, open_broken=1)


@pytest.mark.slow
def test_every_pair_is_labelled() -> None:
    assert len(pairs(["vllm"])) >= 8 * 12
    for verl, package, version in pairs():
        decided = [each for each in labels(verl, package, version) if each.state != "unknown"]
        assert len(decided) > 100, (verl, package, version)


@pytest.mark.network
@pytest.mark.parametrize(
    ("verl", "package", "version"),
    one_in(3, [("0.8.0", "numpy", "2.4.6"), ("0.7.0", "vllm", "0.20.2"), ("0.6.1", "vllm", "0.12.0")]),
)
def test_check_is_accurate_on_a_sample(verl: str, package: str, version: str) -> None:
    """numpy 2.4 took `newshape` from `np.reshape`, which verl 0.8 passes."""
    accurate(scores(Checker().judged(verl, package, version))["total"], package)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_check_is_accurate_on_the_labels_of_many_releases(package: str) -> None:
    """Of each sixteenth release a fifth of the pairs; all with UKY_PATCH_ALL_CASES=1, and in `make bench-accuracy`."""
    checker = Checker()
    chosen = releases(package)[:: 1 if ALL_CASES else 16]
    found = [pair for pair in pairs([package]) if pair[2] in chosen][:: 1 if ALL_CASES else 5]
    accurate(scores(each for pair in found for each in checker.judged(*pair))["total"], package)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("verl", sorted(kept.WORKS_WITH)[:: 1 if ALL_CASES else 2])
def test_the_labelled_uses_are_those_of_the_release(verl: str) -> None:
    rows = [json.loads(line) for line in (FOLDER / f"verl-{verl}.jsonl").read_text().splitlines()]
    found = list(uses(sources("verl", verl), PACKAGES))
    assert [(use.file, use.line, use.symbol) for use in found] == [(r["file"], r["line"], r["symbol"]) for r in rows]


def accurate(total: Score, package: str) -> None:
    assert total.precision >= 0.97
    assert total.unresolved <= (0.6 if package in ("numpy", "torch") else 0.05), "half of both is compiled"
    assert total.recall >= 0.97
