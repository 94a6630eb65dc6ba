"""A machine that trains, as `[hosts.NAME]` or the command line describes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Profile: TypeAlias = Literal["standard", "debug", "fast-load"]


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of a host before it is asked. Everything but the name may be left out."""

    name: str
    """As the user calls it: a key of `[hosts]`, or what ssh is to be given."""
    target: str
    """What ssh is given: an alias of its configuration, a host, or user@host."""
    port: int | None = None
    path: str | None = None
    """Where the tree is to be there; None: a folder in the home, named as the local one."""
    python: str | None = None
    """An interpreter, or the folder of a virtual or conda environment; None: found there."""
    data: str | None = None
    models: str | None = None
    output: str | None = None
    """Folders for data sets, models, and what training writes (checkpoints included)."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Further paths for git_ignore.py, by constant."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the job that may be shown and written into run scripts."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the job that are never shown, written or journalled; they go to the job's process alone."""
    unset: tuple[str, ...] = ()
    """Secrets that the configuration names and this machine's environment does not have."""
    overrides: tuple[str, ...] = ()
    """Hydra overrides, added to every run script."""
    profile: Profile = "debug"
    script: str | None = None
    """The fork's own script to run as the job, below the tree's root; None: the rendered one."""

    reached_by: tuple[str, ...] = ()
    """Options of the command line that say how to reach it and where its tree is: `--port 2222`."""

    @property
    def words(self) -> str:
        """How a command names it: its name, and the options that were needed for it, for a shell."""
        return shlex.join((self.name, *self.reached_by))

    @property
    def here(self) -> bool:
        """Whether it is this machine."""
        return self.name == HERE


HERE = "here"
"""The name of this machine; the agent then runs as a child process, without ssh."""
