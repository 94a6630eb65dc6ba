"""Whole sessions through the console script: each `Next:` is followed to the letter, and the tree ends as it began."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from patcher.demo import fingerprint
from tests.cli.test_hand_edited_fork import SERVER, SPMD
from tests.forks import edit, git
from tests.journeys import trees
from tests.journeys.environments import activated, environment, freeze, pinned
from tests.journeys.journey import Stranger
from tests.lanes import ALL_CASES, one_in
from tests.packages.venvs import Venv

pytestmark = pytest.mark.network

BY_HAND = "    # How long we wait for a stuck engine on our cluster.\n    PATIENCE_OF_OURS = 600\n"


@dataclass(frozen=True)
class Case:
    """A tree, the vLLM that is installed, the one of the list that `pins` is given, and a patched file."""

    tree: Callable[[Path, Venv], Path]
    vllm: str
    proposed: str
    edited: str = SERVER
    beside: str = "class vLLMHttpServer"
    """The beginning of the class in it that gets two lines more by hand."""
    limited: str = ""
    """What the tree's own requirements pin vLLM to, which counts for `pins` before what is installed."""
    in_git: bool = True
    uncovered: tuple[str, ...] = ()
    """Files with marked lines that no record covers."""


def _installed(folder: Path, venv: Venv) -> Path:
    folder.mkdir()
    return trees.installed(venv, "0.8.0")


CASES = {
    "hand-edited": Case(
        lambda folder, _: trees.hand_edited(folder),
        "0.20.2",
        "0.20.2",
        limited="0.12.0",
        uncovered=(f"{trees.REWARD}:4", f"{trees.REWARD}:5", f"{trees.REWARD}:6", SERVER, SPMD),
    ),
    "stale": Case(lambda folder, _: trees.released(folder, "0.7.0"), "0.20.2", "0.12.0"),
    "older": Case(lambda folder, _: trees.released(folder, "0.6.0"), "0.12.0", "0.20.2", SPMD, "class vLLMRollout("),
    "installed": Case(_installed, "0.20.2", "0.12.0", in_git=False),
}


@pytest.mark.parametrize("name", one_in(2, ["stale", "hand-edited"]))
def test_followed_to_the_letter_a_session_ends_where_it_began(name: str, tmp_path: Path) -> None:
    _session(CASES[name], tmp_path, with_pins=name == "hand-edited")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"hand-edited"})[:: 1 if ALL_CASES else 2])
def test_and_so_it_does_with_an_upgrade_in_sight(name: str, tmp_path: Path) -> None:
    _session(CASES[name], tmp_path, with_pins=True)


def _session(case: Case, tmp_path: Path, *, with_pins: bool) -> None:
    """Status, apply, status, an edit by hand, apply, verify, pins, revert."""
    venv = environment(tmp_path / "train", freeze(case.vllm))
    folder = tmp_path / "verl_fork"
    tree = case.tree(folder, venv)
    someone = Stranger(folder, tree / "verl", activated(venv, tmp_path / "home"))
    before = fingerprint(tree / "verl")

    first = someone.types("uky-patch status", 1)
    installed = pinned(freeze(case.vllm))
    assert {f"{package} {installed[package]}" for package in ("vllm", "torch", "transformers", "ray")} <= set(
        first.text.splitlines()[0].split(" · ")
    )
    assert "pending" in first.text
    someone.follows()
    assert fingerprint(tree / "verl") != before
    verified = someone.types("uky-patch verify").text
    answer = re.search(r"no record covers: (.*?)(?:  ->|$)", verified)
    places = answer[1].split(", ") if answer else []
    assert len(places) == len(case.uncovered)
    assert all(any(place.startswith(file) for place in places) for file in case.uncovered)

    edit(tree / case.edited, lambda text: _two_lines_more(text, case.beside))
    mine = (tree / case.edited).read_text()
    someone.follows()
    assert (tree / case.edited).read_text() == mine
    someone.types("uky-patch verify")

    if with_pins:
        pins = someone.types(f"uky-patch pins {freeze(case.proposed)}", 0, 1)
        assert re.search(rf"^ *vllm +{case.limited or case.vllm} +-> +{case.proposed}\b", pins.text, re.MULTILINE)
        if pins.next:
            someone.types(pins.next, 0, 1)

    someone.types("uky-patch revert")
    if case.in_git:
        assert git(folder, "diff", "--numstat").split() == ["2", "0", case.edited]
    edit(tree / case.edited, lambda text: text.replace(BY_HAND, ""))
    _is_as_it_was(someone, before, in_git=case.in_git)


@pytest.mark.slow
def test_another_vllm_in_the_environment_is_followed_too(tmp_path: Path) -> None:
    someone, before = _stale(tmp_path, "0.6.1", vllm="0.12.0")
    assert "10 applied" in someone.follows().text
    later = environment(tmp_path / "later", freeze("0.20.2"))
    someone.variables = activated(later, tmp_path / "home")
    assert "vllm 0.20.2 · " in someone.types("uky-patch status", 1).text
    assert "17 applied" in someone.follows().text
    someone.types("uky-patch verify")
    someone.types("uky-patch revert")
    _is_as_it_was(someone, before)


