"""Since when: the first release of the last run that shows a finding, from few looks."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.history import Bisection, with_since
from patcher.check.history import History as Past
from patcher.check.pair import check_pair
from patcher.check.targets import Against, Located, Released
from patcher.diagnose.release_search import first
from tests.check.judging.conftest import write

RELEASES = [str(number) for number in range(64)]


class History:
    """Which releases show what; counts the looks."""

    def __init__(self, shown: Mapping[str, set[int]], lost: set[int] | None = None) -> None:
        self.shown, self.lost, self.looks = shown, lost or set(), 0

    def look(self, release: str, wanted: AbstractSet[str]) -> set[str] | None:
        self.looks += 1
        return None if int(release) in self.lost else {name for name in wanted if int(release) in self.shown[name]}

    def since(self, *, most: int = 40, known_good: tuple[str, ...] = ()) -> dict[str, str | None]:
        found = frozenset(self.shown)
        return Bisection(RELEASES, found, self.look, "64", most).run(known_good)


@pytest.mark.parametrize("first", [1, 2, 5, 31, 32, 33, 60, 62, 63])
def test_a_finding_that_came_once_is_dated_to_the_release(first: int) -> None:
    history = History({"gone": set(range(first, 64))})
    assert history.since() == {"gone": str(first)}
    assert history.looks <= 14


def test_one_that_only_the_target_shows_is_dated_to_it() -> None:
    assert History({"gone": set()}).since() == {"gone": "64"}


def test_one_that_every_release_shows_has_no_date() -> None:
    assert History({"never there": set(range(64))}).since() == {"never there": None}


def test_findings_share_their_looks() -> None:
    history = History({str(first): set(range(first, 64)) for first in (7, 8, 21, 40, 55)})
    assert history.since() == {str(first): str(first) for first in (7, 8, 21, 40, 55)}
    assert history.looks <= 24


def test_a_name_that_came_back_is_dated_to_when_it_went_last() -> None:
    assert History({"twice": {*range(10, 20), *range(50, 64)}}).since() == {"twice": "50"}


def test_the_release_that_the_tree_was_made_for_finds_a_short_life() -> None:
    """The symbol is in three releases alone, which halving from the ends would miss."""
    history = History({"brief": set(range(64)) - {30, 31, 32}})
    assert history.since(known_good=("31",)) == {"brief": "33"}


def test_releases_that_cannot_be_had_are_passed_over() -> None:
    history = History({"gone": set(range(40, 64))}, lost={38, 39, 40, 41})
    assert history.since() == {"gone": "42"}


def test_without_looks_enough_nothing_is_claimed() -> None:
    assert History({"gone": set(range(9, 64))}).since(most=3) == {"gone": None}


@pytest.mark.parametrize("releases", [[], ["0"]])
@pytest.mark.parametrize("known_good", [(), ("0",)])
def test_without_earlier_releases_there_is_no_date(releases: list[str], known_good: tuple[str, ...]) -> None:
    """Where only the target itself is at hand (offline, one release cached), and where the fork pins the target."""
    history = History({"gone": {0}})
    assert Bisection(releases, frozenset({"gone"}), history.look, "64").run(known_good) == {"gone": None}


def test_findings_of_less_interest_cost_no_look_of_their_own() -> None:
    shown = {"break": set(range(40, 64)), "with it": set(range(40, 64)), "elsewhere": set(range(9, 64))}
    history = History(shown)
    also = frozenset({"with it", "elsewhere"})
    dates = Bisection(RELEASES, frozenset({"break"}), history.look, "64", also=also).run()
    assert dates == {"break": "40", "with it": "40", "elsewhere": None}
    alone = History(shown)
    Bisection(RELEASES, frozenset({"break"}), alone.look, "64").run()
    assert history.looks == alone.looks


@pytest.mark.parametrize(
    ("method", "since"),
    # 1.0 has no pkg.v1 at all, 2.0 has `old` alone: `new` was there in no release, `old` went with 3.0.
    [("new", None), ("old", "3.0")],
)
def test_a_release_without_the_class_does_not_show_that_its_methods_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, since: str | None
) -> None:
    releases = {
        "1.0": {"__init__.py": ""},
        "2.0": {"__init__.py": "", "v1.py": "class Engine:\n    def old(self): ...\n"},
        "3.0": {"__init__.py": "", "v1.py": "class Engine: ...\n"},
        "4.0": {"__init__.py": "", "v1.py": "class Engine: ...\n"},
    }
    for version, files in releases.items():
        write(tmp_path / version / "vllm", files)
    write(tmp_path / "verl", {"a.py": f"from vllm.v1 import Engine\n\nEngine().{method}()\n"})
    monkeypatch.setattr("patcher.check.history.earlier_releases", lambda *_, **__: ["1.0", "2.0", "3.0"])
    monkeypatch.setattr("patcher.check.history.cached_sources", lambda _, version: tmp_path / version)
    package = tmp_path / "4.0/vllm"
    target = Target({"vllm": "4.0"}, {"vllm": Symbols(package)}, {"vllm": "4.0"})
    project = Project(tmp_path)
    report = check_pair(project, target, verl="0.7.0")
    located = Located(Against("vllm", Released("4.0")), "4.0", package)
    dated = with_since(report, [located], Past(project, target, None, tmp_path))
    assert [(one.symbol, one.since) for one in dated.findings] == [(f"vllm.v1.Engine.{method}", since)]


def test_a_name_that_one_series_alone_had_is_found() -> None:
    releases = [f"0.{minor}.{micro}" for minor in range(1, 17) for micro in range(3)]
    for minor in range(2, 16):
        assert first(releases[:-1], releases[-1], lambda one, had=minor: not one.startswith(f"0.{had}.")) == (
            f"0.{minor + 1}.0"
        )
    assert first(releases[:-1], releases[-1], lambda _: True) is None


def test_a_release_behind_others_that_do_not_tell_is_not_the_first() -> None:
    """jax 0.3 has the name, 0.9 lacks it, and what 0.4 to 0.8 serve from a `__getattr__` nobody knows."""
    releases = [f"0.{minor}.0" for minor in range(1, 10)]
    known = {"0.1.0": False, "0.2.0": False, "0.3.0": False, "0.9.0": True}
    assert first(releases[:-1], releases[-1], known.get) is None
    known.update({"0.7.0": True, "0.6.0": False})
    assert first(releases[:-1], releases[-1], known.get) == "0.7.0"
