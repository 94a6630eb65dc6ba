"""The journal of a tree on its way to a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.migrate.journal import Journal, Proven, entry, journal_for
from patcher.migrate.order import Step
from patcher.remote.host import Host
from patcher.secrets.redacting import Redactor


@pytest.fixture
def notes(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state" / "one.json")


def test_nothing_is_noted_before_the_first_run(notes: Journal) -> None:
    assert notes.read() is None


def test_it_tells_where_a_run_stopped_and_what_was_done(notes: Journal) -> None:
    steps = [Step("preflight", "ok", 0.1, "fine"), Step("probe", "warn", 0.1, ""), Step("plan", "fail", 0, "cut")]
    notes.write(entry(steps, None, None), Redactor())
    found = notes.read()
    assert found is not None
    assert (found.done, found.stopped, found.why) == (("preflight", "probe"), "plan", "cut")


def test_it_keeps_the_job_that_is_still_followed(notes: Journal) -> None:
    notes.write(entry([], "20261121-debug", Proven("k", "then", "all")), Redactor())
    found = notes.read()
    assert found is not None
    assert found.proven == Proven("k", "then", "all")
    assert found.job == "20261121-debug"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_damaged_or_foreign_entry_counts_as_none(notes: Journal, text: str) -> None:
    notes.file.parent.mkdir()
    notes.file.write_text(text)
    assert notes.read() is None


def test_each_pair_of_tree_and_folder_of_a_host_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hosts = [Host(name, name, path=path) for name in ("x", "y") for path in (None, "~/other")]
    files = {journal_for(Path(root), host).file for root in ("/a", "/b") for host in hosts}
    assert len(files) == 8
    assert all(tmp_path in file.parents for file in files)


def test_no_secret_is_noted(notes: Journal) -> None:
    notes.write(entry([Step("job", "fail", 0, "key abcdef123456 refused")], None, None), Redactor(["abcdef123456"]))
    assert "abcdef123456" not in notes.file.read_text()
