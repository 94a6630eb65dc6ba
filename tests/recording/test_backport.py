"""`backport`: a fix of a newer verl as a record for an older tree, and what of it does not carry over."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

from tests.cli.conftest import SERVER
from tests.recording.test_record import FILE, Call, _plain, call, commit, fork, git  # noqa: F401

NEWER = SERVER.replace("class Server:\n", "import json\nimport socket\n\nLIMIT = 5\n\n\nclass Server:\n").replace(
    "parser = Parser()\n", "parser = Parser(prefix=LIMIT)\n        self.names = json.loads(args.names)\n"
)


class Upstream:
    """A clone of a newer verl, with a commit for each fix."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "verl/version").mkdir(parents=True)
        (root / "verl/__init__.py").write_text("")
        (root / "verl/version/version").write_text("99.2\n")
        (root / FILE).write_text(NEWER)
        (root / "verl/helper.py").write_text("def old():\n    return 1\n")
        git(root, "init", "-q", "-b", "main")
        commit(root, "verl 99.2")

    def fix(self, subject: str, *edits: tuple[str, str], file: str = FILE) -> str:
        text = (self.root / file).read_text() if (self.root / file).exists() else ""
        for old, new in edits:
            assert text.count(old) == 1 or not text
            text = text.replace(old, new) if text else new
        (self.root / file).parent.mkdir(exist_ok=True, parents=True)
        (self.root / file).write_text(text)
        commit(self.root, subject)
        return git(self.root, "rev-parse", "HEAD").strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


FLAG = ("            disable_log=args.disable_log,\n", "            enable_log=args.enable_log,\n")


