"""The bench takes turns, uses medians, and fails where a limit is missed by more than the tolerance."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import __main__ as main
from bench.clock import Times, Trial, in_turn, once
from bench.measures import Figure, Unmeasured


def test_commands_take_turns_and_every_other_round_goes_backwards() -> None:
    order: list[str] = []
    trials = [Trial([sys.executable, "-c", ""], prepare=lambda name=name: order.append(name)) for name in "ab"]
    times = in_turn(trials, rounds=2)
    assert "".join(order) == "ab" + "ab" + "ba"
    assert [len(found.runs) for found in times] == [2, 2]


def test_a_command_that_fails_ends_the_bench_with_its_output() -> None:
    with pytest.raises(SystemExit, match="exit code 7"):
        once(Trial([sys.executable, "-c", "raise SystemExit(7)"]))


def figure(ours: tuple[float, ...], limit: float) -> Figure:
    return Figure("a / b", Times(ours), Times((1.0, 1.0)), limit)


@pytest.mark.parametrize(
    ("limit", "options", "code"),
    [(2.5, [], 0), (1.9, [], 1), (1.9, ["--tolerance", "1.25"], 0), (1.5, ["--tolerance", "1.25"], 1)],
)
def test_the_exit_code_says_whether_limits_are_kept(
    limit: float, options: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def figures(folder: Path, rounds: int, *, runner: bool) -> Iterator[Figure]:
        yield figure((1.0, 2.0, 9.0), limit)

    monkeypatch.setattr(main, "figures", figures)
    monkeypatch.setattr(sys, "argv", ["bench", "--json", *options])
    assert main.main() == code
    (found,) = json.loads(capsys.readouterr().out)["figures"]
    assert found["ratio"] == 2.0
    assert found["within"] is (limit >= 2.0)


def test_what_cannot_be_measured_is_told_and_does_not_pass_for_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def figures(folder: Path, rounds: int, *, runner: bool) -> Iterator[Figure | Unmeasured]:
        yield figure((1.0, 1.0), 2)
        yield Unmeasured("a host / nothing", "another user needs root")

    monkeypatch.setattr(main, "figures", figures)
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert main.main() == 0
    answer = capsys.readouterr()
    assert "NOT MEASURED: another user needs root" in answer.out
    assert "not measured: 1 of 2" in answer.err
    monkeypatch.setattr(sys, "argv", ["bench", "--json"])
    main.main()
    assert json.loads(capsys.readouterr().out)["figures"][1] == {
        "name": "a host / nothing",
        "unmeasured": "another user needs root",
    }
