"""Nothing outside the remote path is touched, whatever names and paths are given, and no name is ever a command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from patcher.remote.agent_program import program
from tests import forks
from tests.migrate import moving
from tests.migrate.cuts import WORDS
from tests.migrate.moving import Site
from tests.migrate.test_end_to_end import job
from tests.remote.cutting import Fault, Line

pytestmark = [pytest.mark.network, pytest.mark.hosts]

SEND = ("--only", "transfer")
HOSTS = (
    "-oProxyCommand=touch {mark}",
    "--",
    "-v",
    "site -oProxyCommand=touch {mark}",
    "x@-oProxyCommand=touch {mark}",
    "site;touch {mark}",
    "site|touch {mark}",
    "$(touch {mark})",
    "`touch {mark}`",
    "site\ntouch {mark}",
    "'site'",
    '"site',
    "%h",
    "..",
    "/",
    "~",
    "",
    " ",
    "[::1",
    "site:",
    "site:99999",
    "\u202esite",
    "si\x1b[31mte",
)
REFUSED = (
    "",
    " ",
    "/",
    "//",
    "/.",
    "~",
    "~/",
    "~/.",
    ".",
    "..",
    "../..",
    "~/..",
    "~root",
    "~root/x",
    "/home",
    "/etc/x",
    "/usr/local/fork",
    "x/../..",
    "a\nb",
    "a\x1b[31m",
    "~/.ssh",
    "~/.ssh/x",
    "{home}",
    "{home}/",
    "{home}/../x",
)
LITERAL = (
    "$(touch {mark})",
    ";touch mark",
    "`touch mark`",
    "a b  c",
    " lead",
    "-rf",
    "--delete",
    "'q'",
    '"dq"',
    "*",
    "{{a,b}}",
    "a\\b",
    "!x",
    "#x",
    "%s",
    "~x y/tilde",
    "Ünïcode/训练",
    "a&b",
    "a|b>c",
    "x:y",
    "user@host:z",
    "[::1]",
)
NAMES = (
    "-rf",
    "--delete",
    "$(touch mark).py",
    "a\nb",
    " lead",
    "trail ",
    "'q'",
    '"dq"',
    "*",
    "#x",
    ";x",
    "a\\b",
    ":x",
    "训练/数据.txt",
    "e\u0301.txt",
    "x" * 250,
    "a&b|c>d",
    "%s",
    "~",
    "..x",
    "CON",
    "\u202ex",
    b"\xff\xfe.bin",
)


@pytest.fixture
def canary(site: Site) -> Path:
    """A folder in the home with things in it, and room for a tree."""
    area = site.machine.home / f"area-{site.mover.tree.name}"
    program = (
        'set -e; mkdir -p "$0/deep/sibling" "$0/deep/fork" "$0/elsewhere" "$HOME/.local/state"\n'
        'mkdir -p "$HOME/.cache/x" "$HOME/.config"\n'
        'for at in "$0" "$0/deep" "$0/deep/sibling" "$0/elsewhere" "$HOME/.cache/x" "$HOME/.config"; do\n'
        '  echo kept > "$at/canary.txt"; echo kept > "$at/.hidden"; ln -sf canary.txt "$at/link"; done\n'
        'touch -d 2020-02-02 "$0/deep/sibling/canary.txt" "$0/deep"\n'
    )
    site.machine.do("bash", "-c", program, str(area))
    return area


def around(site: Site, tree: Path) -> Mapping[str, tuple[Any, ...]]:
    """All of the home but the tree itself, to the inode; and what its user owns in /tmp.

    Bytecode that Python keeps beside the packages of the environment when they are imported is the environment's own.
    """
    own = str(tree.relative_to(site.machine.home))
    found = {
        name: told
        for name, told in moving.exact(site.machine.home).items()
        if name != own and not name.startswith(f"{own}/") and "__pycache__" not in name
    }
    for name in site.machine.do("find", "/tmp", "-maxdepth", "1", "-user", site.machine.user, check=False).split():
        found[name] = ()
    return found


def test_everything_happens_within_the_tree(site: Site, line: Line, canary: Path) -> None:
    tree = canary / "deep/fork"
    at = ("--path", str(tree))
    before = around(site, tree)
    line.set()

    def same(what: str) -> None:
        site.machine.quiet()
        differing = [name for name in moving.differing(before, around(site, tree)) if not _is_expected(name)]
        assert differing == [], what

    def run(*words: str, code: int = 0, fault: Fault | None = None) -> None:
        line.set(fault)
        told = site.mover.migrate("line", *at, *words)
        assert told.code == code, told.text
        same(" ".join(words))

    run("--dry-run", code=1)
    run(*WORDS)
    run(*WORDS)
    forks.edit(site.mover.tree / "README.md", lambda text: text + "more\n")
    (site.mover.tree / forks.SPACES).unlink()
    site.machine.do("sh", "-c", 'echo by hand >> "$0"', str(tree / "README.md"))
    run(*WORDS, code=5)
    run(*WORDS, fault=Fault(after=40_000), code=5)
    run(*WORDS, "--yes", fault=Fault(after=len(program("n" * 32)) + 10_000, times=1))
    run("--only", "environment", code=1)
    job(site)
    (site.mover.tree / "uky-patch.toml").write_text('[hosts.line]\nscript = "job.sh"\n')
    run(*WORDS)
    run("--only", "job")


def test_links_do_not_lead_out(site: Site, canary: Path) -> None:
    """Folders there that are links to elsewhere, and files that other places hold too."""
    tree = canary / "deep/fork"
    program = (
        'set -e; cd "$0"; mkdir verl; ln -s ../../../elsewhere notes; ln -s ../../../../elsewhere verl/utils\n'
        "ln -s ../../elsewhere outputs; echo shared > ../sibling/shared.md; ln ../sibling/shared.md README.md\n"
    )
    program = program.replace("../../../elsewhere notes", "../../elsewhere notes")
    program = program.replace("../../../../elsewhere verl", "../../../elsewhere verl")
    site.machine.do("bash", "-c", program, str(tree))
    before = around(site, tree)
    told = site.mover.migrate("site", "--path", str(tree), *SEND, "--yes")
    after = around(site, tree)
    touched = [name for name in moving.differing(before, after) if not name.endswith("shared.md")]
    assert touched == [], told.text
    assert (canary / "deep/sibling/shared.md").read_text() == "shared\n"
    assert told.code in (0, 5), told.text
    assert (tree / "outputs").readlink() == Path("../../elsewhere")
    if told.code == 0:
        assert (tree / "README.md").read_text() == (site.mover.tree / "README.md").read_text()


def test_hostile_hosts_are_refused_before_ssh_is_called(site: Site, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for template in HOSTS:
        name = template.replace("{mark}", str(mark))
        calls = len(site.machine.calls)
        told = site.mover.run("migrate", "--dry-run", "--", name)
        assert told.code in (2, 5), (name, told.text)
        assert not mark.exists(), name
        if told.code == 5:
            assert len(site.machine.calls) - calls <= 1
        else:
            assert len(site.machine.calls) == calls, name
            assert told.err.strip(), name
        assert "\x1b[31m" not in told.text


def test_hostile_paths_are_refused(site: Site, canary: Path) -> None:
    before = around(site, canary / "deep/fork")
    for template in REFUSED:
        path = template.replace("{home}", str(site.machine.home))
        told = site.mover.migrate("site", *SEND, f"--path={path}")
        assert told.code == 2, (path, told.text)
        assert told.err.strip() or told.json["steps"][-1]["detail"], path
    assert moving.differing(before, around(site, canary / "deep/fork")) == []


def test_hostile_paths_are_carried_literally(site: Site, canary: Path) -> None:
    base = canary / "elsewhere"
    before = around(site, base)
    for template in LITERAL:
        name = template.replace("{{", "{").replace("}}", "}").replace("{mark}", "mark")
        told = site.mover.migrate("site", *SEND, f"--path={base}/{name}")
        assert told.code in (0, 2), (name, told.text)
        found = {path.parent.parent for path in base.rglob("verl/__init__.py")}
        assert found == ({base / name} if told.code == 0 else set()), (name, told.text)
        assert told.code == 0 or told.err.strip() or told.json["steps"][-1]["detail"], name
        site.machine.do("find", str(base), "-mindepth", "1", "-maxdepth", "1", "-exec", "rm", "-rf", "--", "{}", "+")
    assert moving.differing(before, around(site, base)) == []


def test_a_relative_path_begins_in_the_home(site: Site) -> None:
    name = f"-rel of {site.mover.tree.name}"
    told = site.mover.migrate("site", *SEND, f"--path={name}")
    assert told.code == 0, told.text
    assert (site.machine.home / name / "verl/__init__.py").exists()


def test_hostile_file_names_arrive_as_they_are(site: Site) -> None:
    names = [os.fsdecode(name) for name in NAMES]
    for name in names:
        path = site.mover.tree / "odd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"of " + os.fsencode(name))
    for _ in range(2):
        told = site.mover.migrate("site", *SEND)
        assert told.code == 0, told.text
        assert not any(path.name == "mark" for path in site.machine.home.iterdir())
        for name in names:
            assert (site.there / "odd" / name).read_bytes() == b"of " + os.fsencode(name)
    assert "nothing to send" in told.steps["transfer"]["detail"]


def test_values_of_a_profile_are_carried_literally(site: Site) -> None:
    evil = "$(touch mark); `touch mark` 'x' \"y\" é ${HOME} \\"
    job(site, 'printf "%s\\n" "$EVIL" > evil.txt; for one in *.sh; do bash -n "$one" || exit 1; done\n')
    text = "[hosts.site]\nscript = 'job.sh'\noverrides = ['+x.y=$(touch mark)']\n"
    text += f"[hosts.site.env]\nEVIL = {toml(evil)}\n[hosts.site.constants]\nEVIL_DIR = '/data/$(touch mark) x'\n"
    (site.mover.tree / "uky-patch.toml").write_text(text)
    told = site.mover.migrate("site", *WORDS)
    assert told.code == 0, told.text
    told = site.mover.migrate("site", "--only", "job")
    assert told.code == 0, told.text
    assert (site.there / "evil.txt").read_text() == f"{evil}\n"
    assert "/data/$(touch mark) x" in (site.there / "git_ignore.py").read_text()
    assert not list(site.machine.home.rglob("mark"))


def _package(name: str) -> bool:
    """A package's own folder, whose time changes with the bytecode in it."""
    return "/site-packages/" in name and name.count("/") == 4


_KEY = (".local/state", ".local/state/uky-patch", ".local/state/uky-patch/jobs.key")
"""The one thing that is kept outside the tree: what a job notes is sealed with it, and the tree may not have it."""


def _is_expected(name: str) -> bool:
    return _package(name) or name in _KEY


def toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
