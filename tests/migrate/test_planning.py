"""A cargo is the tree with the records for the host's versions, and the tree here is only read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from patcher.check.planning import plan_on_tree
from patcher.errors import TreeError
from patcher.migrate.payload import Payload, lay_groundwork, plan_payload
from patcher.migrate.transfer import compare, send
from patcher.migrate.verify import verify_payload
from patcher.patching.applying import Order, apply
from patcher.patching.reverting import revert
from patcher.patching.status import records_status
from patcher.plan.outcome import Plan
from patcher.remote.connection import connect
from patcher.remote.environment import environment_of
from patcher.remote.host import HERE, Host
from patcher.remote.survey import survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.session.session import Session
from tests.migrate.toys import contents, fork, git, write
from tests.packages.venvs import Venv

BEFORE = "from numpy import old\n\nvalue = old(1)\n"
TOY = "verl/toy.py"


def record(name: str, when: str, *, pattern: str = "old(1)", to: str = "new(1)", file: str = TOY) -> str:
    return f'''
id = "{name}"
title = "For a toy"
reason = "A toy has to be mended."
lifetime = "local-build"

[when]
{when}

[[edit]]
file = "{file}"
kind = "replace"
pattern = "{pattern}"
with = "{to}"
count = 1

[[example]]
name = "a toy"
before = """
value = {pattern}
"""
after = """
# value = {pattern}  # Uky[{name}]
value = {to}  # Uky[{name}]
"""
'''


class Fork:
    """A fork with records of its own, an environment here and one on the host."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX", "PYENV_ROOT"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("UKY_PATCH_CACHE", str(folder / "cache"))
        self.here, self.there = Venv(folder / "here"), Venv(folder / "there")
        monkeypatch.setenv("VIRTUAL_ENV", str(self.here.prefix))
        self.patches = folder / "patches"
        self.patches.mkdir()
        self.root = fork(folder / "fork", {TOY: BEFORE, "verl/version/version": "0.1.0\n"})
        self.target = folder / "home/fork"
        self.host = Host(HERE, HERE, path=str(self.target), python=str(self.there.prefix))

    def record(self, name: str, when: str, **how: str) -> None:
        (self.patches / f"{name}.toml").write_text(record(name, when, **how))

    def session(self, root: Path | None = None, assume: Mapping[str, str] | None = None) -> Session:
        return Session(root or self.root, None, assume or {}, (self.patches,))

    def cargo(self) -> Payload:
        with connect(self.host) as connection:
            open_tree_folder(connection, "fork", None)
            found = survey_host(connection, self.host)
            return plan_payload(self.session(), lay_groundwork(self.session()), found, connection)

    def move(self) -> Payload:
        with connect(self.host) as connection:
            open_tree_folder(connection, "fork", "migrate")
            found = survey_host(connection, self.host)
            cargo = plan_payload(self.session(), lay_groundwork(self.session()), found, connection)
            difference = compare(connection, cargo)
            if not difference.nothing:
                send(connection, cargo, difference)
            checks = verify_payload(connection, cargo)
            assert [check for check in checks if check.status == "fail"] == []
            return cargo


def kinds(cargo: Payload) -> dict[str, str]:
    return {outcome.id: outcome.kind for outcome in cargo.result.plan.outcomes if outcome.id.startswith("toy-")}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fork:
    made = Fork(tmp_path, monkeypatch)
    made.here.install("numpy", "1.26.4")
    made.there.install("numpy", "2.3.5")
    for venv in (made.here, made.there):
        venv.install("torch", "2.8.0")  # Without it nobody knows that this is what trains.
    made.record("toy-for-here", 'numpy = "<2"', to="mended_for_one(1)")
    made.record("toy-for-there", 'numpy = ">=2"', to="mended_for_two(1)")
    return made


def test_records_are_those_of_the_host_s_versions(toy: Fork) -> None:
    cargo = toy.cargo()
    assert kinds(cargo) == {"toy-for-here": "not-needed", "toy-for-there": "applied"}
    assert set(cargo.differs) == {"toy-for-here", "toy-for-there"}
    content = cargo.items[TOY].content
    assert content is not None
    assert b"value = mended_for_two(1)  # Uky[toy-for-there]" in content
    assert (toy.root / TOY).read_text() == BEFORE
    assert not (toy.root / ".uky-patch").exists()


