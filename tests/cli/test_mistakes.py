"""Mistakes of the user or the machine: one clear error, the exit code of the contract, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import SERVER, Uky
from tests.records.test_parse import BAD

USAGE = {
    "unknown command": (["aply"], "apply"),
    "unknown option": (["status", "--what"], "--what"),
    "unknown record": (["apply", "log-flg"], "log-flag"),
    "unknown record to explain": (["explain", "nothing"], "nothing"),
    "not applied": (["revert", "log-flag"], "not applied"),
    "unknown tag": (["apply", "--tag", "nosuch"], "nosuch"),
    "assume without a version": (["--assume", "vllm", "status"], "PACKAGE==VERSION"),
    "assume nonsense": (["--assume", "vllm==new", "status"], "new"),
    "assume something else": (["--assume", "requests==2.0", "status"], "requests"),
    "format": (["--format", "xml", "status"], "xml"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage(uky: Uky, tree: Path, case: str) -> None:
    arguments, told = USAGE[case]
    answer = uky(*arguments)
    assert answer.code == 2
    assert told in answer.err
    assert answer.json["error"]["code"] == 2
    assert told in answer.json["error"]["title"] + answer.json["error"]["advice"]
    assert "Traceback" not in answer.err
    assert (tree / "verl/server.py").read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


def test_no_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["--root", str(tmp_path), "status"]) == 2
    assert "no verl tree" in capsys.readouterr().err


def test_no_interpreter(uky: Uky) -> None:
    answer = uky("--python", "/nowhere/python", "status")
    assert answer.code == 5
    assert "/nowhere/python" in answer.err


def test_all_mistakes_of_all_records_at_once(uky: Uky, records: Path) -> None:
    (records / "log-flag.toml").write_text("id = 5\n")
    (records / "utils-moved.toml").write_text("[[[")
    answer = uky("status")
    assert answer.code == 4
    assert "log-flag.toml:1: id: must be a string" in answer.err
    assert "utils-moved.toml:1: is no TOML" in answer.err
    assert "log-flag.toml:1: edit: is missing" in answer.err


CONFIGS = {
    "unknown key": ('markr = "Lab"\n', "uky-patch.toml:1: markr: unknown key; did you mean marker?"),
    "marker": ('marker = "a b"\n', "uky-patch.toml:1: marker:"),
    "marker that ends the comment": ('marker = "x\\ny"\n', "uky-patch.toml:1: marker:"),
    "style": ('style = "loud"\n', "comment, clean"),
    "patches": ('patches = "here"\n', "list of non-empty strings"),
    "no folder": ('patches = ["nowhere"]\n', "nowhere"),
    "no TOML": ("marker =\n", "uky-patch.toml:1: is no TOML"),
    "hosts": ("hosts = 5\n", "[hosts.NAME]"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_wrong_setting_of_the_fork(uky: Uky, tree: Path, case: str) -> None:
    text, told = CONFIGS[case]
    (tree / "uky-patch.toml").write_text(text)
    answer = uky("apply")
    assert answer.code == 4
    assert told in answer.err
    assert (tree / "verl/server.py").read_text() == SERVER


def test_two_records_of_one_name(uky: Uky, tree: Path, records: Path, tmp_path: Path) -> None:
    other = tmp_path / "more"
    other.mkdir()
    (other / "log-flag.toml").write_text((records / "log-flag.toml").read_text())
    answer = uky("--patches", str(other), "status")
    assert answer.code == 4
    assert "log-flag.toml" in answer.err


def test_after_names_a_record_that_there_is_not(uky: Uky, records: Path) -> None:
    path = records / "log-flag.toml"
    path.write_text(path.read_text().replace("lifetime", 'after = ["nobody"]\nlifetime', 1))
    answer = uky("status")
    assert (answer.code, "'nobody'" in answer.err) == (4, True)


def test_records_that_wait_for_each_other(uky: Uky, records: Path) -> None:
    for name, other in (("log-flag", "utils-moved"), ("utils-moved", "log-flag")):
        path = records / f"{name}.toml"
        path.write_text(path.read_text().replace("lifetime", f'after = ["{other}"]\nlifetime', 1))
    answer = uky("status")
    assert (answer.code, "circle" in answer.err) == (4, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "job", "--until", "probe"), "--from job begins behind --until probe"),
        (("--only", "render", "--from", "plan"), "--only names all the steps"),
        (("--only", "render", "--until", "plan"), "--only names all the steps"),
    ],
)
def test_steps_of_a_migration_that_contradict_each_other(uky: Uky, options: tuple[str, ...], said: str) -> None:
    answer = uky("migrate", "nowhere.invalid", *options)
    assert (answer.code, said in answer.err) == (2, True)


def test_a_file_that_is_no_text(uky: Uky, tree: Path) -> None:
    content = SERVER.encode() + b"# \xff\xfe\n"
    (tree / "verl/server.py").write_bytes(content)
    answer = uky("apply")
    assert answer.code == 3
    assert answer.outcomes == {"log-flag": "unparseable", "utils-moved": "unparseable"}
    assert (tree / "verl/server.py").read_bytes() == content


def test_a_damaged_ledger_is_not_overwritten(uky: Uky, tree: Path) -> None:
    """Here without the notes of the pre-images, as an earlier version has left it."""
    uky("apply")
    ledger = tree / ".uky-patch/ledger.json"
    ledger.write_text(ledger.read_text()[:100])
    for note in (tree / ".uky-patch/originals").glob("*.json"):
        note.unlink()
    for command in ("status", "apply", "revert", "verify"):
        answer = uky(command)
        assert answer.code == 5
        assert "ledger.json" in answer.err
    assert len(ledger.read_text()) == 100


def test_a_damaged_ledger_is_made_anew_from_the_notes(uky: Uky, tree: Path) -> None:
    uky("apply")
    ledger = tree / ".uky-patch/ledger.json"
    before = ledger.read_text()
    ledger.write_text(before[:100])
    answer = uky("status")
    assert answer.code == 1
    assert "uky-patch apply" in [problem["fix"] for problem in answer.json["ledger"]["problems"]]
    assert len(ledger.read_text()) == 100
    assert uky("apply").code == 0
    assert json.loads(ledger.read_text())["files"] == json.loads(before)["files"]
    assert (tree / ".uky-patch-kept").is_dir()
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_stops_all_before_anything_is_written(uky: Uky, tree: Path, records: Path, case: str) -> None:
    (records / "good.toml").write_text(BAD[case][0])
    before = sorted(path for path in tree.parent.rglob("*"))
    answer = uky("apply")
    assert answer.code == 4
    assert "good.toml" in answer.err
    assert answer.err.count("error:") == 1
    assert (tree / "verl/server.py").read_text() == SERVER
    assert sorted(path for path in tree.parent.rglob("*")) == before


def test_a_record_that_is_not_utf_8(uky: Uky, records: Path) -> None:
    (records / "good.toml").write_bytes("title = '中'".encode("gb18030"))
    answer = uky("status")
    assert (answer.code, "good.toml: is not UTF-8" in answer.err) == (4, True)


def test_a_record_folder_that_cannot_be_read(uky: Uky, records: Path) -> None:
    answer = uky("--patches", str(records / "log-flag.toml"), "status")
    assert (answer.code, "cannot be read" in answer.err) == (4, True)
