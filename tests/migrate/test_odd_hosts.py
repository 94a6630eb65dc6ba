"""Hosts as they are met: shells that talk, links on the way, trees that were copied by hand, lines that are slow."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forks, machines
from tests.conftest import require
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.cuts import WORDS
from tests.migrate.moving import Mover, Site, Told
from tests.migrate.test_end_to_end import job
from tests.remote import cutting
from tests.remote.cutting import Fault, Line

pytestmark = [pytest.mark.network, pytest.mark.hosts]


@pytest.fixture
def odd(site: Site, tmp_path: Path) -> Iterator[Site]:
    """A host of its own, to be spoilt."""
    require(machines.why_not())
    with machines.machine(tmp_path / "odd", "odd") as made:
        moving.packages(made)
        yield Site(made, Mover(site.mover.tree, site.mover.state, made.shims))


def well(told: Told) -> Told:
    assert told.code == 0, told.text
    return told


def test_a_shell_that_talks(odd: Site) -> None:
    """What a login script says on either stream is neither the agent's nor rsync's."""
    odd.machine.do("sh", "-c", 'printf "echo Welcome; echo to the cluster >&2\\n" | cat - .bashrc > b; mv b .bashrc')
    well(odd.mover.migrate("odd", *WORDS))
    moving.arrived(odd.mover.tree, odd.there)
    well(odd.mover.migrate("odd", *WORDS))


def test_a_narrow_umask(odd: Site) -> None:
    odd.machine.do("sh", "-c", 'printf "umask 077\\n" | cat - .bashrc > b; mv b .bashrc')
    well(odd.mover.migrate("odd", *WORDS))
    told = well(odd.mover.migrate("odd", *WORDS))
    assert "nothing to send" in told.steps["transfer"]["detail"]
    assert os.access(odd.there / "scripts/serve reward.sh", os.X_OK)


def test_the_folder_is_a_link_to_a_larger_disk(odd: Site) -> None:
    odd.machine.do("sh", "-c", 'mkdir -p disk/tree && ln -s "$HOME/disk/tree" "$0"', str(odd.there))
    well(odd.mover.migrate("odd", *WORDS))
    assert odd.there.is_symlink()
    moving.arrived(odd.mover.tree, odd.machine.home / "disk/tree")
    told = well(odd.mover.migrate("odd", *WORDS))
    assert "nothing to send" in told.steps["transfer"]["detail"]


def test_a_tree_that_was_copied_by_hand(odd: Site) -> None:
    """All files are there already, byte for byte, and only the manifest is not."""
    ids = [path.stem for path in (moving.REPOSITORY / "patches").glob("*.toml")]
    (odd.mover.tree / "uky-patch.toml").write_text(f"disable = {ids!r}\n")
    names = "\0".join(name for name in forks.listed(odd.mover.tree) if name != "sitecustomize.py")
    command = ["rsync", "-a", "--from0", "--files-from=-", f"{odd.mover.tree}/", f"odd:{odd.mover.tree.name}/"]
    subprocess.run(command, input=names.encode(), check=True, env=odd.mover.environment)
    well(odd.mover.migrate("odd", *WORDS))
    well(odd.mover.migrate("odd", "--only", "render"))
    (odd.mover.tree / forks.SPACES).unlink()
    well(odd.mover.migrate("odd", *WORDS))
    assert not (odd.there / forks.SPACES).exists()


def test_a_fork_within_a_fork_is_recognised(odd: Site) -> None:
    well(odd.mover.migrate("odd", *WORDS))
    inner = f"{odd.there}/{odd.there.name}"
    told = odd.mover.migrate("odd", "--path", inner, *WORDS)
    assert told.code == 5, told.text
    assert str(odd.there) in told.text
    assert "--path" in told.text
    assert not Path(inner).exists()


def test_a_far_host(odd: Site) -> None:
    """A tenth of a second each way: round trips are few."""
    with cutting.line(odd.machine, "far") as far:
        well(odd.mover.migrate("odd", *WORDS))
        far.set(Fault(latency=0.1))
        told = well(odd.mover.migrate("far", *WORDS))
        assert told.seconds < 12, told.text


def test_a_host_whose_python_is_the_oldest(host: Machine, site: Site, other_python: Path | None) -> None:
    if other_python is None or "3.8" not in other_python.name:
        pytest.skip("no Python 3.8 here")
    told = well(site.mover.migrate("site", *WORDS))
    assert "python 3.8" in told.steps["probe"]["detail"]


def test_an_interrupted_job_goes_on_and_is_followed_again(site: Site, line: Line) -> None:
    job(site, 'for n in $(seq 12); do echo "line $n"; sleep 1; done; cat tests/train.txt\n')
    line.set()
    well(site.mover.migrate("site", *WORDS))
    process = site.mover.start("migrate", "site", "--only", "job", fmt="text")
    jobs = site.there / ".uky-patch/host/jobs"
    deadline = time.monotonic() + 30
    while not list(jobs.glob("*/log")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.7)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    assert "running" in out, out + err
    assert "goes on" in out, out + err
    assert "ready" not in out, out + err
    assert "uky-patch job attach site" in out, out + err
    told = well(site.mover.migrate("site", "--only", "job"))
    assert told.json["job"]["verdict"] == "ok"
    assert len(list(jobs.iterdir())) == 1
    assert Path(told.json["job"]["log"]).read_text().startswith("line 1\nline 2\n")


def test_no_file_is_replaced_under_a_job_that_runs(site: Site) -> None:
    job(site, "sleep 60\n")
    well(site.mover.migrate("site", *WORDS))
    process = site.mover.start("migrate", "site", "--only", "job")
    jobs = site.there / ".uky-patch/host/jobs"
    deadline = time.monotonic() + 30
    while not list(jobs.glob("*/log")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    changed = site.mover.tree / "verl/__init__.py"
    before = (site.there / "verl/__init__.py").read_bytes()
    changed.write_bytes(changed.read_bytes() + b"\nLATER = 1\n")
    refused = site.mover.migrate("site", "--only", "transfer")
    assert refused.code == 5
    assert "a job runs" in refused.text
    assert (site.there / "verl/__init__.py").read_bytes() == before
    well(site.mover.migrate("site", "--only", "transfer", "--yes"))
    assert b"LATER" in (site.there / "verl/__init__.py").read_bytes()
