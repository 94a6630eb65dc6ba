"""`new`: a record to begin with, from a place in the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.records.model import Record
from patcher.records.parse import parse
from patcher.rewrite.edits import Edit, MoveImport, RenameArgument, Replace
from tests.cli.conftest import SERVER, Uky, records, tree, uky  # noqa: F401

FILE = "verl/server.py"


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SERVER.splitlines(), start=1) if text in line)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("import Parser", MoveImport(file=FILE, old="vllm.utils.Parser", new="vllm.utils.Parser")),
        (
            "disable_log=",
            RenameArgument(
                file=FILE, within="Server.launch", call="Engine.start", old="disable_log", new="new_disable_log"
            ),
        ),
        (
            "return parser",
            Replace(
                file=FILE,
                within="Server.launch",
                pattern='return parser, get_uri("h", 1)',
                replacement='return parser, get_uri("h", 1)',
            ),
        ),
    ],
)
def test_the_edit_and_the_example_are_of_the_place(text: str, edit: Edit, tree: Path, uky: Uky) -> None:  # noqa: F811
    answer = uky("new", "mine", "--at", f"{FILE}:{line_of(text)}")
    assert answer.code == 0
    path = tree / "patches/mine.toml"
    assert answer.json["path"] == str(path)
    record = parse(path.read_text(), path)
    assert isinstance(record, Record)
    assert record.edits == (edit,)
    assert not record.enabled
    assert text in record.examples[0].before
    assert uky("status").outcomes.get("mine") in (None, "not-needed")


def test_a_dry_run_prints_it(tree: Path, uky: Uky) -> None:  # noqa: F811
    answer = uky("new", "mine", "--at", f"{FILE}:{line_of('return parser')}", "--dry-run", json=False)
    assert "pattern = " in answer.out
    assert not (tree / "patches").exists()


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("new", "Mine", "--at", f"{FILE}:3"), "'Mine' is no id of a record"),
        (("new", "log-flag", "--at", f"{FILE}:3"), "there is a record log-flag already"),
        (("new", "mine", "--at", FILE), f"'{FILE}' names no place"),
        (("new", "mine", "--at", f"{FILE}:999"), f"{FILE}:999: no statement stands there"),
        (("new", "mine", "--at", "verl/none.py:1"), "verl/none.py: no such file in the tree"),
    ],
)
def test_mistakes_are_one_error(arguments: tuple[str, ...], title: str, tree: Path, uky: Uky) -> None:  # noqa: F811
    answer = uky(*arguments)
    assert answer.code == 2
    assert answer.json["error"]["title"] == title
    assert not (tree / "patches").exists()


def test_a_record_is_tried_on_any_file(tree: Path, uky: Uky, tmp_path: Path) -> None:  # noqa: F811
    other = tmp_path / "elsewhere/server.py"
    other.parent.mkdir()
    other.write_text(SERVER)
    answer = uky("explain", "log-flag", "--try", str(other), vllm="1.0")
    assert answer.code == 1
    assert [one["outcome"] for one in answer.json["edits"]] == ["made"]
    assert "+            enable_log=args.enable_log,  # Uky[log-flag]" in answer.json["diff"]
    assert other.read_text() == SERVER
    other.write_text(SERVER.replace("disable_log=args.disable_log", "disable_logs=args.disable_log"))
    answer = uky("explain", "log-flag", "--try", str(other), json=False)
    assert answer.code == 3
    assert "expected 1 place, found 0; nearest is line" in answer.out
    assert uky("explain", "log-flag", "--try", str(tmp_path / "none.py")).code == 2
    (tmp_path / "client.py").write_text("x = 1\n")
    assert "edits no file" in uky("explain", "log-flag", "--try", str(tmp_path / "client.py")).json["error"]["title"]


@pytest.mark.parametrize("text", ["return parser", "import Parser"])
def test_one_that_is_begun_and_turned_on_is_one_error_that_says_what_is_missing(
    text: str,
    tree: Path,  # noqa: F811
    uky: Uky,  # noqa: F811
) -> None:
    uky("new", "mine", "--at", f"{FILE}:{line_of(text)}")
    path = tree / "patches/mine.toml"
    path.write_text(path.read_text().replace("enabled = false\n", ""))
    answer = uky("apply")
    assert answer.code == 4
    cause = answer.json["error"]["cause"]
    assert f"{path}:5: title: is to be written by hand" in cause
    assert "reason: is to be written by hand" in cause
    assert "with: is the pattern itself" in cause or "new: is the same as old" in cause
    assert (tree / FILE).read_text() == SERVER


def test_one_that_is_begun_is_off_and_stops_nothing_until_it_is_asked_for(tree: Path, uky: Uky) -> None:  # noqa: F811
    uky("new", "mine", "--at", f"{FILE}:{line_of('return parser')}")
    assert uky("apply", "mine").code == 4
    assert uky("status", "--all").outcomes["mine"] == "not-needed"
    assert uky("adopt", "--all").code != 4
    assert uky("apply").json["written"] == [FILE]


def test_an_edit_that_gives_what_is_there_already_stops_no_other_record(tree: Path, uky: Uky) -> None:  # noqa: F811
    """The pattern matches, and what comes in its place is the same: `get_uri("h", 1)`."""
    (tree / "patches").mkdir()
    (tree / "patches/mine.toml").write_text(
        'id = "mine"\ntitle = "Sort"\nreason = "They are to be sorted."\nlifetime = "fork-only"\n[when]\n[[edit]]\n'
        f'file = "{FILE}"\nkind = "replace"\npattern = \'get_uri($A, 1)\'\nwith = \'get_uri("h", 1)\'\n'
    )
    (tree / "verl/other.py").write_text("f(1, 1)\n")
    (tree / "patches/swapped.toml").write_text(
        'id = "swapped"\ntitle = "Swap"\nreason = "They are to be swapped."\nlifetime = "fork-only"\n[when]\n[[edit]]\n'
        'file = "verl/other.py"\nkind = "replace"\npattern = "f($A, $B)"\nwith = "f($B, $A)"\n'
    )
    (tree / "uky-patch.toml").write_text('patches = ["patches"]\n')
    answer = uky("apply")
    assert (answer.code, answer.json["written"]) == (0, [FILE])
    assert {one["id"]: one["outcome"] for one in uky("status", "--all").json["records"]}["swapped"] == "adopted"


def test_a_place_is_named_below_the_root_or_from_the_folder_of_the_call(
    tree: Path,  # noqa: F811
    uky: Uky,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tree.parent)
    line = line_of("return parser")
    shown = [
        uky("new", "mine", "--at", f"{place}:{line}", "--dry-run", json=False).out
        for place in (FILE, f"{tree.name}/{FILE}", str(tree / FILE))
    ]
    assert f'file = "{FILE}"' in shown[0]
    assert shown[0] == shown[1] == shown[2]


def test_one_that_is_for_all_versions_has_no_line_that_says_for_which(tree: Path, uky: Uky) -> None:  # noqa: F811
    uky("new", "mine", "--at", f"{FILE}:{line_of('return parser')}")
    lines = uky("explain", "mine", json=False).out.splitlines()
    assert not any(line.strip() == "for:" for line in lines)
    assert any(line.startswith("  for: verl") for line in uky("explain", "log-flag", json=False).out.splitlines())
