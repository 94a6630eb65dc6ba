"""Where records have not been tried, status, apply and verify say what check finds there, and never "nothing to do"."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.check import checking
from patcher.check.untried import tried
from patcher.cli.app import run
from patcher.errors import ReleaseError
from patcher.records.load import load
from tests.cli.conftest import Answer, write_tree
from tests.cli.test_which_environment import environment
from tests.report.matrices import asked_in

BREAKING = "from vllm.gone import Engine\n\ndef main(): ...\n"
FINE = "import vllm\n\ndef main(): ...\n"
RECORD = """\
id = "own"
title = "t"
reason = "r"
lifetime = "fork-only"
[when]
verl = ">=0.2.0.dev0,<0.3"
[[edit]]
file = "verl/nothing.py"
kind = "move-import"
old = "a.b"
new = "a.c"
"""
Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A command on a tree of a release of verl, whose trainer holds `text`, with a release of vLLM installed."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str, verl: str, vllm: str, text: str = BREAKING) -> Answer:
        root, env = tmp_path / "a fork", tmp_path / f"env-{vllm}"
        if not root.exists():
            write_tree(root)
            (root / "verl/trainer").mkdir()
            (root / "verl/trainer/__init__.py").touch()
            names = json.dumps([record.id for record in load()])
            (root / "uky-patch.toml").write_text(f"disable = {names}\n")  # Their files are not here.
        (root / "verl/version/version").write_text(f"{verl}\n")
        (root / "verl/trainer/main_ppo.py").write_text(text)
        if not env.exists():
            environment(env, vllm=vllm)
        code = run(["--root", str(root), "--python", str(env), *words])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.mark.parametrize(
    ("verl", "vllm", "told"),
    [
        ("0.2.0.dev", "0.20.2", "verl 0.2.0.dev is outside of the releases that records were tried on"),
        ("0.10.0.dev", "0.20.2", "verl 0.10.0.dev is outside of the releases"),
        ("main", "0.20.2", "verl main is outside of the releases"),
        ("0.7.0", "0.99.0", "vllm 0.99.0 is outside of the releases"),
        ("0.7.0.dev", "0.99.0.dev3+g1a2b3c4", "vllm 0.99.0.dev3+g1a2b3c4 is outside of the releases"),
        ("0.7.0", "0.8.5", "vllm 0.8.5 is outside of the releases"),
        ("0.9.0", "0.12.0", "records leave breaks in verl 0.9.0 on vllm 0.12.0"),
    ],
)
def test_where_records_were_not_tried(ask: Ask, verl: str, vllm: str, told: str) -> None:
    status = ask("status", verl=verl, vllm=vllm)
    assert status.code == 1
    assert told in status.out
    assert "1 that check calls breaks" in status.out
    assert "check --draft drafts" in status.out.splitlines()[-1]
    assert ("No record is for" in status.out) is (verl == "0.2.0.dev")
    applied = ask("apply", verl=verl, vllm=vllm)
    assert (applied.code, told in applied.out) == (1, True)
    assert "check --draft drafts" in applied.out.splitlines()[-1]
    # Where breaks are left, "no record is needed" would say the contrary.
    assert applied.out.splitlines()[-1].startswith("nothing to apply")
    assert ("No record is for" in applied.out) is (verl == "0.2.0.dev")
    verified = ask("verify", verl=verl, vllm=vllm)
    assert (verified.code, told in verified.out) == (1, True)
    for answer in (status, applied, verified):
        assert "nothing to do" not in answer.out.lower()


def test_the_next_step_can_be_followed_literally(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patcher.packages.releases.versions", lambda *_, **__: [])
    last = ask("status", verl="0.2.0.dev", vllm="0.20.2").out.splitlines()[-1]
    words = shlex.split(last.partition("Next: uky-patch ")[2])
    assert run(words) == 1
    assert "Found: 1 break" in capsys.readouterr().out


def test_programs_get_it_too(ask: Ask) -> None:
    told = ask("status", "--format", "json", verl="0.2.0.dev", vllm="0.20.2").json["untried"]
    assert told["check"] == {"break": 1, "optional": 0, "inert": 0}
    assert told["next"].startswith("uky-patch check --draft drafts --root ")
    applied = ask("apply", "--dry-run", "--format", "json", verl="0.2.0.dev", vllm="0.20.2")
    assert (applied.code, applied.json["untried"]) == (1, told)


def test_what_has_no_effect_is_told_and_fails_nothing(ask: Ask) -> None:
    text = "import os\nimport vllm\n\nos.environ['VLLM_NEVER_READ'] = '1'\n\ndef main(): ...\n"
    status = ask("status", verl="0.2.0.dev", vllm="0.20.2", text=text)
    verified = ask("verify", verl="0.2.0.dev", vllm="0.20.2", text=text)
    assert "1 without effect" in status.out
    assert (status.code, verified.code) == (0, 0)


def test_where_check_finds_nothing_there_is_nothing_to_do(ask: Ask) -> None:
    status = ask("status", verl="0.2.0.dev", vllm="0.20.2", text=FINE)
    assert (status.code, "they leave: nothing" in status.out) == (0, True)
    assert status.out.splitlines()[-1].endswith("Nothing to do")
    assert ask("apply", verl="0.2.0.dev", vllm="0.20.2", text=FINE).code == 0
    assert ask("verify", verl="0.2.0.dev", vllm="0.20.2", text=FINE).code == 0
    mended = ask("status", verl="0.5.0", vllm="0.20.2", text=FINE)
    assert (mended.code, "leave" in mended.out) == (0, False)


def test_where_check_cannot_be_made_it_is_not_known(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> Path:
        raise ReleaseError("vllm 0.99.0 is not in the cache", advice="Give the release from elsewhere.")

    monkeypatch.setattr("patcher.check.targets.release_folder", offline)
    for command in ("status", "apply", "verify"):
        answer = ask(command, "--assume", "vllm==0.99.0", verl="0.7.0", vllm="0.20.2")
        assert answer.code == 1
        assert "what breaks here is not known: vllm 0.99.0 is not in the cache" in answer.out
    without = ask("status", "--assume", "vllm==none", verl="0.2.0.dev", vllm="0.20.2")
    assert (without.code, "what breaks here is not known: vllm is not installed" in without.out) == (1, True)
    assert "check --against vllm==" in without.out.splitlines()[-1]


@pytest.mark.parametrize(("verl", "vllm"), [("0.7.0", "0.20.2"), ("0.7.1+cluster", "0.22.9")])
def test_where_they_were_tried_no_check_is_made(
    ask: Ask, verl: str, vllm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(checking, "check", no)
    status = ask("status", verl=verl, vllm=vllm)
    assert (
        status.code,
        "uky-patch check judges the fork's own code" in status.out,
    ) == (0, True)


def test_breaks_that_a_check_has_left_are_known_while_the_files_are_the_same(ask: Ask) -> None:
    """A fork of a release that records were tried on may have edits of its own, which the matrix knows nothing of."""
    at = {"verl": "0.7.0", "vllm": "0.20.2"}
    assert ask("check", **at).code == 1
    for command in ("status", "apply", "verify"):
        broken = ask(command, **at)
        assert (broken.code, "1 that check calls breaks" in broken.out, "Nothing to do" in broken.out) == (
            1,
            True,
            False,
        )
    assert ask("status", "--assume", "vllm==0.19.0", **at).code == 0
    edited = ask("status", **at, text=BREAKING + "\n")
    assert (edited.code, "check calls breaks" in edited.out) == (0, False)
    assert " uky-patch check judges the fork's own code" in edited.out
    assert ask("check", **at, text=FINE).code == 0
    fine = ask("status", **at)
    assert (fine.code, fine.out.splitlines()[-1].endswith(". Nothing to do")) == (0, True)


@pytest.mark.parametrize("verl", ["0.7.0.dev", "0.6.2"])
def test_a_tree_between_releases_is_told_of_breaks_alone(ask: Ask, verl: str) -> None:
    """The records hold on the releases around it; what it has of its own nobody has tried."""
    told = f"verl {verl} is none of the releases that records were tried on"
    for command in ("status", "apply", "verify"):
        broken = ask(command, verl=verl, vllm="0.20.2+cu129")
        assert (broken.code, told in broken.out, "1 that check calls breaks" in broken.out) == (1, True, True)
    fine = ask("status", verl=verl, vllm="0.20.2+cu129", text=FINE)
    assert (fine.code, told in fine.out) == (0, False)
    assert fine.out.splitlines()[-1].endswith("Nothing to do")


def test_a_fork_with_records_for_its_release_is_told_of_breaks_alone(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/own.toml").write_text(RECORD.replace("<0.3", '<0.3"\nvllm = "<0.1'))
    at = {"verl": "0.2.0.dev", "vllm": "0.20.2"}
    assert "1 that check calls breaks" in ask("status", "--patches", "own", **at).out
    fine = ask("status", "--patches", "own", **at, text=FINE)
    assert (fine.code, "tried" in fine.out) == (0, False)
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    assumed = ask("status", "--patches", "own", "--assume", "vllm==0.99.0", **at)
    assert (assumed.code, "tried" in assumed.out) == (0, False)


def test_what_they_were_tried_on_is_the_matrix() -> None:
    document = Path(__file__).parents[2] / "docs/matrix.md"
    order, known = asked_in(document.read_text(encoding="utf-8")), tried()
    assert order.verl == f">={known.verl[0]},<={known.verl[-1]}"
    assert order.against == (f"vllm>={known.spans[0][0]},<={known.spans[-1][1]}",)
    assert len(known.works) == len(known.verl) * len(known.spans)
    assert known.works["0.6.1", "0.18.0"]
    assert not known.works["0.9.1", "0.11.0"]
