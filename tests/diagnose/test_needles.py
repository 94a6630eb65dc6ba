"""What a pattern cannot match without, and where a block holds it."""

from __future__ import annotations

import io
import re

import ahocorasick_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patcher.diagnose.scanner import AUTOMATON_BYTES, KEPT_AT_EDGE, KEPT_LATER, Scanner, WordFinder
from patcher.logs.required_words import required_words, width
from patcher.records.symptom_parse import load_symptoms
from tests.diagnose.diagnosed import SYMPTOMS


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("No available memory", {"no available memory"}),
        ("(?:foo|bar) bazaar", {"foo bazaar", "bar bazaar"}),
        (r"(?:quick )?brown \w+ fox", {"quick brown ", "brown "}),
        (r"[Ff]ooled\s+by", {"fooled"}),
        (r"x*(?:tick|tock)s? \d+", {"tick ", "ticks ", "tock ", "tocks "}),
        (r"ab+cdef", {"cdef"}),
        (r"^abc$", {"abc"}),
        (r"abc\b def", {"abc def"}),
        (r"(?P<name>abc)+defg", {"defg"}),
        ("café at noon", {" at noon"}),
    ],
)
def test_the_words_of_a_pattern(pattern: str, words: set[str]) -> None:
    assert required_words(pattern) == words


def test_rare_words_are_chosen_before_common_ones() -> None:
    assert required_words(r"error: \w+ quagmire") == {" quagmire"}
    assert required_words(r"worker .* terminated unexpectedly") == {" terminated unexpectedly"}


@pytest.mark.parametrize("pattern", [r"\d+", "ab", "(?:abc|d)", "a?b?c?", r".*\w{8}"])
def test_a_pattern_without_a_word_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape(pattern)):
        required_words(pattern)


def test_the_least_width() -> None:
    assert [width("abc?"), width("a|bcd"), width("x{3,}")] == [2, 1, 3]


def test_no_shipped_pattern_is_tried_on_lines_that_cannot_match() -> None:
    """Each example's line holds a word of the pattern that finds it."""
    for symptom in load_symptoms():
        for match in symptom.matches:
            for example in symptom.examples:
                for line in example.log.splitlines():
                    if found := re.search(match.line, line, re.IGNORECASE):
                        held = [word for word in required_words(match.line) if word in found[0].lower()]
                        assert held, (symptom.id, match.line, line)


WORDS = ["abc", "bcd", "error: x", "zz top"]


def naive(text: bytes) -> set[tuple[int, int]]:
    return {
        (index, found.start())
        for index, word in enumerate(WORDS)
        for found in re.finditer(f"(?={re.escape(word)})".encode(), text)
    }


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "a", "b", "cd", " ", "\n", "x"]), max_size=40).map("".join))
def test_words_are_found_wherever_they_stand(text: str) -> None:
    assert {(word, start) for word, start, _ in WordFinder(WORDS).find(text.encode())} == naive(text.encode())


def test_of_a_frequent_word_the_first_and_the_last_places_count_and_of_others_all() -> None:
    words = WordFinder(WORDS)
    text = b"abc " * 1000 + b"zz top " + b"abc " * 1000
    places = [start for word, start, _ in words.find(text) if word == 0]
    assert (len(places), places[0], places[-1]) == (2 * KEPT_AT_EDGE, 0, len(text) - 4)
    assert [word for word, _, _ in words.find(text)].count(3) == 1
    assert [word for word, _, _ in words.find(text)].count(0) == 2 * KEPT_LATER
    calm = b"abc zz top"
    assert len(words.find(calm)) == 2
    assert len(words.find(calm)) == 2


def test_a_word_that_is_spent_is_not_found_again() -> None:
    words = WordFinder(WORDS)
    words.find(b"abc " * 500)
    words.drop(0)
    assert words.find(b"abc zz top " * 3) == [(3, 4, 10), (3, 15, 21), (3, 26, 32)]


def test_for_the_logs_of_one_run_the_words_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = ahocorasick_rs.BytesAhoCorasick
    monkeypatch.setattr(ahocorasick_rs, "BytesAhoCorasick", lambda *a, **k: made.append(1) or real(*a, **k))
    scanner = Scanner(SYMPTOMS)
    for number in range(20):
        scanner.scan([(f"worker-{number}.log", io.BytesIO(b"ready\n"))])
    assert len(made) == 1


def test_long_logs_are_read_as_short_ones_are() -> None:
    words = WordFinder(WORDS)
    block = b"x" * (AUTOMATON_BYTES // 3) + b"zz top"
    assert [words.find(block) for _ in range(5)] == [[(3, AUTOMATON_BYTES // 3, AUTOMATON_BYTES // 3 + 6)]] * 5
