"""Two logs beside each other."""

from __future__ import annotations

import io

from patcher.diagnose.compare_logs import MOST, Difference, compare
from tests.diagnose.diagnosed import TRACEBACK, healthy


def compared(log: str, good: str) -> Difference:
    return compare([("log", io.BytesIO(log.encode()))], [("good", io.BytesIO(good.encode()))])


def test_a_log_beside_itself_or_a_run_of_another_day_has_no_difference() -> None:
    assert compared(healthy(), healthy()) == Difference()
    other = healthy().replace("pid=9", "pid=77").replace("20:5", "21:3").replace("/home/user", "/data/other/place")
    assert compared(other, healthy()) == Difference()


def test_what_would_have_come_next_and_what_came_instead() -> None:
    good = healthy()
    at = good.rindex("\n", 0, good.index("AgentLoopManager: ")) + 1
    trouble = f"(TaskRunner pid=9) {TRACEBACK}ValueError: port 45611 is taken\n"
    found = compared(good[:at] + trouble, good)
    assert found.missing[0].text.startswith("AgentLoopManager: ")
    assert "Training from scratch" in [place.text for place in found.missing]
    assert found.missing[0].number == good[:at].count("\n") + 1
    assert [place.text for place in found.added] == [
        "Traceback (most recent call last):",
        "ValueError: port 45611 is taken",
    ]
    assert found.added[-1].number == good[:at].count("\n") + 4


def test_only_the_most_telling_lines_are_told_in_order() -> None:
    words = [
        "alpha",
        "bravo",
        "charlie",
        "delta",
        "echo",
        "foxtrot",
        "golf",
        "hotel",
        "india",
        "juliett",
        "kilo",
        "lima",
    ]
    good = "start\n" + "".join(f"loading {word} now\n" for word in words)
    found = compared("start\n" + "".join(f"going {word}\n" for word in words) + "it failed\n", good)
    assert [place.number for place in found.missing] == list(range(2, 2 + MOST))
    assert [place.text for place in found.added][-2:] == ["going lima", "it failed"]
    assert len(found.added) == MOST


def test_bars_numbers_and_warnings_tell_nothing() -> None:
    good = "ready\nLoading:  10%|#  | 1/10 [00:01<00:09]\nx.py:3: UserWarning: slow\n12 34 0x7f\nstep:3 - loss:0.1\n"
    assert compared("ready\n", good).missing[0].text == "step:3 - loss:0.1"
    assert len(compared("ready\nstep:900 - loss:0.77\n", good).missing) == 0
