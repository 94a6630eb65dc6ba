"""A folder with the tool, a stale fork and a log, whose path is as long on every machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp

from tests.forks import fork

REPOSITORY = Path(__file__).parent.parent.parent
_LOG = REPOSITORY / "tests/data/train-0.8.0.log"
FAILED = """\
(TaskRunner pid=4711) {'actor_rollout_ref': {'rollout': {'name': 'vllm'}}}
(WorkerDict pid=4712) Traceback (most recent call last):
(WorkerDict pid=4712)   File "/data/verl/workers/rollout/vllm_rollout/vllm_rollout.py", line 205, in init_worker
(WorkerDict pid=4712)     self.inference_engine = WorkerWrapperBase(vllm_config=self.vllm_config)
(WorkerDict pid=4712) TypeError: WorkerWrapperBase.__init__() got an unexpected keyword argument 'vllm_config'
"""


def make() -> Path:
    """Make it. `bin/uky-patch` runs this checkout's tool under the place's own path."""
    place = Path(mkdtemp(prefix="uky-ux-", dir="/tmp"))
    for name in ("patcher", "patches", "settings", "symptoms", "templates"):
        (place / name).symlink_to(REPOSITORY / name)
    (place / "bin").mkdir()
    (place / "home").mkdir()
    tool = place / "bin/uky-patch"
    tool.write_text(f'#!/bin/sh\nPYTHONPATH={place} exec {sys.executable} -m patcher "$@"\n')
    tool.chmod(0o755)
    fork(place / "stale", small=True)
    (place / "failed.log").write_text(FAILED)
    shutil.copyfile(_LOG, place / "ended.log")
    return place


def fresh_tree(place: Path) -> Path:
    """The fork as it was, at one path."""
    tree = place / "fork"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(place / "stale", tree, symlinks=True)
    return tree
