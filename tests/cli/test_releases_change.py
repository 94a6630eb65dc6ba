"""Another release of verl, or another branch, under a patched tree: no file of it is written over with an older one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patcher.packages.releases import wheel
from tests.cli.conftest import SERVER, Uky
from tests.forks import git

SHIPPED = ("verl", "verl-{version}.dist-info")
NEW = SERVER.replace('"""A server."""', '"""A server of the next release."""') + "\nLIMIT = 3\n"


def files(root: Path) -> dict[str, bytes]:
    """What is below `verl/`, but for what Python compiles."""
    found = (path for path in (root / "verl").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def kept(root: Path) -> set[bytes]:
    folders = (root / ".uky-patch", root / ".uky-patch-kept")
    return {path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def upgrade(tree: Path, version: str = "99.2", server: str = NEW) -> None:
    (tree / "verl/version/version").write_text(f"{version}\n")
    (tree / "verl/server.py").write_text(server)


def test_after_an_upgrade_the_tree_is_begun_anew(uky: Uky, tree: Path) -> None:
    uky("apply")
    upgrade(tree)
    before = kept(tree)
    told = uky("status", json=False)
    assert told.code == 1
    assert "revert --force" not in told.out
    assert "Next: uky-patch apply" in told.out
    status = uky("status").json
    assert status["ledger"]["replaced"] == {
        "begin_anew": ["verl/server.py"],
        "merge": [],
        "stuck": [],
        "from": "99.1",
        "to": "99.2",
    }
    checks = {check["name"]: check for check in uky("verify").json["checks"]}
    assert (checks["file verl/server.py"]["status"], checks["file verl/server.py"]["fix"]) == (
        "fail",
        "uky-patch apply",
    )
    assert checks["ledger"]["status"] == "fail"
    assert kept(tree) == before
    done = uky("apply")
    assert (done.code, done.json["written"]) == (0, ["verl/server.py"])
    assert (tree / done.json["aside"] / ".uky-patch/ledger.json").exists()
    assert SERVER.encode() in kept(tree)
    assert uky("status").code == 0
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == NEW
    assert SERVER.encode() in kept(tree)
    assert not (tree / ".uky-patch").exists()


@pytest.mark.parametrize("words", [["revert"], ["revert", "--force"], ["revert", "log-flag"], ["revert", "--merge"]])
def test_a_revert_leaves_the_new_release_alone(uky: Uky, tree: Path, words: list[str]) -> None:
    uky("apply")
    upgrade(tree)
    there = files(tree)
    done = uky(*words)
    assert (done.code, done.json["written"]) == (0, [])
    assert done.json["aside"].startswith(".uky-patch-kept/verl-99.1.")
    assert files(tree) == there
    assert SERVER.encode() in kept(tree)
    assert uky("status").json["ledger"]["state"] == "ok"


def test_a_file_that_the_new_release_no_longer_has_is_forgotten(uky: Uky, tree: Path) -> None:
    uky("apply")
    upgrade(tree)
    (tree / "verl/server.py").unlink()
    assert uky("revert", "--force").code == 0
    assert not (tree / "verl/server.py").exists()
    assert SERVER.encode() in kept(tree)


def test_what_the_records_made_and_the_new_release_in_one_file_are_told_apart_by_a_merge(uky: Uky, tree: Path) -> None:
    """As after `git merge` of a release into a branch on which the patches are committed."""
    uky("apply")
    patched = (tree / "verl/server.py").read_text()
    both = patched.replace('"""A server."""', '"""A server of the next release."""') + "\nLIMIT = 3\n"
    upgrade(tree, server=both)
    told = uky("status", json=False)
    assert "Next: uky-patch apply --merge" in told.out
    assert "--force" not in told.out
    for command in ("apply", "revert"):
        assert uky(command).code == 3
        assert (tree / "verl/server.py").read_text() == both
    assert uky("apply", "--merge").code == 0
    assert (tree / "verl/server.py").read_text() == both
    assert SERVER.encode() in kept(tree)
    assert uky("status").code == 0
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == NEW


@pytest.mark.parametrize("words", [["revert", "--force"], ["revert", "--merge"]])
def test_the_records_edits_are_taken_out_of_the_new_release(uky: Uky, tree: Path, words: list[str]) -> None:
    uky("apply")
    both = (tree / "verl/server.py").read_text().replace('"""A server."""', '"""A server of the next release."""')
    upgrade(tree, server=both + "\nLIMIT = 3\n")
    assert uky(*words).code == 0
    assert (tree / "verl/server.py").read_text() == NEW


def test_where_a_release_has_changed_what_stands_beside_the_edits_the_markers_tell(uky: Uky, tree: Path) -> None:
    """As after `rebase` onto a release whose call has other arguments right above and below the record's line."""
    uky("apply")
    new = SERVER.replace("config=args.config", "settings=args.settings").replace(
        "        )\n", "            port=1,\n        )\n"
    )
    (tree / "verl/server.py").write_text(new)
    uky("revert")
    upgrade(tree, server=new)
    uky("apply")
    both = (tree / "verl/server.py").read_text()
    uky("revert")
    upgrade(tree, "99.1", SERVER)
    uky("apply")
    upgrade(tree, server=both)
    assert uky("apply", "--merge").code == 0
    assert uky("status").outcomes == {"log-flag": "applied", "utils-moved": "applied"}
    assert (tree / "verl/server.py").read_text() == both
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == new


