"""`diff`, `pull` and `prune`: what somebody did on a host after a migration, and what has piled up there."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from patcher.migrate.host_edits import HostEdit
from patcher.migrate.pulling import merge
from tests import forks
from tests.migrate.moving import Site
from tests.migrate.test_end_to_end import MOVE, SERVER, well

NOTES = "notes/two words.txt"
HANDLER = "# Who was here: me.\n"


@pytest.fixture
def moved(site: Site) -> Site:
    """A tree on the host, brought by a migration."""
    well(site.mover.migrate("site", *MOVE))
    return site


def edit_there(site: Site, path: str, text: str) -> None:
    """What somebody's editor leaves there."""
    place = site.there / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    owner = site.there.stat()
    os.chown(place, owner.st_uid, owner.st_gid)


@pytest.mark.network
@pytest.mark.hosts
class TestOnAHost:
    def test_a_tree_as_it_was_sent_has_no_edits(self, moved: Site) -> None:
        for command in ("diff", "pull"):
            told = moved.mover.run(command, "site")
            assert told.code == 0, told.text
            assert told.json["files"] == []
        assert "nothing was edited on site" in moved.mover.run("diff", "site", "--new", fmt="text").out

    def test_an_edit_beside_a_records_own_is_taken_over_without_it(self, moved: Site) -> None:
        """The host's file has an edit of a record for its vLLM, the one here has none; only the hand's comes back."""
        here, there = moved.mover.tree / SERVER, moved.there / SERVER
        before = here.read_text()
        edit_there(moved, SERVER, HANDLER + there.read_text())
        shown = moved.mover.run("diff", "site", fmt="text")
        assert shown.code == 1, shown.text
        assert f"+{HANDLER}" in shown.out
        assert "enable_log_requests" not in shown.out
        would = moved.mover.run("pull", "site", "--diff", fmt="text")
        assert would.code == 1
        assert f"+{HANDLER}" in would.out
        assert here.read_text() == before
        told = moved.mover.run("pull", "site")
        assert told.code == 0, told.text
        assert told.json["written"] == [SERVER]
        assert here.read_text() == HANDLER + before
        edited = there.read_text()
        well(moved.mover.migrate("site", *MOVE))
        assert there.read_text() == edited
        assert list(moved.there.glob(".uky-patch-kept/*/verl")) == []
        assert moved.mover.run("diff", "site").code == 0

    def test_what_both_sides_changed_stays_and_is_said(self, moved: Site) -> None:
        readme = moved.mover.tree / "README.md"
        edit_there(moved, "README.md", "theirs\n" + readme.read_text())
        readme.write_text("ours\n" + readme.read_text())
        told = moved.mover.run("pull", "site", fmt="text")
        assert told.code == 1, told.text
        assert "README.md: not pulled: the same lines were changed here" in told.out
        assert readme.read_text().startswith("ours\n")
        folder = moved.mover.state / "theirs"
        beside = moved.mover.run("pull", "site", "--into", str(folder))
        assert beside.code == 0, beside.text
        assert (folder / "README.md").read_text().startswith("theirs\n")
        assert moved.mover.run("pull", "site", "--into", str(folder)).code == 2

    def test_what_is_in_no_commit_here_is_kept_before_it_is_merged(self, moved: Site) -> None:
        place = moved.mover.tree / SERVER
        mine = place.read_text() + "# Not committed.\n"
        edit_there(moved, SERVER, HANDLER + (moved.there / SERVER).read_text())
        place.write_text(mine)
        told = moved.mover.run("pull", "site")
        assert told.code == 0, told.text
        assert place.read_text() == HANDLER + mine
        assert (moved.mover.tree / told.json["files"][0]["kept"]).read_text() == mine

    def test_what_was_sent_uncommitted_is_known_after_it_has_changed_here(self, moved: Site) -> None:
        place = moved.mover.tree / "README.md"
        forks.edit(place, lambda text: "sent uncommitted\n" + text)
        well(moved.mover.migrate("site", *MOVE))
        edit_there(moved, "README.md", place.read_text() + "theirs\n")
        forks.edit(place, lambda text: "later\n" + text)
        assert moved.mover.run("pull", "site").code == 0
        assert place.read_text().startswith("later\nsent uncommitted\n")
        assert place.read_text().endswith("theirs\n")
        (texts,) = (moved.mover.state / ".local/state/uky-patch/migrations").glob("*.sent")
        forks.commit(moved.mover.tree, "all of it")
        well(moved.mover.migrate("site", *MOVE))
        assert not [one for one in texts.iterdir() if b"sent uncommitted" in one.read_bytes()], "in a commit now"

    def test_where_what_was_sent_is_not_known_nothing_is_merged(self, moved: Site) -> None:
        place = moved.mover.tree / SERVER
        edit_there(moved, SERVER, HANDLER + (moved.there / SERVER).read_text())
        forks.edit(place, lambda text: text + "# Later.\n")
        shutil.rmtree(next((moved.mover.state / ".local/state/uky-patch/migrations").glob("*.sent")))
        told = moved.mover.run("pull", "site", fmt="text")
        assert told.code == 1, told.text
        assert "what was sent is not known any more" in told.out
        assert "--into edits-there" in told.out
        assert HANDLER not in place.read_text()

    def test_a_committed_change_here_merges_with_one_there(self, moved: Site) -> None:
        readme = moved.mover.tree / "README.md"
        edit_there(moved, "README.md", readme.read_text() + "theirs\n")
        forks.edit(readme, lambda text: "ours\n" + text)
        forks.commit(moved.mover.tree, "ours")
        told = moved.mover.run("pull", "site")
        assert told.code == 0, told.text
        assert readme.read_text().startswith("ours\n")
        assert readme.read_text().endswith("theirs\n")
        assert told.json["files"][0]["kept"] is None
        assert moved.mover.run("diff", "site").code == 0, "it is here"
        forks.commit(moved.mover.tree, "theirs")
        well(moved.mover.migrate("site", *MOVE))
        assert (moved.there / "README.md").read_text() == readme.read_text()

    def test_what_was_edited_again_after_a_pull_is_asked_about(self, moved: Site) -> None:
        readme = moved.mover.tree / "README.md"
        edit_there(moved, "README.md", readme.read_text() + "theirs\n")
        assert moved.mover.run("pull", "site").code == 0
        edit_there(moved, "README.md", readme.read_text() + "more\n")
        forks.edit(readme, lambda text: "ours\n" + text)
        told = moved.mover.migrate("site", *MOVE)
        assert told.code == 5
        assert told.json["overwritten"] == ["README.md"]

    def test_new_files_come_when_they_are_asked_for(self, moved: Site) -> None:
        edit_there(moved, "run_mine.sh", "echo\n")
        edit_there(moved, "verl/utils/ours.py", "x = 1\n")
        edit_there(moved, "recipe_of_ours/main.py", "y = 2\n")
        edit_there(moved, "verl/utils/__pycache__/ours.pyc", "")
        assert moved.mover.run("diff", "site").json["files"] == []
        found = moved.mover.run("diff", "site", "--new").json
        assert [file["path"] for file in found["files"]] == ["run_mine.sh", "verl/utils/ours.py"]
        assert found["folders"] == ["recipe_of_ours/"]
        assert moved.mover.run("pull", "site", "recipe_of_ours", "run_mine.sh").code == 0
        assert (moved.mover.tree / "recipe_of_ours/main.py").read_text() == "y = 2\n"
        assert (moved.mover.tree / "run_mine.sh").exists()
        assert not (moved.mover.tree / "verl/utils/ours.py").exists()

    def test_what_git_ignores_here_is_no_edit(self, moved: Site) -> None:
        with (moved.mover.tree / ".gitignore").open("a") as file:
            file.write("\noutputs/\n*.log\n")
        edit_there(moved, "train.log", "step 1\n")
        edit_there(moved, "outputs/step_1/model.pt", "x")
        found = moved.mover.run("diff", "site", "--new").json
        assert (found["files"], found["folders"]) == ([], [])

    def test_what_is_gone_there_stays_here(self, moved: Site) -> None:
        (moved.there / "README.md").unlink()
        told = moved.mover.run("pull", "site", fmt="text")
        assert told.code == 1
        assert "README.md: removed there; left here" in told.out
        assert (moved.mover.tree / "README.md").exists()

    def test_a_link_out_of_the_tree_is_not_followed(self, moved: Site) -> None:
        (moved.there / "README.md").unlink()
        (moved.there / "README.md").symlink_to("/etc/passwd")
        (moved.there / "verl/utils/data").symlink_to("/etc")
        told = moved.mover.run("diff", "site", "--new", fmt="text")
        assert "root:" not in told.text
        assert "README.md: a symlink" in told.out

    def test_mistakes_are_one_clear_error(self, moved: Site) -> None:
        for words, code, said in (
            (("pull", "site", "verl/nowhere.py"), 2, "nothing was edited there on site"),
            (("pull", "here"), 2, "on another machine"),
            (("pull", "site", "--diff", "--into", "x"), 2, "do not go together"),
            (("diff", "site", "--path", "~/not-moved"), 5, "no migration has brought it there"),
        ):
            told = moved.mover.run(*words, fmt="text")
            assert told.code == code, told.text
            assert said in told.err
            assert told.err.count("error:") == 1

    def test_the_migration_names_pull_where_it_would_overwrite(self, moved: Site) -> None:
        edit_there(moved, "README.md", "theirs\n")
        forks.edit(moved.mover.tree / "README.md", lambda text: "ours\n" + text)
        told = moved.mover.migrate("site", *MOVE, fmt="text")
        assert "uky-patch pull site" in told.text

    def test_prune_leaves_the_newest(self, moved: Site) -> None:
        for number in range(3):
            edit_there(moved, "README.md", f"theirs {number}\n")
            well(moved.mover.migrate("site", *MOVE, "--yes"))
            forks.edit(moved.mover.tree / "README.md", lambda text: "ours\n" + text)
            time.sleep(1.1)  # A folder of copies is named by the second.
        kept = moved.there / ".uky-patch-kept"
        names = sorted(place.name for place in kept.iterdir() if place.name != ".gitignore")
        assert len(names) == 3
        seen = moved.mover.run("prune", "site", "--keep", "1", "--dry-run")
        assert seen.code == 1
        assert [one["name"] for one in seen.json["things"]] == names[:2][::-1]
        assert moved.mover.run("prune", "site", "--keep", "1", "--days", "1", "--yes").json["things"] == []
        refused = moved.mover.run("prune", "site", "--keep", "1", fmt="text")
        assert refused.code == 1, "nobody has said yes"
        assert len(list(kept.iterdir())) == 4
        assert moved.mover.run("prune", "site", "--keep", "1", "--yes").code == 0
        assert sorted(place.name for place in kept.iterdir()) == [".gitignore", names[2]]
        assert moved.mover.run("prune", "site", "--keep", "0", "--yes").code == 0
        assert not kept.exists()


