"""A real verl with git history and an ignore list like its own: what arrives, and what rsync would have left behind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from patcher.packages import releases
from tests.machines import Machine
from tests.migrate.toys import bring, cargo, contents, git, there, write
from tests.tools import needs

pytestmark = pytest.mark.network

IGNORED = "**/checkpoints\n**/outputs\n__pycache__/\n*.so\ndataset/*\n*.parquet\nlogs\nmodels/*\ngit_ignore.py\n"
"""verl's own list has patterns of these kinds. To git, one with a slash inside is bound to the top."""
HOST_OWN = {
    "git_ignore.py": "PROJECT_ROOT = '/scratch/me'\n",
    "checkpoints/global_step_100/actor/model.pt": "weights",
    "outputs/run/train.log": "step 1",
    "verl/local_notes.txt": "mine",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verl") / "fork"
    shutil.copytree(
        releases.sources("verl", "0.6.1") / "verl", root / "verl", ignore=shutil.ignore_patterns("__pycache__")
    )
    write(root, {".gitignore": IGNORED})
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=verl 0.6.1")
    write(root, {"verl/workers/reward.py": "bonus = 1\n"})
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=ours")
    write(root, {"outputs/here.log": "x", "models/big.bin": "x", "git_ignore.py": "PROJECT_ROOT = '/home/me'\n"})
    return root


def test_what_git_tracks_arrives_and_the_hosts_own_survives(reachable: Machine, checkout: Path) -> None:
    host = there(reachable, "verl-fork")
    place = Path(str(host.path))
    canary = reachable.home / "verl-fork-canary"
    reachable.do("mkdir", "-p", str(canary), str(place))
    reachable.do("sh", "-c", f"echo bird > {canary}/bird; ln -s {canary} {place}/elsewhere")
    for path, content in HOST_OWN.items():
        reachable.do("sh", "-c", f'mkdir -p $(dirname {place / path}); printf %s "{content}" > {place / path}')
    own = contents(place)

    difference, sent = bring(host, cargo(checkout))

    assert sent.way == "rsync"
    assert difference.overwritten == ()
    assert sent.aside is None
    tracked = set(git(checkout, "ls-files", "-z").split("\0")) - {""}
    found = contents(place)
    assert set(found) == tracked | set(own)
    assert {path: found[path] for path in own} == own
    assert all(found[path] == (checkout / path).read_bytes() for path in tracked)
    assert {"verl/utils/dataset/rl_dataset.py", "verl/models/registry.py", "verl/workers/reward.py"} <= tracked
    assert contents(canary) == {"bird": b"bird\n"}

    (checkout / "verl/workers/reward.py").unlink()
    write(checkout, {"verl/trainer/main_ppo.py": "# emptied\n"})
    difference, sent = bring(host, cargo(checkout))
    assert (difference.send, difference.retire) == (("verl/trainer/main_ppo.py",), ("verl/workers/reward.py",))
    assert sent.moved == ("verl/workers/reward.py",)
    assert (place / str(sent.aside) / "verl/workers/reward.py").read_text() == "bonus = 1\n"
    found = contents(place)
    assert {path: found[path] for path in own} == own
    assert "verl/workers/reward.py" not in found
    assert contents(canary) == {"bird": b"bird\n"}


@needs("rsync")
def test_rsyncs_own_filter_would_drop_tracked_files(checkout: Path, tmp_path: Path) -> None:
    subprocess.run(["rsync", "-a", "--filter=:- .gitignore", f"{checkout}/", f"{tmp_path}/by_rsync/"], check=True)
    by_rsync = contents(tmp_path / "by_rsync")
    ours = cargo(checkout).items
    assert "verl/utils/dataset/rl_dataset.py" in ours
    assert "verl/utils/dataset/rl_dataset.py" not in by_rsync
    assert "verl/models/registry.py" in ours
    assert "verl/models/registry.py" not in by_rsync
