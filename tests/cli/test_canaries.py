"""A checkout in which everything that git knows to run is a canary: no command runs one."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from patcher.git.checkout import checkout
from patcher.git.settings import _KEPT
from patcher.migrate.listing import list_tree
from tests.cli.conftest import SERVER, Uky

HOOKS = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
    "post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update "
    "reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman "
    "post-index-change"
)
MORE = "core.fsmonitor core.hooksPath core.worktree extensions.partialClone remote.evil.vcs alias.status"
_NAME = re.compile(r"\.[A-Za-z][A-Za-z0-9-]*$")
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n*.py filter=evil ident\n"


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


def known_keys() -> list[str]:
    """Every setting that this git knows and that does not count, for one named `evil` where it takes a name."""
    listed = subprocess.run(["git", "help", "--config"], check=True, capture_output=True, text=True).stdout
    keys = [line for line in listed.splitlines() if "." in line and " " not in line and "*" not in line]
    named = [f"{key[: key.index('<')]}evil{key[key.rindex('>') + 1 :]}" if "<" in key else key for key in keys]
    more = [f"filter.evil.{name}" for name in ("clean", "smudge", "process", "required")]
    more += [f"diff.evil.{name}" for name in ("command", "textconv")] + ["merge.evil.driver", *MORE.split()]
    counted = {*_KEPT, "extensions.refstorage"}
    return [key for key in dict.fromkeys((*named, *more)) if _NAME.search(key) and key.lower() not in counted]


def entry(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    head = f'[{section} "{subsection}"]' if subsection else f"[{section}]"
    return f"{head}\n\t{name} = {value}\n"


PROGRAMS = (
    "core.fsmonitor core.pager core.editor core.sshCommand core.askPass diff.external gpg.program credential.helper "
    "filter.evil.clean filter.evil.smudge diff.evil.command diff.evil.textconv merge.evil.driver"
)


@pytest.fixture(params=["every setting", "programs"])
def canary(request: pytest.FixtureRequest, tree: Path, tmp_path: Path) -> Path:
    """Make the tree such a checkout; the file that exists once a canary was run, and says which."""
    fired = tmp_path / "fired"
    script = tmp_path / "canary.sh"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {fired}\ncat\n')
    script.chmod(0o755)
    inner = tmp_path / "inner"
    for folder in (tree, inner):
        folder.mkdir(exist_ok=True)
        (folder / "x").touch()
        git(folder, "init", "-q", "-b", "fork")
        git(folder, "config", "user.name", "A User")
        git(folder, "config", "user.email", "user@example.invalid")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "verl 99.1")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    (tree / ".gitattributes").write_text(ATTRIBUTES)
    (tree / "data.bin").write_bytes(b"x" * 4096)
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "more")
    programs, settings = ("".join(entry(key, str(script)) for key in keys) for keys in (PROGRAMS.split(), known_keys()))
    own = "".join(entry(key, value) for key, value in (("extensions.worktreeConfig", "true"), ("include.path", "more")))
    evil_at = {tree / ".git": programs if request.param == "programs" else settings}
    for folder, evil in {**evil_at, tree / ".git/modules/inner": programs}.items():
        for hook in HOOKS.split():
            (folder / "hooks" / hook).write_text(script.read_text())
            (folder / "hooks" / hook).chmod(0o755)
        (folder / "info/attributes").write_text(ATTRIBUTES)
        (folder / "more").write_text(evil)
        (folder / "config.worktree").write_text(evil)
        with (folder / "config").open("a") as file:
            file.write(own + evil)
    for path in (*tree.rglob("*.py"), tree / "data.bin", tree / "inner/x"):
        os.utime(path, (1, 1))
    return fired


@pytest.mark.parametrize("canary", ["programs"], indirect=True)
@pytest.mark.parametrize("command", [["status"], ["-c", "core.fsmonitor=", "status"], ["update-ref", "refs/x", "HEAD"]])
def test_the_canaries_sing_for_git_itself(canary: Path, tree: Path, command: list[str]) -> None:
    """Else the others would prove nothing."""
    subprocess.run(["git", *command], cwd=tree, capture_output=True, check=True)
    assert canary.exists()


def test_no_command_runs_one(uky: Uky, canary: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)

    def runs(*arguments: str, code: int | None = 0, vllm: str = "2.1") -> None:
        answer = uky(*arguments, json=False, vllm=vllm)
        assert code is None or answer.code == code, answer.out + answer.err
        assert not canary.exists(), f"{' '.join(arguments)} ran {canary.read_text()}"

    runs("status", code=1)
    runs("explain", "log-flag", code=None)
    runs("apply", "--dry-run", "--diff", code=1)
    runs("apply", "log-flag")
    runs("revert")
    runs("apply", "log-flag", "--commit", code=5)  # The tree's filter would have to run to store the file.
    (tree / ".gitattributes").write_text("")
    (tree / ".git/info/attributes").write_text("*.py ident\n")
    runs("apply", "log-flag", "--commit")
    (tree / "verl/server.py").write_text((tree / "verl/server.py").read_text() + "# mine\n")
    runs("apply", "--merge", "--allow-dirty")
    for command in ("status", "verify", "list", "pins", "symptoms"):
        runs(command, code=None)
    runs("check", "--against", "vllm", "--no-since", code=None)
    runs("bundle", "--dry-run", code=None)
    runs("render", "git_ignore.py", code=None)
    list_tree(tree)
    found = checkout(tree)
    assert found is not None
    found.changed_files()
    found.remotes()
    runs("revert")
    assert (tree / "verl/server.py").read_text() == SERVER + "# mine\n"
    assert not canary.exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_DIR": "/nowhere"},
        {"GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere"},
        {"GIT_COMMON_DIR": "/nowhere", "GIT_NAMESPACE": "x", "GIT_CEILING_DIRECTORIES": "/"},
        {"GIT_EXTERNAL_DIFF": "CANARY", "GIT_SSH": "CANARY", "GIT_EDITOR": "CANARY", "GIT_PAGER": "CANARY"},
        {"GIT_TRACE": "CANARY", "GIT_TRACE2_EVENT": "CANARY", "GIT_ATTR_SOURCE": "nothing"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_variables_do_not_lead_git_elsewhere(
    uky: Uky, canary: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    (tree / ".gitattributes").write_text("")
    (tree / ".git/info/attributes").write_text("")
    before = (tmp_path / "canary.sh").read_text()
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / "canary.sh") if value == "CANARY" else value)
    answer = uky("apply", "--commit", json=False)
    assert answer.code == 0, answer.err
    assert not canary.exists()
    assert (tmp_path / "canary.sh").read_text() == before


def test_a_git_in_the_tree_is_not_taken(
    uky: Uky, canary: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / ".gitattributes").write_text("")
    (tree / ".git/info/attributes").write_text("")
    (tree / "git").write_text((tmp_path / "canary.sh").read_text())
    (tree / "git").chmod(0o755)
    monkeypatch.chdir(tree)
    monkeypatch.setenv("PATH", f":.:{tree}:{os.environ['PATH']}")
    assert uky("apply", "--commit", json=False).code == 0
    assert not canary.exists()


@pytest.mark.parametrize("canary", ["programs"], indirect=True)
def test_a_filter_that_the_user_has_set_up_runs(
    uky: Uky, canary: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored is then what `git add` would store."""
    (tree / ".git/info/attributes").write_text("")
    (tree / ".gitattributes").write_text("*.py filter=mine\n")
    config = tmp_path / "gitconfig"
    config.write_text('[filter "mine"]\n\tclean = tr a-z A-Z\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert uky("apply", "--commit", "--allow-dirty", json=False).code == 0
    assert git(tree, "show", "HEAD:verl/server.py") == (tree / "verl/server.py").read_text().upper()
