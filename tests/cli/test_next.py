"""The command that each command ends with, followed to the letter; skipping records; what --diff leaves alone."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import MOVED as RECORD_OF_MOVE
from tests.cli.conftest import RECORD, SERVER, Answer, Uky

SETTINGS = """\
# Of our cluster.
marker = "Uky"   # the word

# The list of what we do without.
[pins]
vllm = "2.1"  # for now
"""


@pytest.fixture
def follow(capsys: pytest.CaptureFixture[str]) -> Callable[[Answer], Answer]:
    """Run what an answer names as the next command, as it stands."""

    def call(answer: Answer) -> Answer:
        line = next(line for line in (answer.out + answer.err).splitlines() if "Next: uky-patch " in line)
        code = run(shlex.split(line.partition("Next: uky-patch ")[2]))
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


Follow = Callable[[Answer], Answer]


def drift(tree: Path) -> None:
    text = SERVER.replace("disable_log=args.disable_log", "quiet=args.disable_log")
    (tree / "verl/server.py").write_text(text)


def test_diff_shows_and_writes_nothing(uky: Uky, tree: Path) -> None:
    shown = uky("apply", "--diff", json=False)
    assert (shown.code, (tree / "verl/server.py").read_text()) == (1, SERVER)
    assert "+            enable_log=args.enable_log,  # Uky[log-flag]" in shown.out
    assert not (tree / ".uky-patch").exists()
    written = uky("apply", "--show-diff", json=False)
    assert (written.code, "+            enable_log=args.enable_log" in written.out) == (0, True)
    patched = (tree / "verl/server.py").read_text()
    assert patched != SERVER
    assert uky("apply", "--diff").code == 0
    assert (uky("revert", "--diff").code, (tree / "verl/server.py").read_text()) == (1, patched)
    assert (uky("revert", "--show-diff").code, (tree / "verl/server.py").read_text()) == (0, SERVER)
    for command in ("apply", "revert"):
        assert uky(command, "--diff", "--show-diff").code == 2


def test_from_status_to_clean(uky: Uky, follow: Follow, tree: Path) -> None:
    shown = follow(uky("status", json=False))
    assert (shown.code, (tree / "verl/server.py").read_text()) == (1, SERVER)
    assert follow(shown).code == 0
    clean = uky("status", json=False)
    assert (
        clean.code,
        "uky-patch check judges the fork's own code" in clean.out,
    ) == (0, True)


@pytest.mark.parametrize("command", ["status", "apply", "verify"])
def test_a_file_edited_after_patching_is_merged(uky: Uky, follow: Follow, tree: Path, command: str) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text() + "LIMIT = 3\n")
    result = uky(command, json=False)
    assert "Next: uky-patch apply --merge log-flag utils-moved " in result.out + result.err
    assert "--force" not in result.out + result.err
    assert follow(result).code == 0
    assert path.read_text().endswith("LIMIT = 3\n")
    assert (uky("status").code, uky("verify").code) == (0, 0)
    assert uky("revert").code == 0
    assert path.read_text() == SERVER + "LIMIT = 3\n"


def test_a_revert_of_an_edited_file_names_the_revert_that_keeps_the_edit(uky: Uky, follow: Follow, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text() + "LIMIT = 3\n")
    result = uky("revert", json=False)
    assert "Next: uky-patch revert --merge" in result.out + result.err
    assert follow(result).code == 0
    assert path.read_text() == SERVER + "LIMIT = 3\n"


@pytest.mark.parametrize("words", [["revert"], ["revert", "--dry-run"], ["revert", "--merge"], ["revert", "log-flag"]])
def test_a_revert_that_is_refused_names_a_revert(uky: Uky, follow: Follow, tree: Path, words: list[str]) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text().replace("enable_log=args.enable_log", "enable_log=False"))
    told = uky(*words)
    ids = [word for word in words if word == "log-flag"]
    assert told.json["next"].startswith(shlex.join(["uky-patch", "revert", "--force", *ids]))
    result = uky(*words, json=False)
    assert (result.code, follow(result).code) == (3, 0)
    assert "Uky[log-flag]" not in path.read_text()


def test_a_change_of_what_records_made_is_said_to_be_lost(uky: Uky, follow: Follow, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    changed = path.read_text().replace("enable_log=args.enable_log", "enable_log=False")
    path.write_text(changed)
    result = uky("status", json=False)
    assert "What was changed by hand is lost from it; a copy is kept" in result.out
    assert "Next: uky-patch revert --force log-flag utils-moved" in result.out
    assert follow(result).code == 0
    assert changed in [kept.read_text() for kept in tree.rglob("*") if kept.is_file()]
    assert follow(follow(uky("status", json=False))).code == 0
    assert uky("status").code == 0


def test_a_patched_file_that_is_gone_is_forgotten(uky: Uky, follow: Follow, tree: Path) -> None:
    uky("apply")
    (tree / "verl/server.py").unlink()
    result = uky("status", json=False)
    assert "Next: uky-patch revert --merge log-flag utils-moved" in result.out
    assert follow(result).code == 0


def test_uncommitted_changes_are_named_before_apply_refuses(uky: Uky, follow: Follow, tree: Path) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tree), *words], check=True)
    (tree / "verl/server.py").write_text(SERVER + "LIMIT = 3\n")
    shown = uky("apply", "--diff", json=False)
    assert "verl/server.py: changed and in no commit" in shown.out
    assert follow(shown).code == 0


def test_a_record_that_is_in_the_way_is_named_with_the_way_on(uky: Uky, follow: Follow, tree: Path) -> None:
    drift(tree)
    result = uky("apply", json=False)
    assert result.code == 3
    assert "log-flag: drifted; verl/server.py: expected 1 place, found 0" in result.err
    assert "nearest: verl/server.py:11" in result.err
    assert "uky-patch explain log-flag " in result.err
    done = follow(result)
    assert (done.code, "skipped  log-flag" in done.out) == (0, True)
    assert uky("status").outcomes == {"log-flag": "drifted", "utils-moved": "applied"}
    assert uky("apply", "--skip", "log-flag").json["skipped"] == ["log-flag"]
    explained = follow(uky("status", json=False)).out
    for_good = next(line for line in explained.splitlines() if "--remember" in line)
    assert follow(Answer(0, f"Next: uky-patch {for_good.partition('uky-patch ')[2]}", "")).code == 0
    status = uky("status")
    assert (status.code, status.json["skipped"], uky("verify").code) == (0, ["log-flag"], 0)
    assert uky("apply").code == 0


def test_status_leads_around_what_has_drifted(uky: Uky, follow: Follow, tree: Path) -> None:
    drift(tree)
    shown = follow(uky("status", json=False))
    assert (shown.code, "would change" in shown.out) == (1, True)
    assert follow(shown).code == 0
    assert uky("status").outcomes["utils-moved"] == "applied"


def test_what_is_remembered_leaves_the_file_as_it_was(uky: Uky, follow: Follow, tree: Path) -> None:
    path = tree / "uky-patch.toml"
    path.write_text(SETTINGS)
    path.chmod(0o640)
    shown = uky("apply", "--skip", "log-flag", "--remember", "--diff", json=False)
    assert (shown.code, path.read_text(), '+disable = ["log-flag"]' in shown.out) == (1, SETTINGS, True)
    assert follow(shown).code == 0
    assert path.read_text() == SETTINGS.replace("# the word\n", '# the word\ndisable = ["log-flag"]\n')
    assert path.stat().st_mode & 0o777 == 0o640
    assert "disable_log=args.disable_log" in (tree / "verl/server.py").read_text()
    result = uky("status", json=False)
    assert (result.code, "skipped" in result.out, "disabled in uky-patch.toml" in result.out) == (0, True, True)
    assert uky("verify").code == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("disable = []\n", 'disable = ["log-flag"]\n'),
        ('disable = ["utils-moved"] # why\n', 'disable = ["utils-moved", "log-flag"] # why\n'),
        (
            'disable = [\n  "utils-moved", # a ] in "it"\n]\n',
            'disable = [\n  "utils-moved", # a ] in "it"\n  "log-flag",\n]\n',
        ),
        ('disable = [\n    "utils-moved"  # why\n]\n', 'disable = [\n    "utils-moved",  # why\n    "log-flag",\n]\n'),
        ('disable = ["utils-moved",\n]\n', 'disable = ["utils-moved",\n    "log-flag",\n]\n'),
        ('[pins]\nvllm = "2.1"\n', 'disable = ["log-flag"]\n\n[pins]\nvllm = "2.1"\n'),
        ('style = "clean"', 'style = "clean"\ndisable = ["log-flag"]\n'),
        ('disable = ["log-flag"]\n', 'disable = ["log-flag"]\n'),
    ],
)
def test_each_layout_of_the_settings_stays(uky: Uky, tree: Path, before: str, after: str) -> None:
    (tree / "uky-patch.toml").write_text(before)
    assert uky("apply", "--skip", "log-flag", "--remember").code == 0
    assert (tree / "uky-patch.toml").read_text() == after


def test_nothing_is_remembered_of_an_apply_that_fails(uky: Uky, tree: Path, records: Path) -> None:
    drift(tree)
    assert uky("apply", "--skip", "utils-moved", "--remember").code == 3
    assert not (tree / "uky-patch.toml").exists()


def test_what_is_applied_stays_when_it_is_skipped_once(uky: Uky, tree: Path, records: Path) -> None:
    uky("apply")
    text = (tree / "verl/server.py").read_text()
    (records / "log-flag.toml").write_text(RECORD.replace('"args.enable_log"', '"args.log"'))
    assert uky("apply", "--skip", "log-flag").code == 0
    assert (tree / "verl/server.py").read_text() == text
    assert uky("apply").code == 0
    assert "enable_log=args.log" in (tree / "verl/server.py").read_text()


def test_a_record_after_a_skipped_one_says_so(uky: Uky, follow: Follow, tree: Path, records: Path) -> None:
    (records / "mine.toml").write_text(
        RECORD.replace('"log-flag"', '"mine"\nafter = ["log-flag"]', 1)
        .partition("[resolved]")[0]
        .replace('old = "disable_log"', 'old = "enable_log"')
        .replace('new = "enable_log"\nvalue = "args.enable_log"', 'new = "logs"')
    )
    result = uky("apply", "--skip", "log-flag", json=False)
    assert (result.code, "it comes after log-flag, which is skipped" in result.err) == (3, True)
    assert follow(result).code == 0
    assert uky("status").outcomes["utils-moved"] == "applied"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["apply", "--skip", "log-flg"], "Did you mean log-flag?"),
        (["apply", "--remember"], "--remember goes with --skip"),
        (["apply", "log-flag", "--skip", "log-flag"], "both asked for and skipped"),
    ],
)
def test_mistakes(uky: Uky, words: list[str], said: str) -> None:
    answer = uky(*words)
    assert (answer.code, said in answer.err) == (2, True)


@pytest.mark.parametrize("key", ["enable", "disable"])
def test_an_unknown_record_in_the_settings_is_an_error(uky: Uky, tree: Path, key: str) -> None:
    (tree / "uky-patch.toml").write_text(f'marker = "Uky"\n{key} = ["log-flg"]\n')
    for command in ("status", "apply", "verify"):
        answer = uky(command)
        assert (answer.code, "did you mean log-flag" in answer.err, ":2: " in answer.err) == (4, True, True)
    (tree / "uky-patch.toml").write_text(f'{key} = ["log-flag"]\n')
    assert uky("status").code == 1


WITHOUT = SERVER.replace("from vllm.utils import Parser, get_uri\n", "").replace("Parser()", "args.make()")


def test_what_the_fork_has_solved_in_its_own_way_is_not_in_the_way(uky: Uky, tree: Path) -> None:
    (tree / "verl/server.py").write_text(WITHOUT)
    report = uky("status")
    assert report.outcomes == {"log-flag": "pending", "utils-moved": "resolved"}
    detail = next(one["detail"] for one in report.json["records"] if one["id"] == "utils-moved")
    assert detail.startswith("this fork handles it in its own way")
    assert uky("apply").code == 0
    assert (uky("status").code, uky("verify").code) == (0, 0)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("server", 'import importlib\nmake = importlib.import_module("vllm.utils").make\n'),
        ("server", "from vllm.utils import *\n"),
        ("server", "from vllm.utils import get_uri\n"),
        ("server", "import vllm\nmake = vllm.utils.Parser\n"),
        ("server", "import vllm\nmake = vllm.utils.make\n"),
        ("server", "from vllm import utils\n"),
        ("other", "from vllm.utils import Parser\n"),
    ],
)
def test_a_record_whose_finding_remains_has_drifted(uky: Uky, tree: Path, file: str, text: str) -> None:
    (tree / "verl/server.py").write_text(WITHOUT)
    path = tree / f"verl/{file}.py"
    path.write_text(text + (path.read_text() if path.exists() else ""))
    assert uky("status").outcomes["utils-moved"] == "drifted"


def test_the_other_files_of_such_a_record_are_patched(uky: Uky, tree: Path, records: Path) -> None:
    edit = RECORD_OF_MOVE.partition("[[edit]]")[2].replace("verl/server.py", "verl/client.py")
    (records / "utils-moved.toml").write_text(f"{RECORD_OF_MOVE}[[edit]]{edit}")
    (tree / "verl/server.py").write_text(WITHOUT)
    (tree / "verl/client.py").write_text(SERVER)
    result = uky("apply", json=False)
    assert (result.code, "this fork handles it in its own way in verl/server.py" in result.out) == (0, True)
    assert "from vllm.utils.parsers import Parser" in (tree / "verl/client.py").read_text()
    assert uky("status").code == 0


def test_a_file_that_the_fork_has_taken_out_stops_no_record(uky: Uky, tree: Path, records: Path) -> None:
    edit = RECORD_OF_MOVE.partition("[[edit]]")[2].replace("verl/server.py", "verl/gone.py")
    replaced = edit.replace("move-import", "replace").partition("old =")[0] + 'pattern = "f(1)"\nwith = "f(2)"\n'
    (records / "utils-moved.toml").write_text(f"{RECORD_OF_MOVE}[[edit]]{replaced}")
    assert uky("status").outcomes["utils-moved"] == "missing-file"  # Its kind has no place elsewhere.
    place = replaced.replace("verl/gone.py", "verl/server.py").replace("f(1)", "Parser()").replace("f(2)", "Parser(1)")
    (records / "utils-moved.toml").write_text(f"{RECORD_OF_MOVE}[[edit]]{place}[[edit]]{replaced}")
    applied = uky("apply", json=False)
    assert (applied.code, "left out, as this tree does not have it: verl/gone.py" in applied.out) == (0, True)
    assert "Parser(1)" in (tree / "verl/server.py").read_text()
    assert uky("status").code == 0


def test_a_line_that_the_forks_own_record_made_is_edited_in_the_record_too(uky: Uky, tree: Path, records: Path) -> None:
    """The edit is not to be lost: --force is named, and is not the next step."""
    (records / "log-flag.toml").unlink()
    (records / "utils-moved.toml").write_text(RECORD_OF_MOVE.replace('vllm = ">=2"', 'vllm = ">=9"'))
    (tree / "patches").mkdir()
    (tree / "patches/log-flag.toml").write_text(RECORD)
    (tree / "uky-patch.toml").write_text('patches = ["patches"]\n')
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text().replace("enable_log=args.enable_log", "enable_log=not args.quiet"))
    told = uky("status", json=False)
    assert "Next: write the change into patches/log-flag.toml, then uky-patch apply --merge log-flag " in told.out
    assert uky("status").json["next"] == ""
    (tree / "patches/log-flag.toml").write_text(RECORD.replace('"args.enable_log"', '"not args.quiet"'))
    assert uky("apply", "--merge", "log-flag").code == 0
    assert "enable_log=not args.quiet" in path.read_text()
    assert uky("status").code == 0