def test_a_fix_becomes_a_record_that_applies(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    made = upstream.fix("[vllm] fix: enable_log (#4321)", FLAG)
    git(upstream.root, "tag", "v99.3")
    report = call("backport", made, "--upstream", str(upstream.root), "--yes").json
    assert [one["fate"] for one in report["ported"]] == ["carried"]
    assert (report["subject"], report["since"], report["left"]) == ("[vllm] fix: enable_log", "99.3", [])
    (path,) = report["written"]
    record = tomllib.loads(Path(path).read_text())
    assert record["when"] == {"verl": "<99.3"}
    assert (record["lifetime"], record["tags"]) == ("until-upstream", ["backport"])
    assert record["upstream"].endswith("/verl/pull/4321")
    assert record["edit"][0]["kind"] == "rename-argument"
    assert call("apply", record["id"], "--allow-dirty").json["written"] == [FILE]
    assert "enable_log=args.enable_log,  # Uky" in (fork / FILE).read_text()


def test_nothing_is_written_unless_it_is_asked_for(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    made = upstream.fix("fix", FLAG)
    answer = call("backport", made, "--upstream", str(upstream.root), "--diff", as_json=False)
    assert answer.code == 1
    assert "+            enable_log=args.enable_log," in answer.out
    assert git(fork, "status", "--porcelain") == ""


def test_it_finds_its_place_by_symbol_where_the_lines_around_it_are_others(
    fork: Path,  # noqa: F811
    upstream: Upstream,
    call: Call,  # noqa: F811
) -> None:
    (fork / FILE).write_text(SERVER.replace("            config=args.config,\n", "            config=args.ours,\n"))
    commit(fork, "Ours")
    report = call("backport", upstream.fix("fix", FLAG), "--upstream", str(upstream.root), "--yes").json
    assert [one["fate"] for one in report["ported"]] == ["carried"]
    assert report["left"] == []


def test_what_is_there_already_is_not_made_again(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    (fork / FILE).write_text(SERVER.replace(*FLAG))
    commit(fork, "Ours")
    answer = call("backport", upstream.fix("fix", FLAG), "--upstream", str(upstream.root), as_json=False)
    assert answer.code == 0
    assert "1 here already" in answer.out
    assert not (fork / "patches").exists()


def test_what_builds_on_another_commit_names_it_and_both_together_carry_over(
    fork: Path,  # noqa: F811
    upstream: Upstream,
    call: Call,  # noqa: F811
) -> None:
    first = upstream.fix("first", ('return parser, get_uri("h", 1)', 'return parser, get_uri("h", port=1)'))
    second = upstream.fix("second", ('get_uri("h", port=1)', 'get_uri("h", port=2)'))
    alone = call("backport", second, "--upstream", str(upstream.root), "--dry-run").json
    assert alone["records"] == []
    (left,) = alone["left"]
    assert (left["file"], first[:9] in left["why"]) == (FILE, True)
    both = call("backport", second, first, "--upstream", str(upstream.root), "--yes").json
    assert both["left"] == []
    assert both["subject"] == "second"
    assert call("apply", both["records"][0]["id"], "--allow-dirty").json["written"] == [FILE]
    assert 'get_uri("h", port=2)' in (fork / FILE).read_text()


def test_an_import_that_upstream_had_before_comes_along(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    made = upstream.fix("fix", ('get_uri("h", 1)', "get_uri(socket.gethostname(), 1)"))
    report = call("backport", made, "--upstream", str(upstream.root), "--yes").json
    assert report["left"] == []
    assert call("apply", report["records"][0]["id"], "--allow-dirty").json["written"] == [FILE]
    assert "import socket" in (fork / FILE).read_text()


def test_what_uses_a_name_that_is_not_here_is_told(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    made = upstream.fix("fix", ('get_uri("h", 1)', 'get_uri("h", LIMIT)'))
    report = call("backport", made, "--upstream", str(upstream.root), "--dry-run").json
    assert report["records"] == []
    assert "LIMIT" in report["left"][0]["why"]


def test_a_new_helper_and_its_use_carry_over_together(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    (fork / "verl/helper.py").write_text("def old():\n    return 1\n")
    commit(fork, "helper")
    helper = upstream.root / "verl/helper.py"
    helper.write_text(helper.read_text() + "\n\ndef port():\n    return 2\n")
    made = upstream.fix(
        "fix",
        ("from verl import x\n", "from verl import x\nfrom verl.helper import port\n"),
        ('"h", 1)', '"h", port())'),
    )
    report = call("backport", made, "--upstream", str(upstream.root), "--yes").json
    assert report["left"] == []
    (fork / "verl/helper.py").unlink()
    commit(fork, "no helper")
    report = call("backport", made, "--upstream", str(upstream.root), "--into", "others", "--dry-run").json
    assert {one["file"] for one in report["left"]} == {"verl/helper.py", FILE}


def test_a_new_file_is_carried_and_tests_are_named(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    (upstream.root / "tests").mkdir()
    (upstream.root / "tests/test_it.py").write_text("def test_it():\n    pass\n")
    made = upstream.fix("fix", ("", "new = 1\n"), file="verl/new.py")
    report = call("backport", made, "--upstream", str(upstream.root), "--dry-run").json
    assert report["skipped"] == ["tests/test_it.py"]
    assert report["left"] == []
    assert [one["created"] for one in report["records"]] == [["verl/new.py"]]
    assert [(one["upstream"], one["fate"]) for one in report["ported"]] == [("verl/new.py", "carried")]


def test_a_new_file_comes_with_what_uses_it(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    (upstream.root / "verl/flags").mkdir()
    (upstream.root / "verl/flags/__init__.py").write_text("")
    (upstream.root / "verl/flags/log.py").write_text("def flagged(args):\n    return args\n")
    use = "\n\nclass Server:", "\nfrom verl.flags.log import flagged\n\n\nclass Server:"
    made = upstream.fix("fix", use)
    answer = call("backport", made, "--upstream", str(upstream.root), "--yes")
    (record,) = answer.json["records"]
    assert record["created"] == ["verl/flags/__init__.py", "verl/flags/log.py"]
    assert set(call("apply", record["id"], "--allow-dirty").json["written"]) == {*record["created"], FILE}
    assert "def flagged" in (fork / "verl/flags/log.py").read_text()
    assert "from verl.flags.log import flagged" in (fork / FILE).read_text()


def test_a_new_file_that_needs_what_is_not_here_is_left(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    (upstream.root / "verl/other.py").write_text("def helper():\n    return 1\n")
    commit(upstream.root, "Earlier")
    made = upstream.fix("fix", ("", "from verl.other import helper\n\nhelper()\n"), file="verl/new.py")
    report = call("backport", made, "--upstream", str(upstream.root), "--dry-run").json
    assert report["records"] == []
    assert [(one["file"], "helper" in one["why"]) for one in report["left"]] == [("verl/new.py", True)]


def test_a_commit_or_a_clone_that_is_not_there(fork: Path, upstream: Upstream, call: Call, tmp_path: Path) -> None:  # noqa: F811
    answer = call("backport", "0123abc", "--upstream", str(upstream.root))
    assert (answer.code, "0123abc" in answer.json["error"]["title"]) == (2, True)
    (tmp_path / "empty").mkdir()
    answer = call("backport", "HEAD", "--upstream", str(tmp_path / "empty"))
    assert (answer.code, "--upstream" in answer.json["error"]["advice"]) == (2, True)
    answer = call(
        "backport", git(upstream.root, "rev-list", "--max-parents=0", "HEAD").strip(), "--upstream", str(upstream.root)
    )
    assert answer.code == 2


def test_a_tree_of_a_release_that_has_it_gets_nothing(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    """Later commits may have written it anew: the older form must not come back."""
    made = upstream.fix("fix", FLAG)
    git(upstream.root, "tag", "v99.0")
    answer = call("backport", made, "--upstream", str(upstream.root), as_json=False)
    assert answer.code == 0
    assert "99.0, and this tree is of that or a later one" in answer.out
    assert not (fork / "patches").exists()


def test_a_file_that_both_have_made_and_an_empty_one_are_told(fork: Path, upstream: Upstream, call: Call) -> None:  # noqa: F811
    (fork / "verl/new.py").write_text("ours = 1\n")
    (fork / "verl/empty.py").write_text("ours = 1\n")
    commit(fork, "Ours")
    (upstream.root / "verl/empty.py").write_text("")
    commit(upstream.root, "empty")
    (upstream.root / "verl/empty.py").write_text("theirs = 1\n")
    made = upstream.fix("fix", ("", "theirs = 1\n"), file="verl/new.py")
    report = call("backport", made, "--upstream", str(upstream.root), "--dry-run").json
    assert "another one has its name" in {one["file"]: one["why"] for one in report["left"]}["verl/new.py"]
