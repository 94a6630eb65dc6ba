"""Sentences with the text of others in them, and sentences that others sent."""

from __future__ import annotations

import resource
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patcher.i18n import Phrase, phrase, show
from patcher.i18n.codec import decode
from tests.terminal.hostile import TEXTS, steering

EVIL = (
    "{x.__class__.__init__.__globals__}",
    "{x[0]}",
    "{x!a}",
    "{x:>1000000000}",
    "{x:0999999999d}",
    "{x:.999999999f}",
    "{x:{y}}",
    "{x!r:>{y}}",
    "{0}",
    "{}",
    "{x",
    "x}",
    "{missing}",
    "{x:%Y}",
    "{x:>1000}",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | st.fixed_dictionaries(
            {
                "template": TEXTS | st.sampled_from(EVIL) | st.just("{x} of {y}"),
                "fields": st.dictionaries(st.sampled_from(["x", "y"]) | TEXTS, inner, max_size=3),
            }
        )
        | st.fixed_dictionaries({"parts": st.lists(inner, max_size=3), "separator": TEXTS})
    ),
    max_leaves=12,
)


@given(TEXTS)
def test_a_value_stays_on_its_line(text: str) -> None:
    for template in ("{x}", "{x!r}", "{x:<9}", "a {x} b"):
        for tongue in ("en", "zh"):
            shown = phrase(template, x=text).render(tongue)  # type: ignore[arg-type]
            assert steering(shown, own=False) == []
            assert "\n" not in shown
            assert "\t" not in shown


def test_programs_get_values_as_they_are() -> None:
    assert str(phrase("{x}", x="a\n\x1b")) == "a\n\x1b"


def test_a_sentence_in_a_sentence_keeps_its_lines() -> None:
    from patcher.i18n import Phrases

    told = phrase("{cause}", cause=Phrases((phrase("{x}", x="a\nb"), "c"), "\n  "))
    assert told.render("en") == "a\\nb\n  c"


@pytest.mark.parametrize("template", EVIL)
def test_a_template_that_does_more_than_name_values_is_shown_as_it_is(template: str) -> None:
    assert show(decode({"template": template, "fields": {"x": "5", "y": 9}}), "en") == template


@pytest.mark.parametrize("template", ["{x} of {y}", "{x!r}", "{x:>9}", "{y:.1f}", "{y:,}", "{{{x}}}"])
def test_plain_ones_are_filled(template: str) -> None:
    told = decode({"template": template, "fields": {"x": "5", "y": 9}})
    assert str(told) == template.format(x="5", y=9)


@given(VALUES)
def test_whatever_comes_is_told(value: Any) -> None:
    told = decode(value)
    for tongue in ("en", "zh"):
        assert isinstance(show(told, tongue), str)  # type: ignore[arg-type]
    str(told)


def test_sentences_in_sentences_do_not_fill_the_memory() -> None:
    value: Any = "x" * 100
    for _ in range(15):
        value = {"template": "{x}" * 100, "fields": {"x": value}}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(str(decode(value))) < 1 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_deep_ones_are_text() -> None:
    value: Any = "x"
    for _ in range(500):
        value = {"template": "{x}", "fields": {"x": value}}
    assert isinstance(decode(value), Phrase)
    assert isinstance(str(decode(value)), str)
