"""Where the sessions of the documents take place: folders and environments, and the names that are shown for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests import machines
from tests.conftest import require
from tests.forks import commit, edit, git
from tests.journeys import trees
from tests.journeys.environments import activated, environment, freeze
from tests.journeys.journey import Stranger
from tests.runtime.environment import interpreter
from tests.transcripts.documents import ROOT, Run, Session

HOME = "/home/me"
"""The home folder of everybody in the documents."""
LOG = "tests/corpus/tuning/rebuilt-drift-vllm-worker-module.log"
"""What `train.log` is in the documents."""
DRIVER = 27875
"""The process of `hang.py` in the documents; its workers have the numbers that follow."""


@dataclass(frozen=True)
class Place:
    """Where commands run, and what is shown instead of names that are others each time."""

    folder: Path
    shown: Mapping[str, str] = field(default_factory=dict)
    programs: str = ""
    """A folder for the beginning of PATH."""


@dataclass(frozen=True)
class Scene:
    """How its place is made below a home folder, and in which lane of tests a session in it runs."""

    make: Callable[[Path, ExitStack], Place]
    lane: Literal["", "slow", "hosts"] = ""
    vllm: str = "0.20.2"


def _stale_fork(home: Path, _: ExitStack) -> Place:
    return Place(trees.released(home / "verl_fork", "0.6.1"))


_EDITS = (
    (
        "verl/workers/rollout/vllm_rollout/vllm_async_server.py",
        "from vllm.utils import FlexibleArgumentParser, get_tcp_uri\n",
        "from vllm.utils.argparse_utils import FlexibleArgumentParser\n"
        "from vllm.utils.network_utils import get_tcp_uri\n",
    ),
    ("verl/utils/vllm/utils.py", "from vllm.lora.models import", "from vllm.lora.lora_model import"),
    (
        "verl/utils/reward_score/gsm8k.py",
        "def compute_score(",
        'def _site_bonus(text):\n    return 0.1 if "####" in text else 0.0\n\n\ndef compute_score(',
    ),
    ("verl/trainer/config/ppo_trainer.yaml", "total_epochs: 30", "total_epochs: 3  # Uky: our debug runs are short"),
)


def _edited_fork(home: Path, after: ExitStack) -> Place:
    """The same checkout with four edits of a hand, in a commit."""
    fork = _stale_fork(home, after).folder
    git(fork, "tag", "v0.6.1")
    for file, old, new in _EDITS:
        edit(fork / file, lambda text, old=old, new=new: text.replace(old, new, 1))  # type: ignore[misc]
    commit(fork, "Our own edits")
    return Place(fork)


def _host(home: Path, after: ExitStack) -> Place:
    """The same checkout with output of a run in it, and a host whose user has the environment of `make runtime`."""
    runtime = interpreter()
    require(machines.why_not() or ("" if runtime else "no environment with a real vLLM: make runtime"))
    assert runtime is not None
    opened = _opened(home.parent / "opened", runtime.parents[1], Path(sys.base_prefix))
    host = after.enter_context(machines.machine(home.parent / "host", "loop", mounts=opened))
    host.do("mkdir", "envs")
    host.do("ln", "-s", str(runtime.parents[1]), "envs/train")
    fork = _stale_fork(home, after).folder
    (fork / "outputs").mkdir()
    (fork / "outputs/main.log").write_bytes(b"step:1\n" * 430_000)
    return Place(fork, {str(host.home): "/home/ukyhost"}, str(host.shims))


def _opened(folder: Path, *wanted: Path) -> list[str]:
    """Arguments of `mount` that let a host's user reach folders in the closed home of who runs the tests."""
    closed = {ancestor for path in wanted for ancestor in path.parents if not ancestor.stat().st_mode & 0o001}
    mounts = []
    for top in sorted(closed)[:1]:
        for path in wanted:
            place = folder / path.relative_to(top)
            place.mkdir(parents=True)
            mounts.append(f"--bind {path} {place}")
        mounts.append(f"--rbind {folder} {top}")
    return mounts


def _log(home: Path, _: ExitStack) -> Place:
    shutil.copyfile(ROOT / LOG, home / "train.log")
    return Place(home)


def _hang(home: Path, after: ExitStack) -> Place:
    (home / "try").mkdir()
    shutil.copyfile(Path(__file__).with_name("hang.py"), home / "try/hang.py")
    log = after.enter_context((home / "train.log").open("wb"))
    driver = subprocess.Popen([sys.executable, "try/hang.py"], cwd=home, stdout=log, stderr=log)
    children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
    workers: list[str] = []
    after.callback(lambda: (subprocess.run(["kill", str(driver.pid), *workers], check=False), driver.wait()))
    for _ in range(100):
        workers[:] = children.read_text().split()
        if len(workers) == 3:
            break
        time.sleep(0.1)
    numbers = [str(driver.pid), *sorted(workers, key=int)]
    return Place(home, {real: str(DRIVER + index) for index, real in enumerate(numbers)})


SCENES: Mapping[str, Scene] = {
    "stale-fork": Scene(_stale_fork),
    "edited-fork": Scene(_edited_fork, lane="slow", vllm="0.12.0"),
    "releases": Scene(lambda home, _: Place(home), lane="slow"),
    "log": Scene(_log, vllm="0.12.0"),
    "hang": Scene(_hang, lane="slow"),
    "host": Scene(_host, lane="hosts"),
    "repository": Scene(lambda _home, _after: Place(ROOT)),
}
"""`stale-fork`: a checkout of verl 0.6.1; `edited-fork`: the same, edited by hand; `releases`: an empty folder, and
whole releases are read; `log`: `train.log` of the corpus; `hang`: processes of `hang.py` that wait for each other;
`host`: `stale-fork` and a second account; `repository`: a checkout of this repository. Each with the environment of a
freeze list."""


@contextmanager
def stage(session: Session, folder: Path) -> Iterator[Run]:
    """Make the scene of a session below `folder`, and give what runs a command line in it."""
    scene = SCENES[session.scene]
    home = folder / "me"
    home.mkdir()
    venv = environment(home / "envs/train", freeze(scene.vllm))
    with ExitStack() as after:
        place = scene.make(home, after)
        shown = {str(home): HOME, **place.shown}
        variables = dict(activated(venv, home, "zh_CN.UTF-8" if session.chinese else "C.UTF-8"))
        variables["PATH"] = ":".join(filter(None, (place.programs, variables["PATH"])))
        someone = Stranger(place.folder, place.folder, variables)

        def run(line: str) -> str:
            for real, instead in place.shown.items():
                line = line.replace(instead, real)
            text = someone.runs(line).text
            for real, instead in shown.items():
                text = text.replace(real, instead)
            return text

        yield run
