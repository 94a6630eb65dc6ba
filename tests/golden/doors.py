"""Every name of the product and of other tests that `tests.golden` uses. A rename is followed here and nowhere else.

Each function takes and gives plain values, so that what is kept does not depend on how the product is built.
"""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from patcher.cli.app import run
from patcher.patching.applying import Order, preview
from patcher.profiles.rendering import render_all
from patcher.remote.host import HERE, Host
from tests.forks import fork
from tests.journeys.environments import environment, freeze
from tests.matrix.pairs import copy_of, session
from tests.packages.venvs import Venv
from tests.profiles.hosts import VERSIONS, survey

TOOL = ("-m", "patcher")
"""How a Python starts the command line in a process of its own."""


@dataclass(frozen=True)
class Planned:
    """What `apply` would do: the texts of the files that it would write, and what becomes of each record."""

    texts: dict[str, str]
    outcomes: list[dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def tree_of(verl: str, folder: Path) -> Path:
    """A tree with the files of a verl release, in `folder`, once for all parts. Fetches what is not in the cache."""
    tree = folder / f"verl-{verl}"
    return tree if tree.is_dir() else copy_of(verl, folder)


def plans(tree: Path, vllm: str) -> dict[str, Planned]:
    """The plan for a tree beside a vLLM release: `default`, and `all` with every record that is off by default."""
    here = session(tree, vllm)
    tags = frozenset(tag for record in here.records for tag in record.tags if not record.enabled)
    return {
        name: _planned(preview(here, Order(request)).plan)
        for name, request in (("default", here.request()), ("all", here.request(tags=tuple(sorted(tags)))))
    }


def _planned(plan: Any) -> Planned:
    return Planned(
        {path: file.text for path, file in sorted(plan.files.items())},
        [
            {
                "id": outcome.id,
                "kind": outcome.kind,
                "detail": str(outcome.detail),
                "note": str(outcome.note),
                "files": list(outcome.files),
                "lines": [[spot.file, spot.line] for spot in outcome.spots],
                "nearest": [[file, _plain(candidate)] for file, candidate in outcome.nearest],
                "skipped": outcome.skipped,
            }
            for outcome in plan.outcomes
        ],
    )


def _plain(value: Any) -> Any:
    """The values of a dataclass in their order, without the names of the class and its fields."""
    if is_dataclass(value) and not isinstance(value, type) and type(value).__str__ is object.__str__:
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value if isinstance(value, int | None) else str(value)


def answer_apart(*words: str) -> Answer:
    """What a command in a process of its own prints."""
    done = subprocess.run([sys.executable, *TOOL, *words], capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def answer(*arguments: str) -> Answer:
    """Run a command in this process, in the folder and with the variables that it has now."""
    kept = sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.stdout, sys.stderr = out, err
    try:
        code = run(arguments)
    finally:
        sys.stdout, sys.stderr = kept
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return Answer(code, *texts)


def stale_fork(folder: Path) -> Path:
    """A git checkout of verl 0.6.1 with edits made by hand, ignored files and a log."""
    return fork(folder, small=True)


def training_environment(prefix: Path, vllm: str) -> Path:
    """A virtual environment's files, with the versions of a real one; nothing in it can be run."""
    return environment(prefix, freeze(vllm)).prefix


def environment_without_packages(prefix: Path) -> Path:
    """A virtual environment's files with nothing installed."""
    return Venv(prefix).prefix


def words_of_commands() -> list[str]:
    """Every command and command of a group, as `job status`."""
    from tests.commands import commands  # Imports every command.

    return sorted(path for path, _ in commands())


def rendered(tree: Path, verl: str) -> dict[str, dict[str, str]]:
    """git_ignore.py and the run scripts for fixed hosts, by name of the host's settings and of the file."""
    folders = {"data": "/data/sets", "models": "/data/models", "output": "/data/out", "python": "/venv/bin/python"}
    hosts = {
        "plain": (Host("box", "box"), survey()),
        "one-gpu": (Host("box", "me@box", **folders), survey(gpus=1, cpus=4, memory=24 * 2**30)),
        "eight-gpus": (Host("box", "box", **folders, profile="standard"), survey(gpus=8, cpus=128)),
        "no-gpu": (Host(HERE, HERE, **folders), survey(gpus=0)),
        "settings": (
            Host(
                "box",
                "box",
                **folders,
                constants={"REWARD_BASE": "/data/reward"},
                env={"TRITON_CACHE_DIR": "/tmp/triton", "NCCL_DEBUG": "INFO"},
                overrides=("trainer.total_epochs=1", "+trainer.note='two words'", "~trainer.logger"),
                profile="fast-load",
            ),
            survey(gpus=2),
        ),
    }
    versions = {**VERSIONS, "verl": verl}
    return {
        name: {
            file.path: f"{file.text}--- notes\n" + "".join(f"{note}\n" for note in file.notes)
            for file in render_all(host, found, versions, tree)
        }
        for name, (host, found) in hosts.items()
    }
