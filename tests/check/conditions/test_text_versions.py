"""Versions that are compared as text."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair


def found(root: Path, text: str, version: str = "0.20.2", module: str = "trainer/main_ppo.py") -> list[Finding]:
    files = {"verl/__init__.py": "", "verl/trainer/__init__.py": "", f"verl/{module}": text, "vllm/__init__.py": ""}
    files["verl/place.py"] = 'from importlib.metadata import version\nVLLM = version("vllm")\nNEWEST = "0.11.0"\n'
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(content))
    target = Target({"vllm": version}, {"vllm": Symbols(root / "vllm")}, {"vllm": version})
    report = check_pair(Project(root), target, verl="0.7.0")
    return [finding for finding in report.findings if finding.kind == "version-compared-as-text"]


MAIN = "import vllm\n\ndef main():\n    if vllm.__version__ >= '0.8':\n        print(1)\n"


def test_one_that_answers_wrongly_here_breaks(tmp_path: Path) -> None:
    (one,) = found(tmp_path, MAIN)
    assert (one.line, one.severity, one.package, one.function) == (4, "break", "vllm", "main")


def test_one_that_happens_to_answer_rightly_is_told_all_the_same(tmp_path: Path) -> None:
    (one,) = found(tmp_path, MAIN, version="0.9.1")
    assert one.severity == "optional"


@pytest.mark.parametrize(
    "test",
    [
        "'0.9.2' > '0.11.0'",
        "VLLM < NEWEST",
        "vllm.__version__.split('.') >= '0.8.0'.split('.')",
        "current() <= '0.9.0'",
    ],
)
def test_through_constants_and_helpers(tmp_path: Path, test: str) -> None:
    text = "import vllm\nfrom importlib.metadata import version\nfrom verl.place import NEWEST, VLLM\n"
    text += f"def current(pkg='vllm'):\n    return version(pkg)\n\nFLAG = {test}\n"
    assert len(found(tmp_path, text)) == 1


def test_a_helper_that_compares_texts(tmp_path: Path) -> None:
    text = "from importlib.metadata import version  # vllm\n\ndef ge(minver='0.8.0'):\n"
    (one,) = found(tmp_path, text + "    return version('vllm') >= minver\n")
    assert (one.line, one.function) == (4, "ge")


@pytest.mark.parametrize(
    "test",
    [
        "version.parse(vllm.__version__) >= version.parse('0.8')",
        "vllm.__version__ == '0.12.0'",
        "vllm.__version_tuple__ > (0, 8)",
        "'abc' < 'abd'",
        "megatron.__version__ >= '0.13.0'",
        "len(vllm.__version__) > 3",
    ],
)
def test_a_proper_comparison_is_not_told(tmp_path: Path, test: str) -> None:
    assert not found(tmp_path, f"import vllm, megatron\nfrom packaging import version\nFLAG = {test}\n")


def test_both_branches_of_a_wrong_comparison_are_told(tmp_path: Path) -> None:
    # As texts, 0.20.2 is older than 0.6.3; once that is repaired, the other branch runs and fails.
    text = "from importlib.metadata import version\n\nif version('vllm') <= '0.6.3':\n    from vllm import Old\n"
    found(tmp_path, text + "else:\n    from vllm.worker import New\n")
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(tmp_path / "vllm")}, {"vllm": "0.20.2"})
    report = check_pair(Project(tmp_path), target, verl="0.2.0")
    broken = {finding.symbol for finding in report.findings if finding.severity == "break"}
    assert {"vllm.Old", "vllm.worker.New", "vllm.__version__"} <= broken


def test_what_is_told_by_a_mode_that_each_branch_sets(tmp_path: Path) -> None:
    # Which mode it is stays open, though both are texts that are not empty.
    text = """
    from importlib.metadata import version

    if version('vllm') <= '0.6.3':
        kind = 'old'
    else:
        kind = 'new'

    def main():
        if kind == 'old':
            import vllm.gone
        elif kind == 'new':
            import vllm.lost
        if kind is None:
            import vllm.never
    """
    found(tmp_path, text)
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(tmp_path / "vllm")}, {"vllm": "0.20.2"})
    report = check_pair(Project(tmp_path), target, verl="0.2.0")
    told = {finding.symbol: finding.severity for finding in report.findings}
    assert (told["vllm.gone"], told["vllm.lost"]) == ("break", "break")
    assert told.get("vllm.never") != "break"


def test_a_feature_that_is_off_stays_one_where_the_other_mode_runs_it_always(tmp_path: Path) -> None:
    # Whoever trains with an adapter fails here, so that it must not be hidden as another release's code.
    text = """
    from importlib.metadata import version
    from packaging.version import Version

    if Version(version('vllm')) <= Version('0.6.3'):
        kind = 'old'
    else:
        kind = 'new'

    class Rollout:
        def __init__(self):
            import vllm.gone

    def main(config):
        if kind == 'old':
            Rollout()
        elif kind == 'new':
            if config.lora_rank > 0:
                Rollout()
    """
    found(tmp_path, text)
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(tmp_path / "vllm")}, {"vllm": "0.20.2"})
    report = check_pair(Project(tmp_path), target, verl="0.2.0")
    assert [finding.severity for finding in report.findings if finding.symbol == "vllm.gone"] == ["optional"]