@pytest.mark.slow
def test_work_that_is_not_committed_is_neither_in_the_way_nor_lost(tmp_path: Path) -> None:
    someone, before = _stale(tmp_path, "0.7.0")
    edit(someone.folder / SERVER, lambda text: f"{text}# in the making\n")
    assert "pending" in someone.types("uky-patch status", 1).text
    someone.follows()
    assert "# in the making" in (someone.folder / SERVER).read_text()
    someone.types("uky-patch verify")
    someone.types("uky-patch revert")
    assert git(someone.folder, "diff", "--numstat").split() == ["1", "0", SERVER]
    git(someone.folder, "checkout", "--", SERVER)
    _is_as_it_was(someone, before)


@pytest.mark.slow
def test_a_patched_line_that_was_changed_by_hand_can_be_got_rid_of(tmp_path: Path) -> None:
    someone, before = _stale(tmp_path, "0.7.0")
    someone.follows()
    edit(someone.folder / SERVER, lambda text: text.replace("internal=True)  # Uky", "internal=None)  # Uky"))
    done = someone.follows()
    assert "Nothing to do" in done.text
    kept = [path for path in someone.folder.rglob("*") if path.is_file() and path.suffix != ".py"]
    assert [path for path in kept if b"internal=None)  # Uky" in path.read_bytes()], "the changed file was not kept"
    someone.types("uky-patch verify")
    someone.types("uky-patch revert")
    assert fingerprint(someone.tree) == before


@pytest.mark.slow
def test_one_record_that_does_not_fit_keeps_no_other_from_its_place(tmp_path: Path) -> None:
    someone, before = _stale(tmp_path, "0.7.0")
    edit(
        someone.folder / SERVER,
        lambda text: text.replace("output_processor.abort_requests(request_ids)", "output_processor.drop(request_ids)"),
    )
    git(someone.folder, "commit", "--quiet", "--all", "--message", "Our own way to drop requests")
    before = fingerprint(someone.tree)
    ran = someone.types("uky-patch status", 1)
    for _ in range(4):
        if ran.next is None or fingerprint(someone.tree) != before:
            break
        ran = someone.types(ran.next, 0, 1, 3)
    left = someone.types("uky-patch status", 0, 1)
    if " pending" in left.text or "applied" not in left.text:
        someone.stops("what is told next does not lead to the records that fit")
    someone.types("uky-patch revert")
    _is_as_it_was(someone, before)


@pytest.mark.slow
def test_without_an_environment_it_is_asked_for_and_named_once(tmp_path: Path) -> None:
    someone, before = _stale(tmp_path, "0.7.0")
    train = someone.variables["VIRTUAL_ENV"]
    someone.variables = {name: value for name, value in someone.variables.items() if name != "VIRTUAL_ENV"}
    assert "--python" in someone.types("uky-patch status", 1).text
    someone.types("uky-patch apply", 1, 2, 3, 4, 5)
    assert fingerprint(someone.tree) == before
    (someone.folder / "uky-patch.toml").write_text(f'python = "{train}"\n')
    assert "vllm 0.20.2 · " in someone.follows().text
    someone.types("uky-patch verify")
    someone.types("uky-patch revert")
    (someone.folder / "uky-patch.toml").unlink()
    _is_as_it_was(someone, before)


@pytest.mark.slow
def test_a_verl_newer_than_all_tried_ones_is_led_through_apply_to_check(tmp_path: Path) -> None:
    someone, _ = _stale(tmp_path, "0.9.1")
    (someone.folder / "verl/version/version").write_text("0.12.0\n")
    ran = someone.types("uky-patch status", 1)
    assert "verl 0.12.0 is outside of the releases that records were tried on" in ran.text
    for _ in range(4):
        if (ran.next or "").startswith("uky-patch check"):
            break
        ran = someone.types(ran.next or "uky-patch status", 0, 1)
    else:
        someone.stops("what is told next does not lead to `check`")
    someone.types(ran.next or "", 0, 1)


def _stale(tmp_path: Path, verl: str, *, vllm: str = "0.20.2") -> tuple[Stranger, str]:
    """Somebody in a checkout of a release with the environment of a vLLM, and the tree's fingerprint."""
    venv = environment(tmp_path / "train", freeze(vllm))
    folder = trees.released(tmp_path / "verl_fork", verl)
    someone = Stranger(folder, folder / "verl", activated(venv, tmp_path / "home"))
    return someone, fingerprint(someone.tree)


def _is_as_it_was(someone: Stranger, before: str, *, in_git: bool = True) -> None:
    assert fingerprint(someone.tree) == before
    if in_git:
        assert git(someone.folder, "status", "--porcelain") == ""


def _two_lines_more(text: str, beside: str) -> str:
    start = text.index(f"\n{beside}") + 1
    end = text.index("\n", start) + 1
    return text[:end] + BY_HAND + text[end:]
