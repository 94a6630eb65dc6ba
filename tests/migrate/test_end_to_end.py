"""`uky-patch migrate` as a user calls it, to another user with another home and another Python."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import forks, machines
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.moving import Mover, Site, Told

pytestmark = [pytest.mark.network, pytest.mark.hosts]

MOVE = [word for step in ("transfer", "render", "verify") for word in ("--only", step)]
"""Without the environment, which is not there, and the job."""
MOVED = {"preflight", "probe", "plan", "transfer", "render", "verify"}
SCRIPTS = ("run_standard.sh", "run_debug.sh", "run_fast_load.sh")
SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
LOG = Path(__file__).parents[1] / "data/train-0.8.0.log"


def show(told: Told) -> None:
    """Time and verdict of each step, for whoever reads the test's output."""
    for step in told.json["steps"]:
        print(f"  {step['name']:<12}{step['status']:<6}{step['seconds']:6.2f} s  {step['detail']}")


def well(told: Told) -> Told:
    show(told)
    assert told.code == 0, told.text
    assert all(status in ("ok", "warn") for status in told.statuses.values()), told.text
    return told


def test_a_fresh_host_gets_the_tree_as_git_has_it(whole: Site) -> None:
    before = moving.local(whole.mover.tree)
    told = well(whole.mover.migrate("site", *MOVE))
    assert told.json["host"] == "site"
    assert set(told.steps) == MOVED
    assert {"name", "status", "seconds", "detail"} <= set(told.json["steps"][0])
    listed = [whole.mover.tree / name for name in forks.listed(whole.mover.tree)]
    size = sum(path.lstat().st_size for path in listed if os.path.lexists(path)) / 1e6
    sent = re.search(r"([0-9.]+) MB sent", told.steps["transfer"]["detail"])
    assert sent is not None, told.steps["transfer"]["detail"]
    assert size - 0.1 <= float(sent[1]) <= 1.1 * size
    moving.arrived(whole.mover.tree, whole.there)
    assert (whole.there / "verl/utils/dataset/rl_dataset.py").exists()
    assert (whole.there / "verl/utils/dataset/new_loader.py").exists()
    assert (whole.there / "verl/models/registry.py").exists()
    assert (whole.there / forks.UNICODE).read_text() == "ein Name mit Umlaut\n"
    assert (whole.there / "latest-notes").readlink() == Path("notes/two words.txt")
    assert os.access(whole.there / "scripts/serve reward.sh", os.X_OK)
    assert moving.local(whole.mover.tree) == before


