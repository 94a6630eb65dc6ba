"""A live process tells what it is at through probing, and is changed only by who agreed to the risk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patcher.cli.app import run
from tests.watch.probe.conftest import Start

pytestmark = pytest.mark.network
SCRIPT = """
import time
class PpoTrainer:
    def fit(self):
        print("ready")
        while True:
            time.sleep(0.1)
trainer = PpoTrainer()
trainer.global_steps, trainer.config = 7, {"grad_clip": 1.0}
trainer.fit()
"""


def asked(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run(["probe", *arguments, "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)["answers"]


def test_questions_that_need_no_torch(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    (pid,) = start(SCRIPT)
    named = ("--pid", str(pid))
    (frames,) = asked(capsys, "backtrace", *named)
    assert [row["function"] for row in frames["rows"]] == ["fit", "<module>"]
    (steps,) = asked(capsys, "step", *named)
    assert [(row["trainer"], row["step"]) for row in steps["rows"]] == [("PpoTrainer", 7)]
    (clips,) = asked(capsys, "clip", *named)
    assert clips["rows"] == [{"of": "PpoTrainer", "name": "grad_clip", "value": 1.0}]
    (threads,) = asked(capsys, "threads", *named)
    (main,) = [row for row in threads["rows"] if row["thread"] == "main"]
    assert main["where"].endswith(" fit")
    (rates,) = asked(capsys, "rate", *named)
    assert rates["rows"] == []


def test_nothing_is_done_without_a_yes(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    (pid,) = start(SCRIPT)
    assert run(["probe", "rate", "0.5", "--write", "--pid", str(pid)]) == 1
    message = capsys.readouterr()
    assert message.out == ""
    assert "drift apart" in message.err
    assert "--yes" in message.err


def test_a_collective_call_without_all_ranks_is_refused(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    (pid,) = start(SCRIPT)
    assert run(["probe", "all-reduce", "--write", "--yes", "--pid", str(pid)]) == 2
    assert "blocks the job for good" in capsys.readouterr().err


def test_a_process_without_probing_says_what_it_lacks(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    (with_probing,), (without,) = start(SCRIPT), start(SCRIPT, probing=False)
    first, second = asked(capsys, "backtrace", "--pid", str(with_probing), "--pid", str(without), code=5)
    assert first["rows"]
    assert "PROBING=2" in second["error"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("speed", "--pid", "1"), "there is no speed"),
        (("step",), "no process is named"),
        (("rate", "-3", "--write", "--pid", "1"), "No such option"),
        (("rate", "fast", "--write", "--pid", "1"), "a number above 0"),
        (("checkpoint", "--write", "--pid", "1"), "wants FILE"),
        (("step", "--pid", "4194304"), "there is no process 4194304"),
        (("step", "--target", "127.0.0.1:1"), "probing, which asks 127.0.0.1:1, is not installed here"),
    ],
)
def test_what_cannot_be_asked(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run(["probe", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_without_a_question_all_of_them_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown for name in ("backtrace", "gradients", "growth", "all-reduce"))
    assert "blocks the whole job for good" in shown
