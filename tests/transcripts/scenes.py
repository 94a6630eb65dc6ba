"""Where the sessions of the documents take place: folders and environments, and the names that are shown for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.journeys import trees
from tests.journeys.environments import activated, environment, freeze
from tests.journeys.journey import Stranger
from tests.transcripts.documents import ROOT, Session

HOME = "/home/me"
"""The home folder of everybody in the documents."""
LOG = "tests/corpus/tuning/rebuilt-drift-vllm-worker-module.log"
"""What `train.log` is in the documents."""


@dataclass(frozen=True)
class Scene:
    """How its folder is made below a home folder, and in which lane of tests a session in it runs."""

    make: Callable[[Path], Path]
    lane: Literal["", "slow"] = ""
    vllm: str = "0.20.2"


def _stale_fork(home: Path) -> Path:
    return trees.released(home / "verl_fork", "0.6.1")


def _log(home: Path) -> Path:
    shutil.copyfile(ROOT / LOG, home / "train.log")
    return home


SCENES: Mapping[str, Scene] = {
    "stale-fork": Scene(_stale_fork),
    "releases": Scene(lambda home: home, lane="slow"),
    "log": Scene(_log, vllm="0.12.0"),
    "repository": Scene(lambda _: ROOT),
}
"""`stale-fork`: a checkout of verl 0.6.1; `releases`: an empty folder, and whole releases are read; `log`: `train.log`
of the corpus; `repository`: a checkout of this repository. Each with the environment of a freeze list."""


def runner(session: Session, folder: Path) -> Callable[[str], str]:
    """Make the scene of a session below `folder`, and give what runs a command line in it."""
    scene = SCENES[session.told]
    home = folder / "me"
    home.mkdir()
    venv = environment(home / "envs/train", freeze(scene.vllm))
    place = scene.make(home)
    variables = activated(venv, home, "zh_CN.UTF-8" if session.chinese else "C.UTF-8")
    someone = Stranger(place, place, variables)
    return lambda line: someone.runs(line).text.replace(str(home), HOME)
