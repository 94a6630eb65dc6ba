"""Courses of metrics."""

from __future__ import annotations

import io

import pytest

from patcher.diagnose.evidence import LogLine
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.metrics import MetricTrends
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms
from tests.diagnose.diagnosed import symptom


def began(test: str, values: list[object], *, steps: int = 3, more: str = "", others: str = "") -> int | None:
    """The step at which a trend on `actor/loss` began that holds at the end."""
    trend = f"[[trend]]\nmetric = 'actor/loss'\ntest = '{test}'\nsteps = {steps}\n{more}"
    courses = MetricTrends([symptom("course", trend, kind="course")])
    for step, value in enumerate(values, 1):
        line = f"step:{step} - x/first:1 - actor/loss:{value} - actor/loss_max:9{others.format(step=step)}"
        courses.feed(line.encode(), lambda step=step, line=line: LogLine("log", step, step, line), step)  # type: ignore[misc]
    found = courses.holding()
    return found[0].first.number if found else None


@pytest.mark.parametrize(
    ("test", "values", "step"),
    [
        ("nan", [1, "nan", "nan", "nan"], 4),
        ("nan", [1, "np.float64(nan)", "-inf", "inf", "nan"], 4),
        ("nan", ["nan", "nan", "nan", 1], None),
        ("nan", ["nan", "nan"], None),
        ("constant", [5, 1.25, 1.25, 1.25, 1.25], 4),
        ("constant", [1.25, 1.25, 1.26], None),
        ("rising", [1, 2, 3.5, 4], 3),
        ("rising", [4, 3, 2, 1], None),
        ("rising", [100, 100.001, 100.002], None),
        ("rising", [1, 9, 2], None),
        ("falling", [1e-3, 5e-4, 1e-4], 3),
        ("falling", [1, "nan", 0.1], None),
    ],
)
def test_a_trend_holds_where_its_last_steps_say_so(test: str, values: list[object], step: int | None) -> None:
    assert began(test, values) == step


def test_limits() -> None:
    assert began("above", [1, 11, 12, 13], more="value = 10") == 4
    assert began("above", [11, 12, 1, 13, 14], more="value = 10") is None
    assert began("above", [11, 12, 13, 1, 14, 15, 16], more="value = 10") == 7
    assert began("above", [11, 12, 9], more="value = 10") is None
    assert began("below", [1, 2, 3], more="value = 10") == 3


def test_constant_asks_whether_others_have_changed_meanwhile() -> None:
    more = "also = ['critic/score']"
    assert began("constant", [1, 1, 1], more=more, others=" - critic/score:{step}") == 3
    assert began("constant", [1, 1, 1], more=more, others=" - critic/score:7") is None
    assert began("constant", [1, 1, 1], more=more) is None


def test_metrics_may_come_and_go_and_change_places() -> None:
    trend = "[[trend]]\nmetric = 'actor/loss'\ntest = 'nan'\nsteps = 2"
    courses = MetricTrends([symptom("course", trend, kind="course")])
    for step, line in enumerate(
        ["a:1 - actor/loss:nan", "b:1 - a:1", "actor/loss:nan - a:1", "a:1 - b:2 - actor/loss:nan"], 1
    ):
        courses.feed(f"step:{step} - {line}".encode(), lambda step=step: LogLine("log", step, step, ""), step)  # type: ignore[misc]
    (hit,) = courses.holding()
    assert (hit.first.number, hit.last.number, hit.count) == (3, 4, 2)


def test_what_only_begins_like_a_number_is_none() -> None:
    assert began("above", [11, "1.2.3", 12, 13], more="value = 10") == 4


def test_a_gradient_that_is_a_number_again_is_no_bad_course() -> None:
    line = "Epoch [1][{0}/900]  lr: 1e-3, memory: 7239, loss: 1.9091, grad_norm: {1}\n"
    lost = "".join(line.format(100 * at, norm) for at, norm in enumerate(("nan", "3.98"), 1))
    scanner = Scanner(load_symptoms())

    def found(log: str) -> list[str]:
        whole = diagnosis_of(scanner.scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
        return [one.id for one in whole.findings]

    assert found(lost) == []
    assert found(line.format(100, "nan")) == ["loss-or-gradient-nan"]
    assert found(lost + line.format(300, "nan")) == ["loss-or-gradient-nan"]
