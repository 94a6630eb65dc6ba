"""A real Slurm for tests: munged, slurmctld and several slurmd here, each a node of its own name and port."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import tools

NODES = 2


@dataclass(frozen=True)
class Slurm:
    """A cluster that runs. Whoever has `conf` as SLURM_CONF uses it."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, compare=False)

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    def ask(self, *command: str) -> str:
        """What a command of Slurm's prints, asked as the cluster's administrator."""
        environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout

    def fill(self, seconds: int, *options: str) -> str:
        """Take all nodes for so long; the number of the job that does."""
        script = ["--exclusive", f"--nodes={NODES}", "--output=/dev/null", f"--wrap=sleep {seconds}"]
        return self.ask("sbatch", "--parsable", *options, *script).strip()

    @contextlib.contextmanager
    def no_controller(self) -> Iterator[None]:
        """Slurm answers nobody for as long as this lasts; what runs on the nodes runs on."""
        daemon = self.daemons["slurmctld"]
        daemon.terminate()  # Killed, it forgets the jobs of its last seconds.
        daemon.wait()
        try:
            yield
        finally:
            self.daemons["slurmctld"] = subprocess.Popen(daemon.args, env={**os.environ, "SLURM_CONF": str(self.conf)})
            _await(lambda: _answers(self), self)

    def clear(self) -> None:
        """No job is left: what a test began is none of the next one's."""
        self.ask("scancel", "--quiet", "--partition=debug")
        self.ask("scancel", "--quiet", "--partition=low")
        deadline = time.monotonic() + 20
        while self.ask("squeue", "--noheader"):
            if time.monotonic() > deadline:
                raise TimeoutError(self.ask("squeue"))
            time.sleep(0.2)


def why_not() -> str:
    """Why no Slurm can be run here; empty where one can."""
    if os.geteuid() != 0:
        return "a Slurm of one's own needs root"
    return tools.missing("slurmctld", "slurmd", "munged", "sbatch", "srun", "scontrol")


@contextlib.contextmanager
def cluster(nodes: int = NODES) -> Iterator[Slurm]:
    """Nodes n1, n2, … in the partition `debug`, and again in `low`, whose jobs those of `debug` preempt and requeue.

    It lies in a folder of its own that every user may read: pytest's are closed to others.
    """
    folder = Path(tempfile.mkdtemp(prefix="uky-slurm-"))
    folder.chmod(0o755)
    found = Slurm(folder)
    _configure(found, nodes)
    environment = {**os.environ, "SLURM_CONF": str(found.conf)}
    commands = {
        "munged": [tools.find("munged"), "--foreground", "--force", "--num-threads=16", *_munge_options(folder)],
        "slurmctld": [tools.find("slurmctld"), "-D", "-i"],
        **{f"n{n}": [tools.find("slurmd"), "-D", "-N", f"n{n}"] for n in range(1, nodes + 1)},
    }
    try:
        for name, command in commands.items():
            with (folder / f"{name}.out").open("wb") as out:
                found.daemons[name] = subprocess.Popen(
                    [str(word) for word in command], env=environment, stdout=out, stderr=out
                )
            if name == "munged":
                _await(lambda: (folder / "munge.socket").exists(), found)
        _await(lambda: _idle(found) == nodes, found)
        yield found
    finally:
        with contextlib.suppress(subprocess.CalledProcessError, TimeoutError):
            found.clear()
        for daemon in reversed(found.daemons.values()):
            daemon.terminate()
            daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _munge_options(folder: Path) -> list[str]:
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
    return [f"--{option}={folder}/{name}" for option, name in files.items()] + [f"--log-file={folder}/munge.log"]


def _configure(slurm: Slurm, nodes: int) -> None:
    folder, host = slurm.folder, socket.gethostname()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    for name in ("state", *(f"spool-n{n}" for n in range(1, nodes + 1))):
        (folder / name).mkdir(mode=0o755)
    ports = _free_ports(nodes + 1)
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={ports[0]}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/munge.socket,cred_expire=5",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdLogFile={folder}/slurmd-%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "SwitchType=switch/none",
        "SchedulerType=sched/backfill",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0,bf_interval=1",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "ReturnToService=2",
        "KillWait=5",
        "JobRequeue=0",
        "MinJobAge=300",
        f"FirstJobId={os.getpid() % 10000 * 100 + 1}",
        "InactiveLimit=0",
        "SlurmdTimeout=300",
        *(
            f"NodeName=n{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[n]} CPUs=2 RealMemory=1000"
            for n in range(1, nodes + 1)
        ),
        "PartitionName=debug Nodes=ALL Default=YES PriorityTier=10 PreemptMode=OFF MaxTime=60 State=UP",
        "PartitionName=low Nodes=ALL PriorityTier=1 MaxTime=60 State=UP",
    ]
    slurm.conf.write_text("\n".join(lines) + "\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")


def _idle(slurm: Slurm) -> int:
    with contextlib.suppress(subprocess.CalledProcessError):
        told = slurm.ask("sinfo", "--noheader", "--Node", "--partition=debug", "--format=%T")
        return sum(state == "idle" for state in told.split())
    return 0


def _answers(slurm: Slurm) -> bool:
    with contextlib.suppress(subprocess.CalledProcessError):
        return "UP" in slurm.ask("scontrol", "ping")
    return False


def _await(ready: object, slurm: Slurm, within: float = 30.0) -> None:
    assert callable(ready)
    deadline = time.monotonic() + within
    while not ready():
        ended = [name for name, daemon in slurm.daemons.items() if daemon.poll() is not None]
        if ended or time.monotonic() > deadline:
            said = "\n".join(f"{name}: {(slurm.folder / f'{name}.out').read_text()[-2000:]}" for name in slurm.daemons)
            raise RuntimeError(f"Slurm does not come up; ended: {ended}\n{said}")
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