SENT, CRLF = b"a\nb\nc\nd\ne\n", b"a\r\nb\r\nc\r\nd\r\ne\r\n"


@pytest.mark.parametrize(
    ("sent", "here", "there", "outcome", "content"),
    [
        (SENT, SENT, b"A\nb\nc\nd\ne\n", "pulled", b"A\nb\nc\nd\ne\n"),
        (SENT, b"a\nb\nc\nd\nE\n", b"A\nb\nc\nd\ne\n", "pulled", b"A\nb\nc\nd\nE\n"),
        (CRLF, CRLF.replace(b"e", b"E"), CRLF.replace(b"a", b"A"), "pulled", b"A\r\nb\r\nc\r\nd\r\nE\r\n"),
        (SENT, b"X\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n", "conflict", None),
        (SENT, b"a\nb\nc\nd\ne\n", b"a\nb\nc\nd\ne", "pulled", b"a\nb\nc\nd\ne"),
        (
            "ä\nb\nc\nd\n".encode("latin-1"),
            "ä\nb\nc\nD\n".encode("latin-1"),
            b"a\nb\nc\nd\n",
            "pulled",
            b"a\nb\nc\nD\n",
        ),
        (b"\0a", b"\0b", b"\0c", "conflict", None),
        (b"\0a", b"\0a", b"\0c", "pulled", b"\0c"),
        (None, SENT, b"b\n", "unknown", None),
        (SENT, None, b"b\n", "missing", None),
    ],
)
def test_merging(sent: bytes | None, here: bytes | None, there: bytes, outcome: str, content: bytes | None) -> None:
    done = merge(HostEdit("f.py", "edited", sent, there, here))
    assert (done.outcome, done.content) == (outcome, content)


def test_a_new_file_never_replaces_one_that_is_here() -> None:
    assert merge(HostEdit("f.py", "new", None, b"1", b"2")).outcome == "conflict"
    assert merge(HostEdit("f.py", "new", None, b"1", None)).outcome == "created"
