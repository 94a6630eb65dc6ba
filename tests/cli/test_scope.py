"""What lies beside verl/ in a checkout, from the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.cli.app import run
from tests.cli.conftest import Uky

if TYPE_CHECKING:
    import pytest


def test_the_program_that_runs_into_a_finding_is_named(uky: Uky, tree: Path, sources: Path) -> None:
    (tree / "recipe/x").mkdir(parents=True)
    (tree / "recipe/x/main.py").write_text("from vllm.utils import Parser\n")
    (tree / "recipe/x/run.sh").write_text("python3 -m recipe.x.main\n")
    answer = uky("check", "--against", f"vllm={sources}", "--no-since")
    found = {one["file"]: one for one in answer.json["findings"]}
    assert found["recipe/x/main.py"]["entry"] == "recipe/x/main.py (recipe/x/run.sh)"
    assert "entry" not in found["verl/server.py"]
    text = uky("check", "--against", f"vllm={sources}", "--no-since", json=False).out
    assert "run by recipe/x/main.py (recipe/x/run.sh)" in text


def test_copies_of_other_packages_are_named(uky: Uky, tree: Path, sources: Path) -> None:
    for folder in ("transformers", "third_party/sglang"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "__init__.py").touch()
    notes = uky("check", "--against", f"vllm={sources}", "--no-since").json["notes"]
    assert "third_party/sglang: a copy of another package, not checked" in notes
    assert "transformers: this copy is imported in place of the installed package, and not checked" in notes


def test_another_verl_tree_in_the_checkout_is_named(uky: Uky, tree: Path, sources: Path) -> None:
    inner = tree / "Intuitor/verl-intuitor"
    (inner / "verl").mkdir(parents=True)
    (inner / "verl/__init__.py").write_text("from vllm.utils import Parser\n")
    answer = uky("check", "--against", f"vllm={sources}", "--no-since").json
    told = f"Intuitor/verl-intuitor: a verl tree of its own, not checked. To check it: --root {inner}"
    assert told in answer["notes"]
    assert not [one for one in answer["findings"] if "Intuitor" in one["file"]]


def test_the_project_around_is_judged_and_nothing_is_promised_for_it(
    uky: Uky, tree: Path, sources: Path, tmp_path: Path
) -> None:
    asked = ("check", "--against", f"vllm={sources}", "--no-since")
    uky("apply", "--only", "utils-moved")
    subprocess.run(["git", "init", "-q", str(tree.parent)], check=True)
    train = tree.parent / "train.py"
    assert uky(*asked).json["notes"] == []
    for name in ("get_lost", "get_away"):  # Kept results are those of the project as it is.
        train.write_text(f"import verl\nfrom vllm.utils import {name}\n")
        (tree.parent / "run.sh").write_text("python train.py\n")
        answer = uky(*asked)
        found = [one for one in answer.json["findings"] if one["file"] == "../train.py"]
        assert [(one["symbol"], one["severity"]) for one in found] == [(f"vllm.utils.{name}", "break")]
        assert answer.json["notes"] == ["the project around the tree is checked too, no record changes it: ../train.py"]
    assert "--draft" not in uky(*asked, json=False).out
    drafts = uky(*asked, "--draft", str(tmp_path / "drafts"))
    assert drafts.json["drafts"] == []
    assert drafts.code == 1


def test_a_project_that_is_too_large_is_named(
    uky: Uky, tree: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tree.parent)], check=True)
    (tree.parent / "train.py").write_text("import verl\nfrom vllm.utils import get_lost\n")
    monkeypatch.setattr("patcher.check.enclosing._MOST_READ", 0)
    answer = uky("check", "--against", f"vllm={sources}", "--no-since").json
    told = f"{tree.parent}, the project around the tree, has too many Python files and is not checked"
    assert told in answer["notes"]
    assert not [one for one in answer["findings"] if one["file"].startswith("../")]


def test_a_tree_two_levels_down_is_named(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "repo/third_party").mkdir(parents=True)
    tree.rename(tmp_path / "repo/third_party/verl")
    assert run(["--root", str(tmp_path / "repo"), "--format", "json", "status"]) == 2
    advice = json.loads(capsys.readouterr().out)["error"]["advice"]
    assert advice == f"There is one further down: --root {tmp_path / 'repo/third_party/verl'}"


def test_a_submodule_that_is_not_checked_out_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "third_party/verl").mkdir(parents=True)
    (tmp_path / ".gitmodules").write_text(
        '[submodule "verl"]\n\tpath = third_party/verl\n\turl = https://example.org/verl\n'
    )
    wanted = f"third_party/verl is a submodule that is not checked out: git -C {tmp_path} submodule update --init"
    assert run(["--root", str(tmp_path), "--format", "json", "status"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["advice"] == f"{wanted} third_party/verl"
    monkeypatch.chdir(tmp_path)
    assert run(["--format", "json", "status"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["advice"] == f"{wanted} third_party/verl"


def test_records_are_read_for_the_name_that_a_fork_gave_the_package(uky: Uky, tree: Path) -> None:
    (tree / "verl").rename(tree / "myrl")
    (tree / "uky-patch.toml").write_text('package = "myrl"\n')
    before = (tree / "myrl/server.py").read_bytes()
    answer = uky("apply")
    assert answer.outcomes == {"log-flag": "applied", "utils-moved": "applied"}
    assert answer.json["written"] == ["myrl/server.py"]
    assert uky("revert").code == 0
    assert (tree / "myrl/server.py").read_bytes() == before


def test_a_package_that_is_not_there_is_named_with_the_file_that_names_it(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "uky-patch.toml").write_text('package = "myrl"\n')
    wanted = f"{tree / 'uky-patch.toml'} says package = 'myrl', and no such package lies beside it: set it right"
    for folder in (tree, tree / "verl"):
        monkeypatch.chdir(folder)
        assert run(["--format", "json", "status"]) == 2
        assert json.loads(capsys.readouterr().out)["error"]["advice"] == wanted