def test_where_the_two_cannot_be_told_apart_a_forced_revert_forgets_the_file(uky: Uky, tree: Path) -> None:
    uky("apply")
    patched = (tree / "verl/server.py").read_text()
    both = patched.replace("enable_log=args.enable_log", "enable_log=args.other").replace("A server", "The server")
    upgrade(tree, server=both)
    for words in (["apply"], ["apply", "--merge"], ["revert"], ["revert", "--merge"]):
        told = uky(*words, json=False)
        assert (told.code, "Next: uky-patch revert --force" in told.err) == (3, True)
    assert "the file stays as it is" in uky("status", json=False).out
    done = uky("revert", "--force", json=False)
    assert (done.code, "left as it is, with what records made in it: verl/server.py" in done.out) == (1, True)
    assert (tree / "verl/server.py").read_text() == both
    assert SERVER.encode() in kept(tree)
    assert uky("status").code == 0
    assert uky("status").outcomes["utils-moved"] == "adopted"


def test_an_upgrade_and_a_lost_ledger(uky: Uky, tree: Path) -> None:
    uky("apply")
    upgrade(tree)
    (tree / ".uky-patch/ledger.json").unlink()
    assert uky("status").code == 1
    assert uky("revert", "--force").code == 0
    assert (tree / "verl/server.py").read_text() == NEW
    assert SERVER.encode() in kept(tree)


def test_a_version_that_is_assumed_is_no_upgrade(uky: Uky, tree: Path) -> None:
    uky("--assume", "verl==99.7", "apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text() + "# mine\n")
    assert uky("status").json["ledger"]["replaced"]["merge"] == []
    assert uky("revert", "--force").code == 0
    assert path.read_text() == SERVER


def test_another_build_of_the_same_version_is_told_by_the_wheels_record(uky: Uky, tree: Path) -> None:
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    uky("apply")
    (tree / "verl/server.py").write_text(NEW)
    (tree / "verl-99.1.dist-info").mkdir()
    told = urlsafe_b64encode(sha256(NEW.encode()).digest()).rstrip(b"=").decode()
    (tree / "verl-99.1.dist-info/RECORD").write_text(f"verl/server.py,sha256={told},{len(NEW)}\n")
    assert uky("status").json["ledger"]["replaced"]["begin_anew"] == ["verl/server.py"]
    assert uky("revert", "--force").code == 0
    assert (tree / "verl/server.py").read_text() == NEW


@pytest.fixture
def branches(tree: Path) -> Path:
    """A checkout with two branches of one version, whose server differs."""
    (tree / ".gitignore").write_text("/.uky-patch/\n/.uky-patch-kept/\n__pycache__/\n")
    (tree / "verl/other.py").write_text(SERVER)
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "one")
    git(tree, "checkout", "--quiet", "-b", "next")
    (tree / "verl/server.py").write_text(NEW)
    git(tree, "commit", "--quiet", "--all", "--message", "two")
    git(tree, "checkout", "--quiet", "main")
    return tree


def test_a_switch_of_branches_under_uncommitted_patches(uky: Uky, branches: Path) -> None:
    assert uky("apply").code == 0
    git(branches, "checkout", "--quiet", "--force", "next")
    told = uky("status", json=False)
    assert "another commit" in told.out
    assert "revert --force" not in told.out
    assert uky("revert", "--force").code == 0
    assert (branches / "verl/server.py").read_text() == NEW
    assert SERVER.encode() in kept(branches)
    assert uky("apply").code == 0
    assert uky("status").code == 0
    assert uky("revert").code == 0
    assert (branches / "verl/server.py").read_text() == NEW
    assert git(branches, "status", "--porcelain") == ""


