"""Facts are found all at once, and one that hangs costs its own limit alone."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from patcher.messages import english, phrase
from patcher.remote.agent.facts import Fact, UnknownFact, gather, run


def test_a_fact_that_hangs_is_told_as_missing_and_the_rest_is_there() -> None:
    begun = time.monotonic()
    found, missing = gather(
        {
            "hangs": Fact(lambda: threading.Event().wait(), 0.3),
            "quick": Fact(lambda: 7, 0.1),
            "slower": Fact(lambda: time.sleep(0.1) or 8, 5.0),
        }
    )
    assert found == {"quick": 7, "slower": 8}
    assert english(missing["hangs"]) == "no answer within 0.3 s"
    assert time.monotonic() - begun < 2


def test_what_cannot_be_told_says_why() -> None:
    def untold() -> None:
        raise UnknownFact(phrase("there is no {program}", program="tmux"))

    def unreadable() -> None:
        raise PermissionError(13, "Permission denied")

    _, missing = gather({"tmux": Fact(untold, 1), "disk": Fact(unreadable, 1)})
    assert {name: english(reason) for name, reason in missing.items()} == {
        "tmux": "there is no tmux",
        "disk": "Permission denied",
    }


def test_a_bug_is_a_bug() -> None:
    with pytest.raises(ZeroDivisionError):
        gather({"bug": Fact(lambda: 1 / 0, 1)})


def test_a_program_that_hangs_is_left_after_its_limit() -> None:
    begun = time.monotonic()
    with pytest.raises(UnknownFact) as untold:
        run([sys.executable, "-c", "import time; time.sleep(60)"], 0.3)
    assert "no answer within 0.3 s" in english(untold.value.reason)
    assert time.monotonic() - begun < 5


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UnknownFact) as untold:
        run(["/no/such/program"], 1)
    assert english(untold.value.reason) == "/no/such/program: No such file or directory"
