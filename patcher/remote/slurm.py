"""A host whose jobs Slurm starts: what its table says, as options of sbatch and srun, and what Slurm says of a job.

`ssh` leads to the login node, and the tree lies on storage that the compute nodes share.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patcher.i18n import Phrase, phrase
from patcher.remote.agent.slurm import WAITING

KEYS = ("partition", "account", "gres", "time", "nodes")
"""Keys of a host's table that are options of sbatch of the same name."""
_OF_JOBS = (
    *("requeue", "no-requeue", "get-user-env", "ignore-pbs", "kill-on-invalid-dep", "wait-all-nodes", "batch"),
    *("begin", "deadline", "dependency", "hold", "mail-type", "mail-user", "signal", "time-min"),
)
"""Options of sbatch that a check goes without: srun does not know them, or they are about the time of a whole job."""
_GPUS = re.compile(r"gpu(?::[\w.-]+)*?(?::(?P<count>\d+))?(?:\(.*\))?")
"""A part of `gres` that is GPUs: `gpu`, `gpu:8`, `gpu:h100:8`, `gpu:h100:4(S:0-1)`."""
_PER_NODE = re.compile(r"--gpus-per-node=(?:[\w.-]+:)?(\d+)")
"""`--gpus-per-node=8`, `--gpus-per-node=h100:8`."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """What a job of this host asks of Slurm. None: the cluster's own default."""

    partition: str | None = None
    account: str | None = None
    gres: str | None = None
    """Generic resources of each node: `gpu:h100:8`."""
    time: str | None = None
    """The limit, as Slurm writes it: `2-00:00:00`, `30` (minutes)."""
    nodes: int = 1
    sbatch: tuple[str, ...] = ()
    """Further options: `--qos=high`."""

    @property
    def options(self) -> tuple[str, ...]:
        """All options of a job for sbatch, the user's own last."""
        limit = [f"--time={self.time}"] if self.time else []
        return (f"--nodes={self.nodes}", "--ntasks-per-node=1", *limit, *self._node, *self.sbatch)

    @property
    def check_options(self) -> tuple[str, ...]:
        """Options for srun, by which a check runs on the same kind of node and for the same account as a job."""
        return (*self._node, *(option for option in self.sbatch if option[2:].partition("=")[0] not in _OF_JOBS))

    @property
    def _node(self) -> tuple[str, ...]:
        named = {"partition": self.partition, "account": self.account, "gres": self.gres}
        return tuple(f"--{key}={value}" for key, value in named.items() if value)

    @property
    def command(self) -> str:
        """The command with the same options for a person's shell, `sbatch --nodes=2 …`; a script is to follow."""
        return shlex.join(("sbatch", *self.options))

    @property
    def gpus_per_node(self) -> int | None:
        """The GPUs of each node that `gres` or an option `--gpus-per-node` asks for; None where neither does."""
        found = [_GPUS.fullmatch(part.strip()) for part in (self.gres or "").split(",")]
        counts = [int(part["count"] or 1) for part in found if part is not None]
        counts += [int(part[1]) for part in map(_PER_NODE.fullmatch, self.sbatch) if part is not None]
        return sum(counts) if counts else None


def slurm_of(table: Mapping[str, Any]) -> Slurm | None:
    """What the table `[hosts.NAME]` says, which `host_table` has checked; None for a host without Slurm."""
    if table.get("scheduler") is None:
        return None
    given = {key: table[key] for key in KEYS if key in table}
    return Slurm(**given, sbatch=tuple(table.get("sbatch", ())))


@dataclass(frozen=True, slots=True)
class Queue:
    """What Slurm says of a job, in its own words; a text is empty where it says nothing, or nothing any more."""

    id: str
    state: str = ""
    """PENDING, RUNNING, COMPLETED, TIMEOUT, …"""
    reason: str = ""
    """Why it waits: Resources, Priority, QOSMaxJobsPerUserLimit, …"""
    nodes: str = ""
    limit: str = ""
    """Of its time: `2-00:00:00`."""
    restarts: int = 0
    away: str = ""
    """Why Slurm could not be asked, where that is so."""

    @property
    def sentence(self) -> Phrase:
        """That the job waits and why, that it has started, or that Slurm does not answer."""
        if self.away:
            return phrase("Slurm does not answer about job {id}: {why}", id=self.id, why=self.away)
        if not self.waits:
            where = self.nodes or self.state
            return phrase("Slurm has started job {id}: {where}", id=self.id, where=where)
        return phrase("waits in Slurm's queue, job {id}: {reason}", id=self.id, reason=self.reason or self.state)

    @property
    def waits(self) -> bool:
        return self.state in WAITING

    @property
    def words(self) -> str:
        """On one line, for people who know Slurm: `job 7, RUNNING, n[1-2], limit 01:00:00`."""
        restarts = f"restarts {self.restarts}" if self.restarts else ""
        limit = f"limit {self.limit}" if self.limit else ""
        parts = (self.state, self.reason, self.nodes, limit, restarts, self.away)
        return ", ".join((f"job {self.id}", *filter(None, parts)))

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "reason": self.reason,
            "nodes": self.nodes,
            "limit": self.limit,
            "restarts": self.restarts,
        }


def queue_of(fields: Mapping[str, Any]) -> Queue:
    """The queue that the agent's `slurm.ask` gives, typed."""
    words = {name: str(fields.get(name, "")) for name in ("id", "state", "reason", "nodes", "limit", "away")}
    return Queue(**words, restarts=int(fields.get("restarts", 0)))
