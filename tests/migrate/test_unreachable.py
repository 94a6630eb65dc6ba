"""Hosts that cannot be reached, or not used: each is told as what it is, and nothing is written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.migrate import moving
from tests.migrate.cuts import WORDS, Course
from tests.migrate.moving import Site, failed, other_host, sent_to
from tests.remote.cutting import Fault

pytestmark = [pytest.mark.network, pytest.mark.hosts]


def test_a_host_without_python(site: Site, tmp_path: Path) -> None:
    pythons = [
        path for folder in ("/usr/bin", "/usr/local/bin", "/opt/conda/bin") for path in Path(folder).glob("python*")
    ]
    hidden = [f"--bind /dev/null {path}" for path in pythons if not path.is_symlink()]
    with other_host(tmp_path, "snakeless", *hidden) as host:
        before = moving.exact(host.home)
        failed(sent_to(site, host).mover.migrate("snakeless", *WORDS), "Python", "3.8")
        assert moving.exact(host.home) == before


def test_a_wrong_key(site: Site, tmp_path: Path) -> None:
    key = tmp_path / "wrong_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    host = site.machine
    host.also("stranger", host.address, host.port, options=[f"IdentityFile {key}", "IdentitiesOnly yes"])
    own = f"  IdentityFile {host.folder}/user_key\n"
    host.config.write_text(host.config.read_text().replace(own, "", 1))
    failed(site.mover.migrate("stranger", *WORDS), "stranger", "Permission denied", "IdentityFile")


def test_a_changed_host_key(site: Site, tmp_path: Path) -> None:
    key = tmp_path / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    host = site.machine
    kind, public = (tmp_path / "other_key.pub").read_text().split()[:2]
    known = tmp_path / "known_hosts"
    known.write_text(f"[{host.address}]:{host.port} {kind} {public}\n")
    host.also("changed", host.address, host.port, options=[f"UserKnownHostsFile {known}"])
    before = known.read_text()
    told = site.mover.migrate("changed", *WORDS)
    failed(told, "changed", "host key")
    assert known.read_text() == before
    assert not site.there.exists()


def test_an_unknown_host_key(site: Site, tmp_path: Path) -> None:
    host = site.machine
    known = tmp_path / "known_hosts"
    known.touch()
    host.also("new", host.address, host.port, options=[f"UserKnownHostsFile {known}"])
    failed(site.mover.migrate("new", *WORDS), "new", "host key", "ssh new")
    assert known.read_text() == ""


def test_nobody_listens_and_nobody_of_that_name(site: Site) -> None:
    site.machine.also("shut", "127.0.0.1", 1)
    failed(site.mover.migrate("shut", *WORDS), "shut", "refused")
    failed(site.mover.migrate("no-such-host.invalid", *WORDS), "no-such-host.invalid", "resolve")


def test_a_host_asleep(course: Course) -> None:
    """No answer to the first word, or none from some moment on: nobody waits for ever."""
    course.reset()
    told = course.run(Fault(after=0, how="silent"))
    failed(told, "line")
    assert told.seconds < 30
    begin, end = course.whole["transfer"]
    told = course.run(Fault(after=(begin + end) // 2, how="silent", times=1))
    assert told.code == 0, told.text
    assert 15 < told.seconds < 60
    course.left(told)
    course.finished()
