"""apply, status, verify and revert on a small tree: outcomes, exit codes, and what is written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import MOVED, RECORD, SERVER, Answer, Uky

BOTH_APPLIED = {"log-flag": "applied", "utils-moved": "applied"}
BOTH_PENDING = {"log-flag": "pending", "utils-moved": "pending"}


def since(status: Answer) -> dict[str, list[str]]:
    """The files that each record says were changed since it was applied."""
    return {one["id"]: one["changed_since"] for one in status.json["records"] if one["changed_since"]}


def test_the_round(uky: Uky, tree: Path) -> None:
    before = uky("status")
    assert (before.code, before.outcomes) == (1, BOTH_PENDING)
    done = uky("apply")
    assert (done.code, done.outcomes) == (0, BOTH_APPLIED)
    assert done.json["written"] == ["verl/server.py"]
    after = uky("status")
    assert (after.code, after.outcomes) == (0, BOTH_APPLIED)
    again = uky("apply")
    assert (again.code, again.json["written"]) == (0, [])
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert sorted(p.name for p in tree.iterdir()) == ["verl"]


def test_the_json_is_the_contracts(uky: Uky, tree: Path) -> None:
    report = uky("status").json
    assert set(report) >= {"root", "versions", "records", "written"}
    assert report["root"] == str(tree)
    assert report["versions"]["verl"] == "99.1"
    assert report["versions"]["vllm"] == "2.1"
    assert all(set(record) == {"id", "outcome", "files", "detail", "changed_since"} for record in report["records"])


def test_what_is_written_is_marked_and_keeps_the_old_line(uky: Uky, tree: Path) -> None:
    uky("apply")
    text = (tree / "verl/server.py").read_text()
    assert "            # disable_log=args.disable_log,  # Uky[log-flag]\n" in text
    assert "            enable_log=args.enable_log,  # Uky[log-flag]\n" in text
    assert "from vllm.utils.parsers import Parser  # Uky[utils-moved]\n" in text


def test_a_dry_run_writes_nothing_and_says_that_it_would(uky: Uky, tree: Path) -> None:
    done = uky("apply", "--dry-run", "--diff", json=False)
    assert done.code == 1
    assert "+            enable_log=args.enable_log,  # Uky[log-flag]" in done.out
    assert "1 file would change; nothing was written" in done.out
    assert (tree / "verl/server.py").read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


def test_one_record_alone(uky: Uky, tree: Path) -> None:
    assert uky("apply", "utils-moved").code == 0
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}
    assert uky("apply").outcomes == BOTH_APPLIED


def test_single_records_are_taken_out_of_a_file_that_several_touched(uky: Uky, tree: Path) -> None:
    uky("apply", "utils-moved")
    one = (tree / "verl/server.py").read_bytes()
    uky("apply")
    assert uky("revert", "log-flag").code == 0
    assert (tree / "verl/server.py").read_bytes() == one
    assert uky("revert", "utils-moved").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


def test_revert_works_where_only_the_tree_was_copied(uky: Uky, tree: Path, records: Path) -> None:
    uky("apply")
    for path in records.iterdir():
        path.unlink()
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER


def test_a_record_that_is_no_longer_needed_is_taken_out(uky: Uky, tree: Path) -> None:
    uky("apply")
    status = uky("status", vllm="1.0")
    assert (status.code, status.outcomes) == (1, BOTH_PENDING)
    assert uky("apply", vllm="1.0").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert uky("status", vllm="1.0").code == 0


def test_what_is_taken_out_is_told(uky: Uky, tree: Path) -> None:
    uky("apply")
    result = uky("apply", vllm="1.0", json=False).out
    assert "log-flag" in result
    assert "taken out" in result
    assert "1 file put back" in result


def test_a_record_that_the_fork_disables_is_taken_out(uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / "uky-patch.toml").write_text('disable = ["log-flag"]\n')
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}
    assert uky("apply").outcomes == {"log-flag": "not-needed", "utils-moved": "applied"}
    assert "log-flag" not in (tree / "verl/server.py").read_text()
    assert uky("status").code == 0


def test_one_record_alone_leaves_the_applied_ones_as_they_were(uky: Uky, tree: Path, records: Path) -> None:
    uky("apply", "log-flag")
    (records / "log-flag.toml").write_text(RECORD.replace('"args.enable_log"', '"args.log"'))
    assert uky("apply", "utils-moved").code == 0
    text = (tree / "verl/server.py").read_text()
    assert "enable_log=args.enable_log,  # Uky[log-flag]" in text
    assert "# Uky[utils-moved]" in text
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}


def test_an_edit_for_one_side_of_a_development_version_is_no_drift(uky: Uky, tree: Path, records: Path) -> None:
    other = '[[edit]]\nfile = "verl/server.py"\nkind = "rename-attribute"\nold = "x.gone"\nnew = "y"\nverl = ">=100"\n'
    mine = RECORD.replace("<100", "<101").replace("within =", 'verl = "<100"\nwithin =', 1)
    (records / "log-flag.toml").write_text(mine.replace("[resolved]", f"{other}[resolved]"))
    (tree / "verl/version/version").write_text("100.0.dev0\n")
    assert uky("status").outcomes["log-flag"] == "pending"
    (tree / "verl/server.py").write_text(SERVER.replace("disable_log=args.disable_log", "enable_log=args.loud"))
    assert uky("status").outcomes["log-flag"] == "adopted"


def test_a_tree_within_the_tree_is_named(uky: Uky, tree: Path) -> None:
    (tree / "fork/verl").mkdir(parents=True)
    (tree / "fork/verl/__init__.py").write_text("")
    assert "another verl tree within this one: fork" in uky("status", json=False).out


def test_what_is_applied_stays_where_vllm_is_not_found(uky: Uky, tree: Path) -> None:
    uky("apply")
    text = (tree / "verl/server.py").read_bytes()
    assert uky("apply", vllm="none").code == 0
    assert (tree / "verl/server.py").read_bytes() == text


def test_a_changed_record_is_applied_anew(uky: Uky, tree: Path, records: Path) -> None:
    uky("apply")
    (records / "log-flag.toml").write_text(RECORD.replace('"args.enable_log"', '"args.log"'))
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}
    assert uky("apply").code == 0
    assert "enable_log=args.log,  # Uky[log-flag]" in (tree / "verl/server.py").read_text()
    uky("revert")
    assert (tree / "verl/server.py").read_text() == SERVER


def test_a_file_changed_since_is_refused_and_named_and_merged(uky: Uky, tree: Path) -> None:
    uky("apply")
    changed = (tree / "verl/server.py").read_text() + "# mine\n"
    (tree / "verl/server.py").write_text(changed)
    status = uky("status")
    assert (status.code, status.outcomes) == (1, {"log-flag": "tampered", "utils-moved": "tampered"})
    assert since(status) == {name: ["verl/server.py"] for name in BOTH_APPLIED}
    assert "what it made still holds" in uky("status", json=False).out
    checks = {check["name"]: check for check in uky("verify").json["checks"]}
    file = checks["file verl/server.py"]
    assert (uky("verify").code, file["status"], file["fix"]) == (1, "fail", "uky-patch apply --merge")
    for command in ("apply", "revert"):
        assert uky(command).code == 3
        assert (tree / "verl/server.py").read_text() == changed
    assert uky("apply", "--merge").json["written"] == []
    assert (since(uky("status")), uky("status").code, uky("verify").code) == ({}, 0, 0)
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER + "# mine\n"


def test_a_line_beside_a_patched_one_may_be_edited(uky: Uky, tree: Path) -> None:
    """Of one call, whose next argument a record has changed."""
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text().replace("config=args.config,", "config=None,  # Uky: quiet"))
    assert uky("apply", "--merge").outcomes == BOTH_APPLIED
    assert uky("revert", "log-flag").code == 0
    assert "            config=None,  # Uky: quiet\n            disable_log=args.disable_log,\n" in path.read_text()
    assert uky("revert").code == 0
    assert path.read_text() == SERVER.replace("config=args.config,", "config=None,  # Uky: quiet")


def test_a_file_that_a_formatter_laid_out_anew_keeps_its_layout(uky: Uky, tree: Path, records: Path) -> None:
    uky("apply", "log-flag")
    path = tree / "verl/server.py"
    wrapped = path.read_text().replace(
        "            enable_log=args.enable_log,  # Uky[log-flag]\n",
        "            enable_log=(\n                args.enable_log\n            ),  # Uky[log-flag]\n",
    )
    path.write_text(wrapped)
    assert uky("status").outcomes["log-flag"] == "tampered"
    assert uky("apply", "--merge", "log-flag").json["written"] == []
    assert uky("status").outcomes == {"log-flag": "applied", "utils-moved": "pending"}
    assert (path.read_text(), uky("apply", "log-flag").json["written"]) == (wrapped, [])
    assert uky("apply").code == 0
    assert "                args.enable_log\n            ),  # Uky[log-flag]\n" in path.read_text()
    assert uky("status").outcomes == BOTH_APPLIED
    (records / "log-flag.toml").write_text(RECORD.replace('"args.enable_log"', '"args.log"'))
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}
    assert uky("apply").code == 0
    assert "enable_log=args.log,  # Uky[log-flag]" in path.read_text()
    assert uky("revert").code == 0
    assert path.read_text() == SERVER


def test_an_old_line_kept_as_a_comment_may_be_deleted_and_words_put_behind_a_marker(uky: Uky, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    changed = path.read_text().replace("            # disable_log=args.disable_log,  # Uky[log-flag]\n", "")
    changed = changed.replace("# Uky[log-flag]", "# Uky[log-flag] as our vLLM is newer")
    path.write_text(changed)
    assert uky("apply", "--merge").outcomes == BOTH_APPLIED
    assert path.read_text() == changed
    assert (uky("apply").code, path.read_text()) == (0, changed)
    done = uky("revert", json=False)
    assert (done.code, "kept what was changed by hand: .uky-patch-kept/" in done.out) == (0, True)
    assert path.read_text() == SERVER
    assert changed in [kept.read_text() for kept in (tree / ".uky-patch-kept").iterdir()]


@pytest.mark.parametrize("new", ["False", "args.enable_log or True", "(args.enable_log,)"])
def test_a_marked_line_that_says_something_else_is_never_called_unchanged(uky: Uky, tree: Path, new: str) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    changed = path.read_text().replace("enable_log=args.enable_log", f"enable_log={new}")
    path.write_text(changed)
    assert uky("status").outcomes == {"log-flag": "tampered", "utils-moved": "tampered"}
    assert uky("verify").code == 1
    for command in (["apply"], ["apply", "--merge"], ["revert"], ["revert", "--merge"]):
        assert uky(*command).code == 3
        assert path.read_text() == changed


def test_a_changed_line_is_taken_over_once_the_record_says_it_too(uky: Uky, tree: Path, records: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text().replace("enable_log=args.enable_log", "enable_log=args.log"))
    assert uky("apply").code == 3
    (records / "log-flag.toml").write_text(RECORD.replace('"args.enable_log"', '"args.log"'))
    assert (uky("apply", "--merge").code, uky("status").outcomes) == (0, BOTH_APPLIED)
    assert uky("revert").code == 0
    assert path.read_text() == SERVER


def test_one_file_in_conflict_is_not_in_the_way_of_records_of_others(uky: Uky, tree: Path, records: Path) -> None:
    (tree / "verl/other.py").write_text(SERVER)
    (records / "utils-moved.toml").write_text(MOVED.replace("verl/server.py", "verl/other.py"))
    uky("apply", "log-flag")
    path = tree / "verl/server.py"
    changed = path.read_text().replace("enable_log=args.enable_log", "enable_log=False")
    path.write_text(changed)
    assert uky("apply").code == 3
    done = uky("apply", "utils-moved", json=False)
    assert (done.code, "left as it is: verl/server.py was changed since" in done.out) == (0, True)
    assert "Uky[utils-moved]" in (tree / "verl/other.py").read_text()
    assert uky("apply", "--skip", "log-flag").code == 0
    assert uky("revert", "utils-moved").code == 0
    assert ((tree / "verl/other.py").read_text(), path.read_text()) == (SERVER, changed)
    assert uky("revert").code == 3
    assert uky("revert", "--force").code == 0
    assert path.read_text() == SERVER
    assert changed in [kept.read_text() for kept in tree.rglob("*") if kept.is_file()]


def test_a_forced_revert_of_one_record_keeps_the_pre_image(uky: Uky, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text().replace("enable_log=args.enable_log", "enable_log=False"))
    assert uky("revert", "--force", "log-flag").code == 0
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}
    assert uky("revert").code == 0
    assert path.read_text() == SERVER


def test_a_forced_revert_puts_back_what_is_gone_or_no_text(uky: Uky, tree: Path) -> None:
    path = tree / "verl/server.py"
    uky("apply")
    path.write_bytes(b"\xff\xfe\x00")
    assert uky("revert").code == 3
    assert (uky("revert", "--force").code, path.read_text()) == (0, SERVER)
    uky("apply")
    path.unlink()
    assert (uky("revert", "--force").code, path.read_text()) == (0, SERVER)


def test_a_forced_revert_keeps_what_was_changed(uky: Uky, tree: Path) -> None:
    uky("apply")
    changed = (tree / "verl/server.py").read_text() + "# mine\n"
    (tree / "verl/server.py").write_text(changed)
    assert uky("revert", "--force").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert changed in [path.read_text() for path in tree.rglob("*") if path.is_file()]


def test_changes_made_since_can_be_taken_over(uky: Uky, tree: Path) -> None:
    uky("apply", "log-flag")
    path = tree / "verl/server.py"
    changed = path.read_text().replace("return parser, get_uri", "return self, parser, get_uri") + "LIMIT = 3\n"
    path.write_text(changed)
    assert uky("apply", "--merge", json=False).code == 0
    assert uky("status").outcomes == BOTH_APPLIED
    assert "LIMIT = 3\n" in path.read_text()
    assert uky("revert").code == 0
    assert path.read_text() == SERVER.replace("return parser, get_uri", "return self, parser, get_uri") + "LIMIT = 3\n"
    assert not (tree / ".uky-patch").exists()


def test_taking_over_alone_writes_no_file(uky: Uky, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text() + "LIMIT = 3\n")
    done = uky("apply", "--merge")
    assert (done.code, done.json["written"], done.outcomes) == (0, [], BOTH_APPLIED)
    assert uky("status").code == 0
    assert uky("verify").code == 0


def test_changes_made_since_are_left_in_by_a_revert(uky: Uky, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text("# mine\n" + path.read_text())
    assert uky("revert", "log-flag", "--merge").code == 0
    assert path.read_text().startswith("# mine\n")
    assert "Uky[log-flag]" not in path.read_text()
    assert uky("status").outcomes == {"log-flag": "pending", "utils-moved": "applied"}
    uky("revert")
    assert path.read_text() == "# mine\n" + SERVER


def test_a_change_on_our_own_lines_is_no_merge(uky: Uky, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    changed = path.read_text().replace("enable_log=args.enable_log", "enable_log=False")
    path.write_text(changed)
    for command in ("apply", "revert"):
        answer = uky(command, "--merge")
        assert (answer.code, answer.json["next"].split(" --root")[0].startswith("uky-patch revert --force")) == (
            3,
            True,
        )
        assert path.read_text() == changed


def test_a_patched_file_that_upstream_removed_is_forgotten(uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / "verl/server.py").unlink()
    assert uky("status").outcomes == {"log-flag": "tampered", "utils-moved": "tampered"}
    assert uky("revert").code == 3
    assert uky("revert", "--merge").code == 0
    assert not (tree / ".uky-patch").exists()


def test_a_file_that_git_put_back_is_pending_again(uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / "verl/server.py").write_text(SERVER)
    assert uky("status").outcomes == BOTH_PENDING
    assert uky("apply").outcomes == BOTH_APPLIED


@pytest.mark.parametrize(
    "by_hand",
    [
        SERVER.replace("disable_log=args.disable_log", "enable_log=args.enable_log"),
        SERVER.replace("disable_log=args.disable_log,", "enable_log=args.enable_log,  # Uky"),
        SERVER.replace(
            "            disable_log=args.disable_log,\n",
            "            # disable_log=args.disable_log,  # uky\n            enable_log=args.enable_log,  # uky\n",
        ),
    ],
    ids=["unmarked", "marked", "old line above"],
)
def test_a_hand_edit_is_adopted_and_not_made_twice(uky: Uky, tree: Path, by_hand: str) -> None:
    (tree / "verl/server.py").write_text(by_hand)
    assert uky("status").outcomes["log-flag"] == "adopted"
    assert uky("status").json["unrecorded"] == []
    uky("apply")
    assert (tree / "verl/server.py").read_text().count("enable_log=") == 1


@pytest.mark.parametrize(
    "imports",
    [
        "try:\n    from vllm.utils import Parser\nexcept ImportError:\n    from vllm.utils.parsers import Parser\n",
        "from vllm.entrypoints.tools import Parser\n",
        "from vllm.utils.parsers import Parser  # uky\n",
    ],
    ids=["try and except", "another re-export", "the same"],
)
def test_an_import_mended_by_hand_is_adopted(uky: Uky, tree: Path, imports: str) -> None:
    (tree / "verl/server.py").write_text(
        SERVER.replace("from vllm.utils import Parser, get_uri\n", f"{imports}from vllm.utils import get_uri\n")
    )
    assert uky("status").outcomes["utils-moved"] == "adopted"


def test_a_clone_without_the_ledger_knows_its_markers(uky: Uky, tree: Path) -> None:
    uky("apply")
    text = (tree / "verl/server.py").read_bytes()
    subprocess.run(["rm", "-r", str(tree / ".uky-patch")], check=True)
    status = uky("status")
    assert status.outcomes == {"log-flag": "adopted", "utils-moved": "adopted"}
    assert (status.code, status.json["unrecorded"]) == (0, [])
    assert uky("apply").json["written"] == []
    assert (tree / "verl/server.py").read_bytes() == text


def test_marked_lines_without_a_record_are_listed(uky: Uky, tree: Path) -> None:
    (tree / "verl/reward.py").write_text("import re\n\nLIMIT = 5  # Uky\n")
    (tree / "verl/quoted.py").write_text('TEXT = "grep for # Uky"\n')
    assert uky("status").json["unrecorded"] == [{"file": "verl/reward.py", "line": 3}]
    assert "verl/reward.py:3" in uky("status", json=False).out
    uky("apply")
    assert uky("status").json["unrecorded"] == [{"file": "verl/reward.py", "line": 3}]


def drifted(text: str) -> str:
    return text.replace("disable_log=args.disable_log", "quiet=args.disable_log")


FAILING = {
    "drifted": (drifted(SERVER), "found 0"),
    "ambiguous": (
        SERVER.replace("        return parser", "        Engine.start(disable_log=1)\n        return parser"),
        "found 2",
    ),
    "unparseable": (SERVER + "def (\n", "verl/server.py:16"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_one_record_that_fails_stops_all(uky: Uky, tree: Path, kind: str) -> None:
    text, detail = FAILING[kind]
    (tree / "verl/server.py").write_text(text)
    status = uky("status")
    assert (status.code, status.outcomes["log-flag"]) == (1, kind)
    done = uky("apply")
    assert done.code == 3
    assert done.json["written"] == []
    assert detail in next(r["detail"] for r in done.json["records"] if r["id"] == "log-flag")
    assert (tree / "verl/server.py").read_text() == text
    assert not (tree / ".uky-patch").exists()


def test_a_file_that_is_not_there(uky: Uky, tree: Path, records: Path) -> None:
    (tree / "verl/server.py").unlink()
    assert uky("status").outcomes == {"log-flag": "missing-file", "utils-moved": "missing-file"}
    assert uky("apply").code == 3


def test_drift_names_the_nearest_place(uky: Uky, tree: Path) -> None:
    (tree / "verl/server.py").write_text(drifted(SERVER))
    result = uky("explain", "log-flag", json=False)
    assert result.code == 1
    assert "verl/server.py:11" in result.out
    assert "narrow [when]" in result.out


def test_two_records_on_one_place_are_a_conflict(uky: Uky, tree: Path, records: Path) -> None:
    mine = RECORD.replace('"log-flag"', '"mine"').replace('kind = "rename-argument"', 'kind = "remove-argument"')
    mine = mine.replace('new = "enable_log"\nvalue = "args.enable_log"\n', "").partition("[resolved]")[0]
    (records / "mine.toml").write_text(mine.replace('old = "disable_log"', 'old = "enable_log"'))
    status = uky("status")
    assert status.outcomes["mine"] == "conflict"
    assert uky("apply").code == 3
    assert (tree / "verl/server.py").read_text() == SERVER
    ordered = (records / "mine.toml").read_text().replace("lifetime", 'after = ["log-flag"]\nlifetime', 1)
    (records / "mine.toml").write_text(ordered)
    assert uky("apply").code == 0
    assert uky("revert", "log-flag").code == 3
    assert uky("revert", "mine", "log-flag", "utils-moved").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER


def test_upstreams_fix_is_resolved_on_a_development_version(uky: Uky, tree: Path) -> None:
    (tree / "verl/version/version").write_text("100.0.dev0\n")
    (tree / "verl/server.py").write_text(
        SERVER.replace("disable_log=args.disable_log", "enable_log=args.enable_log").replace("Parser, ", "")
    )
    assert uky("status").outcomes == {"log-flag": "resolved", "utils-moved": "not-needed"}


def test_a_development_version_that_looks_like_the_release_before_is_patched(uky: Uky, tree: Path) -> None:
    (tree / "verl/version/version").write_text("100.0.dev0\n")
    assert uky("apply").outcomes == BOTH_APPLIED


def test_off_by_default_until_asked_for(uky: Uky, tree: Path, records: Path) -> None:
    (records / "mine.toml").write_text(MOVED.replace('"utils-moved"', '"mine"\ntags = ["extra"]\nenabled = false'))
    (records / "utils-moved.toml").unlink()
    assert uky("apply").outcomes == {"log-flag": "applied", "mine": "not-needed"}
    assert uky("apply", "--tag", "extra").outcomes == {"log-flag": "applied", "mine": "applied"}
    assert uky("status").outcomes == {"log-flag": "applied", "mine": "applied"}
    uky("revert")
    (tree / "uky-patch.toml").write_text('enable = ["mine"]\ndisable = ["log-flag"]\n')
    assert uky("apply").outcomes == {"log-flag": "not-needed", "mine": "applied"}


def test_the_forks_own_marker_and_style(uky: Uky, tree: Path) -> None:
    (tree / "uky-patch.toml").write_text('marker = "Lab"\nstyle = "clean"\n')
    assert uky("apply").code == 0
    text = (tree / "verl/server.py").read_text()
    assert "enable_log=args.enable_log,  # Lab[log-flag]" in text
    assert "disable_log" not in text
    assert uky("status").code == 0
    uky("revert")
    assert (tree / "verl/server.py").read_text() == SERVER


def test_bytes_that_are_not_the_edits_stay(uky: Uky, tree: Path) -> None:
    path = tree / "verl/server.py"
    content = b"\xef\xbb\xbf" + SERVER.replace("\n", "\r\n").encode().rstrip() + b"  # \xe4\xb8\xad"
    path.write_bytes(content)
    path.chmod(0o640)
    assert uky("apply").code == 0
    patched = path.read_bytes()
    assert patched.startswith(b"\xef\xbb\xbf")
    assert b"\n" not in patched.replace(b"\r\n", b"")
    assert patched.endswith(b"# \xe4\xb8\xad")
    assert path.stat().st_mode & 0o777 == 0o640
    uky("revert")
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o640


def test_other_environments_keep_their_hard_linked_file(uky: Uky, tree: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.py"
    os.link(tree / "verl/server.py", cache)
    uky("apply")
    assert cache.read_text() == SERVER


def test_a_symlink_out_of_the_tree_is_refused(uky: Uky, tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(SERVER)
    (tree / "verl/server.py").unlink()
    (tree / "verl/server.py").symlink_to(outside)
    done = uky("apply")
    assert done.code == 5
    assert "leads out of" in done.err or "outside" in done.err
    assert outside.read_text() == SERVER
