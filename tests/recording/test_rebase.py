"""`rebase`: a fork's records onto another verl, as a branch; the working copy stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SERVER
from tests.recording.test_record import FILE, SETTINGS, Call, _plain, call, commit, edit, fork, git  # noqa: F401


@pytest.fixture
def recorded(fork: Path, call: Call) -> Path:  # noqa: F811
    """A fork with three edits of its own and a file, all recorded and in commits; and a newer verl as a tag."""
    git(fork, "config", "user.name", "A User")
    git(fork, "config", "user.email", "user@example.invalid")
    git(fork, "tag", "v99.1")
    server = SERVER.replace("import Parser, get_uri", "import Parser, get_uri, other").replace('"h", 1', '"host", 1')
    (fork / FILE).write_text(server.replace("            config=args.config,\n", "            settings=args.config,\n"))
    (fork / "verl/version/version").write_text("99.2\n")
    (fork / "verl/more.py").write_text("more = 1\n")
    commit(fork, "verl 99.2")
    git(fork, "tag", "v99.2")
    git(fork, "reset", "-q", "--hard", "v99.1")
    edit(fork, FILE, "disable_log=args.disable_log", "enable_log=args.enable_log")
    edit(fork, FILE, 'get_uri("h", 1)', 'get_uri("h", 2)')
    edit(fork, "verl/settings.yaml", "epochs: 30  # many", "epochs: 3")
    (fork / "verl/own.py").write_text("own = 1\n")
    commit(fork, "Ours")
    assert call("record", "--from", "v99.1", "--yes").code == 0
    commit(fork, "Records")
    return fork


def fates(call: Call, *arguments: str) -> dict[str, str]:  # noqa: F811
    return {one["id"]: one["fate"] for one in call("rebase", *arguments).json["records"]}


def test_each_record_has_a_fate_and_nothing_is_written(recorded: Path, call: Call) -> None:  # noqa: F811
    before = git(recorded, "for-each-ref")
    found = fates(call, "99.2", "--from", "99.1", "--dry-run")
    assert set(found.values()) == {"applies", "drifted"}
    assert git(recorded, "for-each-ref") == before
    assert git(recorded, "status", "--porcelain") == ""


def test_the_branch_has_the_other_verl_and_a_commit_a_record(recorded: Path, call: Call) -> None:  # noqa: F811
    head = git(recorded, "rev-parse", "HEAD")
    answer = call("rebase", "99.2", "--from", "99.1", "--branch", "newer")
    made = [one for one in answer.json["records"] if one["files"]]
    assert answer.code == (1 if len(made) < len(answer.json["records"]) else 0)
    assert git(recorded, "rev-parse", "HEAD") == head
    assert git(recorded, "status", "--porcelain") == ""
    subjects = git(recorded, "log", "--format=%s", "v99.2..newer").splitlines()
    assert len(subjects) == len(made) + 1
    assert subjects[-1] == "Files of the fork's own"
    assert "epochs: 3  # Uky[" in git(recorded, "show", "newer:verl/settings.yaml")
    assert git(recorded, "show", "newer:verl/own.py") == "own = 1\n"
    assert git(recorded, "show", "newer:verl/more.py") == "more = 1\n"
    assert "settings=args.config" in git(recorded, "show", f"newer:{FILE}")


def test_a_file_of_a_record_comes_with_its_record_and_not_with_the_others(recorded: Path, call: Call) -> None:  # noqa: F811
    assert call("record", "--new", "--from", "v99.1", "--yes").code == 0
    commit(recorded, "More records")
    answer = call("rebase", "99.2", "--from", "99.1", "--branch", "newer")
    (made,) = [one for one in answer.json["records"] if one["files"] == ["verl/own.py"]]
    assert made["fate"] == "applies"
    assert git(recorded, "show", "newer:verl/own.py") == f"# Uky[{made['id']}]\nown = 1\n"
    first = git(recorded, "log", "--format=%H", "v99.2..newer").split()[-1]
    assert "verl/own.py" not in git(recorded, "ls-tree", "-r", "--name-only", first).split()


def test_a_file_of_a_record_that_the_other_verl_has_in_another_form_is_drifted(recorded: Path, call: Call) -> None:  # noqa: F811
    (recorded / "verl/more.py").write_text("mine = 1\n")
    commit(recorded, "More")
    assert call("record", "--new", "--from", "v99.1", "--yes").code == 0
    commit(recorded, "More records")
    records = call("rebase", "99.2", "--from", "99.1", "--dry-run").json["records"]
    (found,) = [one for one in records if "verl/more.py" in one["detail"]]
    assert found["fate"] == "drifted"


@pytest.mark.parametrize("adopts", [True, False])
def test_a_record_of_a_file_of_the_forks_own_goes_along_with_it(recorded: Path, call: Call, adopts: bool) -> None:  # noqa: F811
    edit(recorded, "verl/own.py", "own = 1", "own = 2")
    (made,) = call("record", "--yes").json["records"]
    if adopts:
        call("adopt", made["id"])
    commit(recorded, "Two")
    answer = call("rebase", "99.2", "--from", "99.1", "--branch", "newer")
    (fate,) = [one["fate"] for one in answer.json["records"] if one["id"] == made["id"]]
    assert fate == ("applies" if adopts else "resolved")
    first = git(recorded, "log", "--format=%H", "v99.2..newer").split()[-1]
    assert git(recorded, "show", f"{first}:verl/own.py") == ("own = 1\n" if adopts else "own = 2\n")
    assert "\nown = 2" in "\n" + git(recorded, "show", "newer:verl/own.py")


def test_the_branch_is_named_by_the_version_that_was_asked_for(recorded: Path, call: Call) -> None:  # noqa: F811
    git(recorded, "checkout", "-q", "v99.2")
    (recorded / "verl/version/version").write_text("99.5.dev\n")
    commit(recorded, "verl 99.5")
    git(recorded, "tag", "v99.5")
    git(recorded, "checkout", "-q", "fork")
    assert call("rebase", "99.5", "--from", "99.1", "--dry-run").json["branch"] == "uky-patch/verl-99.5"


def test_what_upstream_has_taken_over_is_resolved(recorded: Path, call: Call) -> None:  # noqa: F811
    git(recorded, "checkout", "-q", "v99.2")
    edit(recorded, "verl/settings.yaml", "epochs: 30  # many", "epochs: 3")
    commit(recorded, "verl 99.3")
    git(recorded, "tag", "v99.3")
    git(recorded, "checkout", "-q", "fork")
    found = fates(call, "99.3", "--from", "99.1", "--dry-run")
    assert [fate for name, fate in found.items() if "settings" in name] == ["resolved"]


def test_an_anchor_that_moved_is_proposed_anew(recorded: Path, call: Call) -> None:  # noqa: F811
    git(recorded, "checkout", "-q", "v99.1")
    edit(recorded, FILE, "    def launch(self, args):", "    def launch_all(self, args):")
    commit(recorded, "verl 99.4")
    git(recorded, "tag", "v99.4")
    git(recorded, "checkout", "-q", "fork")
    answer = call("rebase", "99.4", "--from", "99.1", "--branch", "renamed")
    moved = [one for one in answer.json["records"] if one["fate"] == "moved"]
    assert moved
    for one in moved:
        assert "launch_all" in git(recorded, "show", f"renamed:patches/{one['id']}.toml")


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("nowhere",), "'nowhere' is no commit of this checkout"),
        (("v99.2", "--branch", "a..b"), "'a..b' is no name of a branch"),
        (("v99.2", "--branch", "fork"), "there is a branch fork already"),
    ],
)
def test_mistakes_are_one_error(recorded: Path, call: Call, arguments: tuple[str, ...], title: str) -> None:  # noqa: F811
    answer = call("rebase", *arguments, "--from", "99.1")
    assert answer.code == 2
    assert answer.json["error"]["title"] == title


def test_records_that_are_in_no_commit_come_first(recorded: Path, call: Call) -> None:  # noqa: F811
    """Not yet there, changed since, or ignored by git: the branch would have lines of records that it has not."""

    def refused() -> str:
        before = git(recorded, "for-each-ref")
        answer = call("rebase", "99.2", "--from", "99.1", "--branch", "newer")
        assert (answer.code, git(recorded, "for-each-ref")) == (5, before)
        assert answer.json["error"]["advice"].startswith("Commit them first: git add ")
        return str(answer.json["error"]["title"])

    git(recorded, "reset", "-q", "HEAD~1")
    assert refused() == "uncommitted changes in patches, uky-patch.toml"
    assert fates(call, "99.2", "--from", "99.1", "--dry-run")
    (recorded / ".git/info/exclude").write_text("/patches/\n")
    git(recorded, "add", "uky-patch.toml")
    git(recorded, "-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "-q", "-m", "Settings")
    assert refused() == "uncommitted changes in patches"
    git(recorded, "add", "--force", "patches")
    commit(recorded, "Records")
    record = min((recorded / "patches").glob("*.toml"))
    text = record.read_text()
    record.write_text(text + "# more\n")
    assert refused() == "uncommitted changes in patches"
    record.write_text(text)
    assert call("rebase", "99.2", "--from", "99.1", "--branch", "newer").json["branch"] == "newer"


def test_no_advice_loses_a_branch(recorded: Path, call: Call) -> None:  # noqa: F811
    """The branch that is checked out, one that is not, and names that git cannot have beside another."""
    git(recorded, "branch", "old/verl-99.2")

    def refused(name: str) -> tuple[str, str]:
        error = call("rebase", "v99.2", "--from", "99.1", "--branch", name).json["error"]
        assert "-D" not in error["advice"]
        return error["title"], error["advice"]

    assert refused("fork") == ("there is a branch fork already", "Name another with --branch.")
    title, advice = refused("old/verl-99.2")
    assert title == "there is a branch old/verl-99.2 already"
    assert advice.endswith("or rename that one: git branch -m old/verl-99.2 NEW_NAME")
    beside = "'{}' can be no branch beside the branch {}"
    assert refused("old") == (beside.format("old", "old/verl-99.2"), "Name another with --branch.")
    assert refused("fork/99.2") == (beside.format("fork/99.2", "fork"), "Name another with --branch.")
    git(recorded, "branch", "-M", "old/verl-99.2", "older")
    assert call("rebase", "v99.2", "--from", "99.1", "--branch", "old").json["branch"] == "old"


def test_without_records_of_its_own_record_comes_first(fork: Path, call: Call) -> None:  # noqa: F811
    git(fork, "tag", "v99.1")
    answer = call("rebase", "99.1")
    assert answer.code == 2
    assert "uky-patch record" in answer.json["error"]["advice"]


def test_the_next_command_names_the_fork_where_it_was_named(recorded: Path, call: Call) -> None:  # noqa: F811
    shown = call("rebase", "99.2", "--from", "99.1", "--branch", "newer", as_json=False).out
    assert f"Next: git -C {recorded} switch newer" in shown


def test_what_is_under_the_ledger_is_taken_over_on_the_branch(recorded: Path, call: Call) -> None:  # noqa: F811
    """The files on the branch hold the records' edits and another verl; the pre-images are of the old one."""
    assert call("adopt", "--all", "--from", "v99.1").code == 0
    commit(recorded, "Adopted")
    assert call("rebase", "99.2", "--from", "99.1", "--branch", "newer").code == 1  # The edit of the call drifts.
    git(recorded, "switch", "--quiet", "newer")
    there = {file: (recorded / file).read_text() for file in (FILE, "verl/settings.yaml")}
    assert "tampered" not in call("status", as_json=False).out
    done = call("apply", "--allow-dirty", "--dry-run")
    assert "tampered" not in {one["outcome"] for one in done.json["records"]}
    assert call("revert").code == 0
    assert (recorded / "verl/settings.yaml").read_text() == SETTINGS
    assert "Uky[" not in (recorded / FILE).read_text()
    assert "settings=args.settings" not in there[FILE]
    assert "settings=args.config" in (recorded / FILE).read_text()