def test_records_are_those_of_the_hosts_versions(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    here, there = site.mover.tree / SERVER, site.there / SERVER
    assert "Uky[vllm-log-requests]" not in here.read_text()
    assert "Uky[vllm-log-requests]" in there.read_text()
    assert "# uky" in there.read_text()
    python = str(site.machine.home / "venv/bin/python")
    assert "enable_log_requests" in there.read_text()
    assert python in (site.there / "run_debug.sh").read_text()


def test_what_records_changed_there_can_be_taken_back_there(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    copy = site.mover.state / "back"
    subprocess.run(["cp", "-a", str(site.there), str(copy)], check=True)
    subprocess.run(["chown", "-R", "root", str(copy)], check=True)
    back = Mover(copy, site.mover.state, site.mover.shims)
    assert back.run("revert").code == 0
    assert (copy / SERVER).read_bytes() == (site.mover.tree / SERVER).read_bytes()


def test_a_second_run_has_nothing_to_do(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    before = moving.exact(site.there / "verl")
    shape = moving.shape(site.there)
    calls = len(site.machine.calls)
    told = well(site.mover.migrate("site", *MOVE))
    assert "nothing to send" in told.steps["transfer"]["detail"]
    assert "unchanged" in told.steps["render"]["detail"]
    assert moving.exact(site.there / "verl") == before
    assert moving.shape(site.there) == shape
    assert len(site.machine.calls) - calls == 1, site.machine.calls[calls:]
    assert not (site.there / ".uky-patch-kept").exists()


def test_only_what_has_changed_is_sent(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    before = moving.exact(site.there)
    forks.edit(site.mover.tree / "verl/utils/reward_score/__init__.py", lambda text: text + "\nMORE = 1\n")
    told = well(site.mover.migrate("site", *MOVE))
    assert re.match(r"1 files?,", told.steps["transfer"]["detail"]), told.text
    changed = {name for name in moving.differing(before, moving.exact(site.there)) if name.startswith("verl/")}
    assert changed - {"verl/utils/reward_score"} == {"verl/utils/reward_score/__init__.py"}


def test_a_file_deleted_here_is_moved_aside_there(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    site.machine.do("sh", "-c", 'mkdir -p "$0/checkpoints" && echo mine > "$0/checkpoints/a.pt"', str(site.there))
    (site.mover.tree / forks.SPACES).unlink()
    (site.mover.tree / "latest-notes").unlink()
    well(site.mover.migrate("site", *MOVE))
    assert not os.path.lexists(site.there / forks.SPACES)
    assert not os.path.lexists(site.there / "latest-notes")
    (kept,) = (site.there / ".uky-patch-kept").glob(f"*/{forks.SPACES}")
    assert kept.read_text() == "a name with a space\n"
    assert (site.there / "checkpoints/a.pt").read_text() == "mine\n"


def test_the_hosts_own_files_survive(site: Site) -> None:
    home = site.there
    own = {
        "git_ignore.py": "PROJECT_ROOT = '/here'\n",
        "checkpoints/step_1/model.pt": "weights",
        "outputs/run.log": "log",
        "notes of mine.txt": "not git's, not ours\n",
    }
    for name, text in own.items():
        site.machine.do("sh", "-c", 'mkdir -p "$(dirname "$0")" && printf %s "$1" > "$0"', str(home / name), text)
    told = well(site.mover.migrate("site", *MOVE))
    assert "the host's own, kept" in told.steps["render"]["detail"]
    for _ in range(2):
        assert {name: (home / name).read_text() for name in own} == own
        forks.edit(site.mover.tree / "README.md", lambda text: text + "more\n")
        well(site.mover.migrate("site", *MOVE))


def test_work_done_on_the_host_is_asked_about_and_moved_aside(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    site.machine.do("sh", "-c", 'echo "# by hand" >> "$0"', str(site.there / "README.md"))
    before = moving.shape(site.there)
    told = site.mover.migrate("site", *MOVE)
    assert told.code == 5
    assert told.statuses["transfer"] == "fail"
    assert "README.md" in told.text
    assert "--yes" in told.text
    assert moving.shape(site.there) == before
    well(site.mover.migrate("site", *MOVE, "--yes"))
    assert "# by hand" not in (site.there / "README.md").read_text()
    (kept,) = (site.there / ".uky-patch-kept").glob("*/README.md")
    assert "# by hand" in kept.read_text()


def test_a_script_edited_on_the_host_is_kept_and_shown(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    site.machine.do("sh", "-c", 'echo "# tuned" >> "$0/run_debug.sh"', str(site.there))
    told = well(site.mover.migrate("site", *MOVE))
    assert "run_debug.sh edited there, kept" in told.steps["render"]["detail"]
    assert (site.there / "run_debug.sh").read_text().endswith("# tuned\n")


def test_other_versions_on_the_host_change_the_records_there(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    assert "Uky[vllm-log-requests]" in (site.there / SERVER).read_text()
    older = moving.packages(site.machine, f"old{site.there.name}", {**moving.VERSIONS, "vllm": "0.11.0"})
    (site.mover.tree / "uky-patch.toml").write_text(f'[hosts.site]\npython = "{older}"\n')
    told = well(site.mover.migrate("site", *MOVE))
    assert "vllm 0.11.0" in told.steps["probe"]["detail"]
    assert "Uky[vllm-log-requests]" not in (site.there / SERVER).read_text()
    assert (site.there / SERVER).read_bytes() != b""


def test_a_host_on_which_nobody_knows_what_trains_is_left_as_it_is(site: Site) -> None:
    well(site.mover.migrate("site", *MOVE))
    before, venv = moving.shape(site.there), str(site.machine.home / "venv")
    site.machine.do("mv", venv, f"{venv}-away")
    try:
        told = site.mover.migrate("site", *MOVE)
        assumed = site.mover.migrate("site", "--until", "plan", "--assume", "vllm==0.20.2")
    finally:
        site.machine.do("mv", f"{venv}-away", venv)
    assert (told.code, told.statuses["plan"], "transfer" in told.statuses) == (2, "fail", False), told.text
    assert "it is not known which environment trains on site" in told.steps["plan"]["detail"]
    assert "--python" in told.steps["plan"]["fix"]
    assert moving.shape(site.there) == before
    assert assumed.statuses["plan"] == "ok", assumed.text


def test_a_dry_run_writes_nothing_there_or_here(site: Site) -> None:
    home, here = moving.exact(site.machine.home), moving.local(site.mover.tree)
    told = site.mover.migrate("site", "--dry-run", fmt="text")
    assert told.code == 1, told.text
    assert "verl/trainer/config" in told.out or "verl/" in told.out
    assert "checkpoints" in told.out
    assert "Uky[vllm-log-requests]" in told.out
    assert "run_debug.sh" in told.out
    assert not site.there.exists()
    assert moving.differing(home, moving.exact(site.machine.home)) == []
    assert moving.local(site.mover.tree) == here
    # A cache of digests is no state: the next run hashes a file anew where the file has changed.
    assert [path for path in moving.walk(site.mover.state) if path.is_file() and ".cache" not in path.parts] == []
    well(site.mover.migrate("site", *MOVE))
    home = moving.exact(site.there)
    told = site.mover.migrate("site", "--dry-run")
    assert told.code == 0, told.text
    assert moving.differing(home, moving.exact(site.there)) == []


def test_a_run_begins_where_it_is_told_to(site: Site) -> None:
    told = site.mover.migrate("site", "--from", "render")
    assert told.code == 2, told.text
    assert "uky-patch migrate site" in told.text
    assert not site.there.exists()
    well(site.mover.migrate("site", *MOVE))
    site.machine.do("rm", str(site.there / "run_debug.sh"))
    told = site.mover.migrate("site", "--only", "render")
    well(told)
    assert (site.there / "run_debug.sh").exists()
    assert "transfer" not in told.steps


def test_the_environment_that_is_not_there_is_a_finding(site: Site) -> None:
    told = site.mover.migrate("site", within=60)
    show(told)
    assert told.code == 1, told.text
    assert told.statuses["environment"] == "fail"
    assert "job" not in told.steps
    assert told.steps["environment"]["seconds"] < 15


def test_a_job_prints_a_real_log_and_is_judged(site: Site) -> None:
    job(site)
    well(site.mover.migrate("site", *MOVE))
    told = well(site.mover.migrate("site", "--only", "job"))
    assert told.json["job"]["verdict"] == "ok"
    assert told.json["job"]["step"] == 2
    assert {"config", "dataset", "actor", "rollout", "loop"} <= set(told.json["job"]["phases"])
    log = Path(told.json["job"]["log"])
    assert log.is_relative_to(site.there / ".uky-patch/host/jobs")
    assert "step:2" in log.read_text()


def test_three_hosts_at_once(fleet: tuple[Machine, ...], whole: Site, tmp_path: Path) -> None:
    """Three hosts in network namespaces, each with versions of its own, from one tree at the same time."""
    shims = machines.joined(tmp_path / "joined", fleet)
    wanted = {"a": "0.20.2", "b": "0.11.0", "c": "0.12.0"}
    for host in fleet:
        moving.packages(host, "venv", {**moving.VERSIONS, "vllm": wanted[host.name]})
    mover = Mover(whole.mover.tree, tmp_path / "state", shims)
    before = moving.local(mover.tree)
    with ThreadPoolExecutor(len(fleet)) as pool:
        told = list(pool.map(lambda host: mover.migrate(host.name, *MOVE), fleet))
    for host, one in zip(fleet, told, strict=True):
        print(f"{host.name}  {host.address}  {one.seconds:.1f} s")
        well(one)
        assert f"vllm {wanted[host.name]}" in one.steps["probe"]["detail"]
        moving.arrived(mover.tree, host.home / mover.tree.name)
    patched = {"Uky[vllm-log-requests]" in (host.home / mover.tree.name / SERVER).read_text() for host in fleet[1:]}
    assert patched == {True, False}
    assert moving.local(mover.tree) == before


def job(site: Site, script: str = "") -> None:
    """A job script in the tree, named by the host's table: by default it prints a real training log."""
    tree = site.mover.tree
    (tree / "tests").mkdir(exist_ok=True)
    (tree / "tests/train.txt").write_bytes(LOG.read_bytes())
    text = script or 'while IFS= read -r line; do printf "%s\\n" "$line"; sleep 0.005; done < tests/train.txt\n'
    (tree / "job.sh").write_text(f"#!/bin/bash\n{text}")
    (tree / "job.sh").chmod(0o755)
    (tree / "uky-patch.toml").write_text('[hosts.site]\nscript = "job.sh"\n')
