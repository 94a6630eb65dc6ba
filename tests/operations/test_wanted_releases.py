"""Which releases people mean."""

from __future__ import annotations

import pytest

from patcher.check.matrix import known_to_records, parse_against, wanted_releases
from patcher.errors import UsageError
from patcher.records.load import load

KNOWN = ("0.10.0", "0.9.0", "0.9.1rc1", "0.9.1", "0.20.2", "0.21.0.dev3", "0.8.5.post1")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (">=0.9", ("0.9.0", "0.9.1", "0.10.0", "0.20.2")),
        ("", ("0.8.5.post1", "0.9.0", "0.9.1", "0.10.0", "0.20.2")),
        ("0.9.1", ("0.9.1",)),
        ("==0.9.*", ("0.9.0", "0.9.1")),
        ("0.9.1rc1", ("0.9.1rc1",)),
        (">=0.9.1rc1,<0.10", ("0.9.1rc1", "0.9.1")),
        ("vllm>=0.10", ("0.10.0", "0.20.2")),
    ],
)
def test_final_releases_oldest_first_and_others_when_named(asked: str, found: tuple[str, ...]) -> None:
    assert wanted_releases("vllm", asked, KNOWN) == found


def test_a_range_without_releases_says_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        wanted_releases("vllm", ">=1", KNOWN)
    assert "no release of vllm is in >=1" in str(caught.value)
    assert "0.20.2" in str(caught.value.advice)


@pytest.mark.parametrize("text", [">=", "about 0.9", "~0.9"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no version range"):
        wanted_releases("vllm", text, KNOWN)


@pytest.mark.parametrize(
    ("items", "varying", "fixed"),
    [
        ((), ("vllm", ">=0.9.0"), {}),
        (("vllm",), ("vllm", ">=0.9.0"), {}),
        (("vllm>=0.18,<0.20",), ("vllm", "<0.20,>=0.18"), {}),
        (("vllm==0.20.2",), ("vllm", "==0.20.2"), {}),
        (("transformers==4.57.6", "vllm>=0.20"), ("vllm", ">=0.20"), {"transformers": "4.57.6"}),
        (("vllm==0.20.2", "transformers>=5"), ("transformers", ">=5"), {"vllm": "0.20.2"}),
    ],
)
def test_one_package_varies_and_pinned_ones_stay(
    items: tuple[str, ...], varying: tuple[str, str], fixed: dict[str, str]
) -> None:
    assert parse_against(items) == (varying, fixed)


@pytest.mark.parametrize("items", [("vllm>=0.9", "torch>=2"), ("vllm >> 2",), ("==",)])
def test_more_than_one_that_varies_is_refused(items: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse_against(items)


def test_the_records_speak_of_verl_from_0_4_on() -> None:
    assert known_to_records(load()) == ">=0.4"