def test_a_switch_of_branches_under_committed_patches_and_back(uky: Uky, branches: Path) -> None:
    assert uky("apply").code == 0
    patched = (branches / "verl/server.py").read_bytes()
    git(branches, "commit", "--quiet", "--all", "--message", "patched")
    git(branches, "checkout", "--quiet", "next")
    assert uky("apply").code == 0
    there = (branches / "verl/server.py").read_bytes()
    git(branches, "commit", "--quiet", "--all", "--message", "patched")
    git(branches, "checkout", "--quiet", "main")
    assert uky("revert").code == 3
    assert (branches / "verl/server.py").read_bytes() == patched
    git(branches, "checkout", "--quiet", "next")
    assert uky("status").code == 0
    assert uky("revert").code == 0
    assert (branches / "verl/server.py").read_text() == NEW != there.decode()


def test_git_runs_nothing_of_the_tree_to_tell_branches_apart(uky: Uky, branches: Path, tmp_path: Path) -> None:
    assert uky("apply").code == 0
    git(branches, "checkout", "--quiet", "--force", "next")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    (branches / ".gitattributes").write_text("*.py filter=trap diff=trap\n")
    for name in ("core.fsmonitor", "filter.trap.clean", "filter.trap.smudge", "diff.trap.textconv", "core.pager"):
        git(branches, "config", name, str(trap))
    assert uky("status").json["ledger"]["replaced"]["begin_anew"] == ["verl/server.py"]
    assert not (tmp_path / "sprung").exists()


def _install(site: Path, version: str) -> None:
    """As pip does: the files of the release before go, those of this one come."""
    for old in (*site.glob("verl"), *site.glob("verl-*.dist-info")):
        shutil.rmtree(old)
    found = wheel("verl", version)
    for name in SHIPPED:
        if (found / name.format(version=version)).is_dir():
            place = site / name.format(version=version)
            shutil.copytree(found / place.name, place, ignore=shutil.ignore_patterns("__pycache__"))
    for path in site.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)  # noqa: PTH101


@pytest.mark.network
@pytest.mark.parametrize("forced", [False, True])
def test_verl_0_6_0_is_upgraded_to_0_6_1_in_place(tmp_path: Path, capsys: pytest.CaptureFixture[str], forced) -> None:
    import json

    from patcher.cli.app import run

    def call(*words: str):
        code = run(["--root", str(site), "--assume", "vllm==0.12.0", "--format", "json", *words])
        return code, json.loads(capsys.readouterr().out)

    site = tmp_path / "site-packages"
    site.mkdir()
    _install(site, "0.6.0")
    old = files(site)
    assert call("apply")[0] == 0
    patched = [path for path, content in files(site).items() if content != old[path]]
    assert len(patched) > 2
    _install(site, "0.6.1")
    new = files(site)
    changed = {path for path in patched if new.get(path) != old[path]}
    assert changed
    code, report = call("status")
    assert code == 1
    assert set(report["ledger"]["replaced"]["begin_anew"]) == changed
    assert "tampered" not in {record["outcome"] for record in report["records"]}
    if forced:
        assert call("revert", "--force")[0] == 0
        assert files(site) == new
    assert call("apply")[0] == 0
    assert call("status")[0] == 0
    assert {old[path] for path in changed} <= kept(site)
    assert call("revert")[0] == 0
    assert files(site) == new
    assert {old[path] for path in changed} <= kept(site)
    assert not (site / ".uky-patch").exists()


def test_a_tree_that_the_version_before_has_patched_is_known_by_its_records_versions(uky: Uky, tree: Path) -> None:
    """Its ledger says nothing of releases and modes, and its pre-images have no notes."""
    import json

    uky("apply")
    place = tree / ".uky-patch/ledger.json"
    ledger = json.loads(place.read_text())
    for entry in ledger["files"].values():
        del entry["release"], entry["mode"]
    place.write_text(json.dumps(ledger))
    for note in (tree / ".uky-patch/originals").glob("*.json"):
        note.unlink()
    assert uky("status").code == 0
    upgrade(tree)
    assert uky("status").json["ledger"]["replaced"]["from"] == "99.1"
    assert uky("revert", "--force").code == 0
    assert (tree / "verl/server.py").read_text() == NEW
    assert SERVER.encode() in kept(tree)


def test_an_edit_that_was_committed_beside_a_patched_line_locks_nothing(uky: Uky, branches: Path) -> None:
    assert uky("apply").code == 0
    git(branches, "commit", "--quiet", "--all", "--message", "patched")
    path = branches / "verl/server.py"
    path.write_text(path.read_text().replace("config=args.config,", "config=None,  # Uky: quiet"))
    git(branches, "commit", "--quiet", "--all", "--message", "quiet")
    there = path.read_text()
    assert uky("status").json["next"].startswith("uky-patch apply --merge")
    assert (uky("apply", "--merge").code, path.read_text(), uky("status").code) == (0, there, 0)
    assert uky("revert").code == 0
    assert path.read_text() == SERVER.replace("config=args.config,", "config=None,  # Uky: quiet")
