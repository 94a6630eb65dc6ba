"""The table of versions and specifiers: nightlies, local parts, and forks between two releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from patcher.packages.versions import No, Undecided, Yes, is_prerelease, satisfies

OPERATORS = [">=", "<=", ">", "<", "==", "!="]

DEPENDENCY = [
    ("0.12.0", ">=0.12", Yes),
    ("0.11.2", ">=0.12", No),
    ("0.12.0rc1", ">=0.12", Yes),
    ("0.12.0rc1", "<0.12", No),
    ("0.12.0rc1", "==0.12.*", Yes),
    ("0.11.1rc2.dev3+g1a2b3c4.cu129", ">=0.11.1,<0.12", Yes),
    ("0.11.1rc2.dev3+g1a2b3c4.cu129", "<0.11.1", No),
    ("0.11.1rc2.dev3+g1a2b3c4.cu129", ">0.11.1", No),
    ("0.12.0rc0", ">=0.12.0rc1", No),
    ("0.12.0rc1", ">=0.12.0rc1", Yes),
    ("2.8.0+cu129", "==2.8.0", Yes),
    ("2.8.0+cu129", "<=2.8.0", Yes),
    ("2.8.0+cu129", ">2.8.0", No),
    ("2.8.0+cu129", "!=2.8.0", No),
    ("2.8.0+cu129", "==2.8.0+cu129", Yes),
    ("2.8.0+cu128", "==2.8.0+cu129", No),
    ("0.11.0+empty", ">=0.11,<0.12", Yes),
    ("0.10.1.1", ">=0.10.1,<0.10.2", Yes),
    ("0.10.1.post1", ">=0.10.1", Yes),
    ("0.10.1.post1.dev4", ">=0.10.1.post1", Yes),
    ("2.11.0.dev20260101+cu130", ">=2.11", Yes),
    ("v0.12.0", ">=0.12", Yes),
    ("12.9", ">=12.8", Yes),
    ("3.11", ">=3.10,<3.14", Yes),
    ("0.12.0", "", Yes),
    ("dev", ">=0.12", Undecided),
    ("dev", "", Yes),
]

TREE = [
    ("0.6.1", ">=0.6,<0.7", Yes),
    ("0.7.0", "<0.7", No),
    ("0.7.0.dev0", "<0.7", Undecided),
    ("0.7.0.dev0", ">=0.7", Undecided),
    ("0.7.0.dev0", ">=0.6,<0.7", Undecided),
    ("0.7.0.dev0", ">=0.7,<0.8", Undecided),
    ("0.7.0.dev0", "==0.6.*", Undecided),
    ("0.7.0.dev0", "==0.6.1", Undecided),
    ("0.7.0.dev0", "<=0.6.1", Undecided),
    ("0.7.0.dev0", ">=0.6,<0.8", Undecided),
    ("0.7.0.dev0", ">=0.6.1", Undecided),
    ("0.7.0.dev0", ">0.6.1", Undecided),
    ("0.7.0.dev0", ">=0.8", Undecided),
    ("0.7.0.dev0", ">=0.9", No),
    ("0.7.0.dev0", ">=0.6,<0.9", Yes),
    ("0.7.0.dev0", "<0.6", No),
    ("0.7.0.dev0", "==0.5.0", No),
    ("0.7.0.dev", ">=0.6,<0.7", Undecided),
    ("0.7.0.dev0+local.edit", ">=0.6,<0.9", Yes),
    ("0.7.1.dev3", "<0.7.1", Undecided),
    ("0.7.1.dev3", ">=0.7,<0.8", Undecided),
    ("0.7.0.dev0", ">=0.7.0.dev0", Yes),
    ("0.7.0rc1", "<0.7", No),
    ("0.7.0rc1", ">=0.7", Yes),
    ("1.0.0.dev0", "<1", Undecided),
    ("1.0.0.dev0", ">=0.9", Undecided),
]


@pytest.mark.parametrize(("version", "specifier", "verdict"), DEPENDENCY)
def test_dependency(version: str, specifier: str, verdict: type) -> None:
    assert type(satisfies(version, specifier, kind="dependency")) is verdict


@pytest.mark.parametrize(("version", "specifier", "verdict"), TREE)
def test_tree(version: str, specifier: str, verdict: type) -> None:
    assert type(satisfies(version, specifier, kind="tree")) is verdict


def test_a_nightly_is_said_to_be_one() -> None:
    verdict = satisfies("0.12.0rc1", ">=0.12", kind="dependency")
    assert isinstance(verdict, Yes)
    assert str(verdict.reason) == "0.12.0rc1 is a pre-release and counts as 0.12.0"


def test_a_development_version_says_between_what_it_lies() -> None:
    verdict = satisfies("0.7.0.dev0", "<0.7", kind="tree")
    assert isinstance(verdict, Undecided)
    assert str(verdict.reason) == "0.7.0.dev0 is like a release beside 0.7.0, and not all of these are in <0.7"


@pytest.mark.parametrize("version", ["0.12.0", "2.9.0+cu129", "0.10.post1"])
def test_releases(version: str) -> None:
    assert not is_prerelease(version)


@pytest.mark.parametrize("version", ["0.12.0rc1", "0.7.0.dev", "0.11.1rc2.dev3+g1a2b3c4.cu129", "dev"])
def test_no_releases(version: str) -> None:
    assert is_prerelease(version)


numbers = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(numbers, st.sampled_from(["", "+cu129"]), st.lists(st.tuples(st.sampled_from(OPERATORS), numbers), min_size=1))
def test_plain_numbers_are_compared_as_packaging_does(version: str, local: str, clauses: list[tuple[str, str]]) -> None:
    specifier = ",".join(operator + number for operator, number in clauses)
    expected = Yes if SpecifierSet(specifier).contains(version) else No
    assert type(satisfies(version + local, specifier, kind="dependency")) is expected
