"""The labels of public forks are whole, and are compared with runs as docs/forks.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.forks.clones import Clone, clones, own_pin
from bench.forks.labels import LABELS, PLACES, Label, load, score
from bench.forks.report import DOCUMENTS, document
from bench.forks.running import Finding, Run

LINE = ("verl/a.py", 3, "vllm.LLM.gone")


def label(*, verdict: bool, target: str = "0.11.0", line: int = 3, symbol: str = "vllm.LLM.gone") -> Label:
    return Label("me/verl", "abc", target, "verl/a.py", line, symbol, verdict, "why")


def run(*findings: Finding, crash: str = "", target: str = "0.11.0") -> Run:
    clone = Clone("me/verl", "abc", "2026-01-01", "0.5.0", Path(), "0.8.5", "setup.py")
    return Run(clone, target, 1.0, findings, crash=crash)


def test_the_labels_that_are_kept_are_two_samples_and_places_beside_them() -> None:
    labels, places = load(LABELS), load(PLACES)
    # Of 24 forks, and of 13 that the rules had not seen; docs/forks.md and docs/accuracy.md name them.
    assert len(labels) == 200 + 56
    assert sum(one.verdict for one in places) >= 100
    assert all(one.why for one in (*labels, *places))
    assert len({(one.fork, one.target, one.file, one.line, one.symbol) for one in labels}) == len(labels)


def test_a_label_with_a_missing_or_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"fork": "a/b"}\n')
    with pytest.raises(ValueError, match=r"labels\.jsonl:1: its keys are not fork, commit"):
        load(path)


def test_precision_is_of_the_labels_still_reported_and_recall_of_all_true_ones() -> None:
    found = run(
        Finding("break", *LINE), Finding("break", "verl/a.py", 9, "vllm.x"), Finding("guarded", "verl/a.py", 5, "y")
    )
    labels = [label(verdict=True), label(verdict=False, line=9, symbol="vllm.x"), label(verdict=False, line=7)]
    result = score([found], labels, [label(verdict=True, line=20), label(verdict=True)])
    assert result.precision == 0.5
    assert result.recall == 0.5
    assert [one.line for one in result.reported_false] == [9]
    assert [one.line for one in result.missed] == [20]


def test_a_symbol_may_be_named_by_its_module_or_as_a_reexport() -> None:
    assert label(verdict=True).meets(Finding("break", "verl/a.py", 3, "vllm.entrypoints.llm.LLM.gone"))
    assert label(verdict=True, symbol="vllm.old.X").meets(Finding("break", "verl/a.py", 3, "vllm.old"))
    assert not label(verdict=True).meets(Finding("break", "verl/a.py", 4, "vllm.LLM.gone"))


def test_labels_of_forks_that_were_not_run_or_crashed_do_not_count() -> None:
    result = score([run(crash="KeyError")], [label(verdict=True)], [label(verdict=True, target="0.8.5")])
    assert (result.precision, result.recall, result.left_out) == (None, None, 2)


PINS = {
    "exact": ({"setup.py": "vllm==0.8.5", "Dockerfile": "ARG VLLM_VERSION=0.9.0"}, "0.8.5"),
    "a Dockerfile's is newer than the package's limit": (
        {"requirements.txt": "vllm<=0.8.5", "docker/Dockerfile.a": "RUN pip install vllm==0.11.0"},
        "0.11.0",
    ),
    "the limit counts before a post release of it": (
        {"setup.py": "'vllm<=0.6.3'", "Dockerfile": "RUN pip install vllm==0.6.3.post1"},
        "0.6.3",
    ),
    "only a lower bound": ({"requirements.txt": "vllm>=0.7.3"}, "0.7.3"),
    "none": ({"setup.py": "torch==2.8"}, ""),
    "a comment is none": ({"requirements.txt": "# vllm==0.8.5"}, ""),
}


@pytest.mark.parametrize(("files", "pin"), PINS.values(), ids=PINS)
def test_the_release_that_a_fork_names(tmp_path: Path, files: dict[str, str], pin: str) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert own_pin(tmp_path)[0] == pin


def test_trees_are_found_in_a_folder_and_one_level_below(tmp_path: Path) -> None:
    for root in ("one", "two/inner"):
        (tmp_path / root / "verl" / "trainer").mkdir(parents=True)
        (tmp_path / root / "verl" / "__init__.py").write_text("")
        (tmp_path / root / "verl" / "protocol.py").write_text("")
        (tmp_path / root / "verl" / "trainer" / "__init__.py").write_text("")
    (tmp_path / "no-tree").mkdir()
    assert [clone.root.relative_to(tmp_path).as_posix() for clone in clones(tmp_path)] == ["one", "two/inner"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_names_forks_commits_and_the_date(name: str) -> None:
    labels = [label(verdict=True)]
    text = document(DOCUMENTS[name], [run(Finding("break", *LINE))], score([run()], labels, []), labels, "2026-02-03")
    assert "me/verl" in text
    assert "2026-02-03" in text
    assert "abc" in text