def test_a_tree_patched_for_here_arrives_patched_for_there(toy: Fork) -> None:
    apply(toy.session(), Order(toy.session().request()))
    mine = contents(toy.root)
    ledger = (toy.root / ".uky-patch/ledger.json").read_bytes()
    cargo = toy.move()
    assert kinds(cargo) == {"toy-for-here": "not-needed", "toy-for-there": "applied"}
    assert "mended_for_two" in (toy.target / TOY).read_text()
    assert "mended_for_one" not in (toy.target / TOY).read_text()
    assert contents(toy.root) == mine
    assert (toy.root / ".uky-patch/ledger.json").read_bytes() == ledger


def test_status_and_revert_work_on_what_arrived(toy: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(toy.session(), Order(toy.session().request()))
    toy.move()
    monkeypatch.setenv("VIRTUAL_ENV", str(toy.there.prefix))
    there = toy.session(toy.target)
    outcomes = {outcome.id: outcome.kind for outcome in records_status(there).outcomes if outcome.id.startswith("toy-")}
    assert outcomes == {"toy-for-here": "not-needed", "toy-for-there": "applied"}
    assert there.tree.ledger().records["toy-for-there"].versions["numpy"] == "2.3.5"
    revert(toy.session(toy.target), frozenset(), dry_run=False)
    assert (toy.target / TOY).read_text() == BEFORE


FLAGS = "verl/flags/log.py"


def making(fork: Fork, name: str, when: str) -> None:
    """A record that makes a file."""
    text = record(name, when).partition("[[edit]]")[0]
    edit = f'[[edit]]\nfile = "{FLAGS}"\nkind = "create-file"\ncontent = "x = 1\\n"\n'
    (fork.patches / f"{name}.toml").write_text(text + edit)


def test_a_file_that_a_record_makes_arrives_and_a_revert_there_takes_it_out(
    toy: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    making(toy, "toy-new-there", 'numpy = ">=2"')
    cargo = toy.move()
    assert kinds(cargo)["toy-new-there"] == "applied"
    assert not (toy.root / FLAGS).exists()
    assert (toy.target / FLAGS).read_text() == "# Uky[toy-new-there]\nx = 1\n"
    monkeypatch.setenv("VIRTUAL_ENV", str(toy.there.prefix))
    there = toy.session(toy.target)
    assert {one.id: one.kind for one in records_status(there).outcomes}["toy-new-there"] == "applied"
    revert(there, frozenset(), dry_run=False)
    assert not (toy.target / "verl/flags").exists()
    assert (toy.target / TOY).read_text() == BEFORE


def test_a_file_that_a_record_has_made_for_here_alone_is_not_sent(toy: Fork) -> None:
    making(toy, "toy-new-here", 'numpy = "<2"')
    apply(toy.session(), Order(toy.session().request()))
    assert (toy.root / FLAGS).exists()
    cargo = toy.move()
    assert kinds(cargo)["toy-new-here"] == "not-needed"
    assert FLAGS not in cargo.items
    assert not (toy.target / FLAGS).exists()


def test_a_file_that_a_record_has_made_here_and_git_ignores_arrives_too(toy: Fork) -> None:
    making(toy, "toy-new-both", 'numpy = ">=1"')
    write(toy.root, {".gitignore": "flags/\n"})
    apply(toy.session(), Order(toy.session().request(), allow_dirty=True))
    toy.move()
    assert (toy.target / FLAGS).read_text() == (toy.root / FLAGS).read_text()


def test_a_second_run_has_the_same_cargo_to_the_byte(toy: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.move()
    monkeypatch.setattr("patcher.migrate.payload.now", lambda: "2030-01-01T00:00:00+00:00")
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        again = plan_payload(
            toy.session(), lay_groundwork(toy.session()), survey_host(connection, toy.host), connection
        )
        assert compare(connection, again).nothing


def test_a_plan_is_made_once_for_the_same_tree_records_and_versions(toy: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    def counted(*arguments: Any, elsewhere: bool) -> Plan:
        made.append(elsewhere)
        return plan_on_tree(*arguments, elsewhere=elsewhere)

    monkeypatch.setattr("patcher.check.planning.plan_on_tree", counted)
    first, again = toy.cargo(), toy.cargo()
    assert made == [True, False]
    assert (again.result, again.differs, again.here) == (first.result, first.differs, first.here)
    write(toy.root, {"verl/more.py": "value = 1\n"})
    git(toy.root, "add", "verl/more.py")
    toy.cargo()
    assert len(made) == 4
    toy.record("toy-for-there", 'numpy = ">=2"', to="mended_otherwise(1)")
    assert b"mended_otherwise" in (toy.cargo().items[TOY].content or b"")
    toy.there.install("numpy", "1.26.4")
    assert kinds(toy.cargo()) == {"toy-for-here": "applied", "toy-for-there": "not-needed"}


def test_nothing_of_ours_is_sent_where_no_record_applies(toy: Fork) -> None:
    toy.there.package("numpy")
    (toy.patches / "toy-for-there.toml").unlink()
    apply(toy.session(), Order(toy.session().request()))
    cargo = toy.move()
    assert not [path for path in cargo.items if path.startswith(".uky-patch")]
    assert contents(toy.target)[TOY] == BEFORE.encode()


def test_a_record_that_cannot_be_applied_there_fails_the_round_and_nothing_is_replaced(toy: Fork) -> None:
    toy.record("toy-drifted", 'numpy = ">=2"', pattern="gone(1)")
    cargo = toy.cargo()
    assert cargo.result.failed
    assert [outcome.id for outcome in cargo.result.plan.failed] == ["toy-drifted"]
    assert cargo.items == cargo.listing.items


def test_a_patched_file_that_somebody_changed_is_refused(toy: Fork) -> None:
    apply(toy.session(), Order(toy.session().request()))
    with (toy.root / TOY).open("a") as file:
        file.write("more = 1\n")
    cargo = toy.cargo()
    assert ("toy-for-here", "tampered") in [(outcome.id, outcome.kind) for outcome in cargo.result.plan.failed]
    assert cargo.items == cargo.listing.items
    apply(toy.session(), Order(toy.session().request(), merge=True))
    assert kinds(toy.move()) == {"toy-for-here": "not-needed", "toy-for-there": "applied"}
    assert "mended_for_two" in (toy.target / TOY).read_text()
    there = Session(root_option=toy.target)
    assert revert(there, frozenset(), dry_run=False).written == (TOY,)
    assert (toy.target / TOY).read_text() == BEFORE + "more = 1\n"


def change_what_the_record_made(toy: Fork) -> None:
    text = (toy.root / TOY).read_text()
    (toy.root / TOY).write_text(text.replace("mended_for_one(1)", "mended_for_one(2)"))


def test_a_patched_file_in_which_somebody_changed_what_the_record_made_is_refused(toy: Fork) -> None:
    apply(toy.session(), Order(toy.session().request()))
    change_what_the_record_made(toy)
    cargo = toy.cargo()
    assert ("toy-for-here", "tampered") in [(outcome.id, outcome.kind) for outcome in cargo.result.plan.failed]
    assert cargo.items == cargo.listing.items


def test_a_record_that_is_no_longer_needed_is_not_left_in_a_file_that_somebody_changed(
    toy: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    (toy.patches / "toy-for-there.toml").unlink()
    apply(toy.session(), Order(toy.session().request()))
    change_what_the_record_made(toy)
    monkeypatch.setenv("VIRTUAL_ENV", str(toy.there.prefix))
    done = apply(toy.session(), Order(toy.session().request()))
    assert [(outcome.id, outcome.kind) for outcome in done.plan.failed] == [("toy-for-here", "tampered")]
    assert toy.session().tree.ledger().records


def test_changes_in_no_commit_are_sent_and_told_apart_from_the_records(toy: Fork) -> None:
    apply(toy.session(), Order(toy.session().request()))
    write(toy.root, {"README.md": "# mine\n", "verl/new.py": "x = 1\n"})
    cargo = toy.move()
    assert "sent with changes that are in no commit: README.md, verl/new.py" in [str(note) for note in cargo.notes]
    assert (toy.target / "README.md").read_text() == "# mine\n"
    assert (toy.target / "verl/new.py").exists()


def test_a_file_that_git_ignores_is_not_there_for_the_records(toy: Fork) -> None:
    toy.record("toy-ignored", 'numpy = ">=2"', file="verl/ignored.py")
    write(toy.root, {"verl/ignored.py": "value = old(1)\n", ".gitignore": "ignored.py\n"})
    cargo = toy.cargo()
    assert kinds(cargo)["toy-ignored"] == "missing-file"


def test_a_record_reaches_a_file_through_a_symlink_of_the_tree(toy: Fork) -> None:
    write(toy.root, {"verl/real.py": BEFORE})
    (toy.root / TOY).unlink()
    (toy.root / TOY).symlink_to("real.py")
    git(toy.root, "add", "--all")
    cargo = toy.move()
    assert cargo.items[TOY].link == "real.py"
    assert "mended_for_two" in (toy.target / "verl/real.py").read_text()
    assert (toy.target / TOY).is_symlink()


def test_a_file_that_changes_while_it_is_read_stops_the_plan(toy: Fork) -> None:
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        groundwork = lay_groundwork(toy.session())
        (toy.root / TOY).write_text("value = old(1)  # otherwise\n")
        with pytest.raises(TreeError, match="changed while it was read"):
            plan_payload(toy.session(), groundwork, survey_host(connection, toy.host), connection)


def test_mode_and_newlines_stay(toy: Fork) -> None:
    (toy.root / TOY).write_bytes(BEFORE.replace("\n", "\r\n").encode())
    (toy.root / TOY).chmod(0o755)
    cargo = toy.cargo()
    assert cargo.items[TOY].mode == 0o755
    content = cargo.items[TOY].content
    assert content is not None
    assert b"\n" not in content.replace(b"\r\n", b"")


def test_a_nightly_is_asked_for_its_own_symbols(toy: Fork) -> None:
    toy.there.install("vllm", "0.21.0rc1.dev7+gabc1234")
    (toy.there.site / "vllm/engine.py").write_text("class Engine:\n    def start(self, port): ...\n")
    (toy.there.site / "vllm/data.txt").write_text("not to be read\n")
    toy.record("toy-has", 'vllm = ">=0.20"\nhas = ["vllm.engine.Engine.start(port)"]', to="one(1)")
    toy.record("toy-lacks", 'vllm = ">=0.20"\nhas = ["vllm.engine.Engine.stop"]', to="two(1)")
    (toy.patches / "toy-for-there.toml").unlink()
    found = kinds(toy.cargo())
    assert (found["toy-has"], found["toy-lacks"]) == ("applied", "not-needed")
    shelves = Path(os.environ["UKY_PATCH_CACHE"]) / "hosts"
    assert sorted(path.name for path in shelves.rglob("*") if path.is_file() and path.name[0] != ".") == [
        "__init__.py",
        "engine.py",
    ]
    (toy.there.site / "vllm/engine.py").write_text("class Engine:\n    def stop(self): ...\n")
    found = kinds(toy.cargo())
    assert (found["toy-has"], found["toy-lacks"]) == ("not-needed", "applied")


def test_offline_a_release_is_asked_for_its_symbols_on_the_host(toy: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    toy.there.install("vllm", "0.20.2")
    (toy.there.site / "vllm/engine.py").write_text("class Engine:\n    def start(self, port): ...\n")
    toy.record("toy-has", 'vllm = ">=0.20"\nhas = ["vllm.engine.Engine.start(port)"]', to="one(1)")
    (toy.patches / "toy-for-there.toml").unlink()
    assert kinds(toy.cargo())["toy-has"] == "applied"
    (toy.there.site / "vllm/engine.py").write_text("")
    assert kinds(toy.cargo())["toy-has"] == "not-needed"


def test_what_cannot_be_looked_up_is_decided_by_the_version_and_said(
    toy: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    toy.record("toy-has", 'vllm = ">=0.20"\nhas = ["vllm.engine.Engine.start(port)"]', to="one(1)")
    (toy.patches / "toy-for-there.toml").unlink()
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        session = toy.session(assume={"vllm": "0.20.2"})
        cargo = plan_payload(session, lay_groundwork(session), survey_host(connection, toy.host), connection)
    (outcome,) = [outcome for outcome in cargo.result.plan.outcomes if outcome.id == "toy-has"]
    assert outcome.kind == "applied"
    assert "decided by version alone" in str(outcome.note)


def test_an_assumed_version_counts_for_the_host(toy: Fork) -> None:
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        session = toy.session(assume={"numpy": "1.26.4"})
        cargo = plan_payload(session, lay_groundwork(session), survey_host(connection, toy.host), connection)
    assert kinds(cargo) == {"toy-for-here": "applied", "toy-for-there": "not-needed"}


def test_a_host_without_an_environment_for_training_is_told_so(
    toy: Fork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("VIRTUAL_ENV")
    host = Host(HERE, HERE, path=str(toy.target))
    with connect(host) as connection:
        open_tree_folder(connection, "fork", None)
        found = survey_host(connection, host)
        assert found.interpreter is None
        environment = environment_of(found, toy.root)
        assert environment.version("verl") == "0.1.0"
        assert environment.version("vllm") is None
        cargo = plan_payload(toy.session(), lay_groundwork(toy.session()), found, connection)
    assert not cargo.result.failed
    assert any("--python" in str(note) and "no vllm was found" in str(note) for note in cargo.notes)


def test_the_verl_of_the_tree_counts_and_another_is_named(toy: Fork) -> None:
    toy.there.install("verl", "0.5.0")
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        found = environment_of(survey_host(connection, toy.host), toy.root)
    assert found.version("verl") == "0.1.0"
    assert any("verl 0.5.0 is installed at" in str(problem) for problem in found.problems)


@pytest.mark.parametrize("spoil", ["content", "missing", "marker", "ledger", "original", "link"])
def test_what_is_not_as_it_was_sent_is_named(spoil: str, toy: Fork) -> None:
    (toy.root / "verl/link.py").symlink_to("toy.py")
    git(toy.root, "add", "--all")
    cargo = toy.move()
    originals = next(path for path in cargo.items if "/originals/" in path)
    match spoil:
        case "content":
            place, bad = "README.md", {"files"}
            (toy.target / place).write_text("# theirs\n")
        case "missing":
            place, bad = "README.md", {"files"}
            (toy.target / place).unlink()
        case "marker":
            place, bad = TOY, {"files", "record toy-for-there"}
            (toy.target / place).write_text(BEFORE)
        case "ledger":
            place, bad = ".uky-patch/ledger.json", {"files", "ledger"}
            told = json.loads((toy.target / place).read_bytes())
            (toy.target / place).write_text(json.dumps({**told, "records": {}}))
        case "original":
            place, bad = originals, {"files", "ledger"}
            (toy.target / place).write_text("")
        case _:
            place, bad = "verl/link.py", {"files"}
            (toy.target / place).unlink()
            (toy.target / place).symlink_to("other.py")
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        checks = verify_payload(connection, cargo)
    failed = {check.name: check for check in checks if check.status == "fail"}
    assert set(failed) == bad
    assert place in str(failed["files"].detail)
    assert all("--from transfer" in str(check.fix) for check in failed.values())


def test_a_proof_names_each_record_and_counts_the_hashes(toy: Fork) -> None:
    cargo = toy.move()
    with connect(toy.host) as connection:
        open_tree_folder(connection, "fork", None)
        before = connection.channel.trips
        checks = {check.name: check for check in verify_payload(connection, cargo)}
        assert connection.channel.trips == before + 1
    assert str(checks["files"].detail) == f"{len(cargo.items)} of {len(cargo.items)} hashes match"
    assert str(checks["record toy-for-there"].detail) == "2 marked lines in 1 file"
    assert "revert works there" in str(checks["ledger"].detail)
    assert "record toy-for-here" not in checks
