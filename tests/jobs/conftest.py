"""A tree on a host, with scripts to run as jobs."""

from __future__ import annotations

import os
import pwd
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from patcher import jobs
from patcher.jobs import Job, Verdict
from patcher.logs.milestones import Milestone
from patcher.remote.connection import Connection
from patcher.remote.host import HERE, Host
from patcher.remote.link import HostLink
from tests.machines import Machine

LOGS = Path(__file__).with_name("logs")


@dataclass
class Site:
    """A tree at `root`, and a link to it."""

    host: Host
    root: Path
    link: HostLink
    owner: tuple[int, int]
    started: list[str] = field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.chown(path, *self.owner)

    def open(self) -> Connection:
        return self.link.open()[0]

    def start(self, script: str, **options: Any) -> Job:
        """Run a script's text as a job."""
        self.write("run.sh", script)
        connection, _ = self.link.open()
        with self.link.locked("a test"):
            job = jobs.start(connection, self.host, None, profile="debug", script="run.sh", **options)
        self.started.append(job.id)
        return job

    def follow(self, job: Job, **listener: Callable[..., object]) -> Verdict:
        listening = jobs.JobListener(problem=lambda _: None, **listener)  # type: ignore[arg-type]
        return jobs.follow(self.link.reconnect, self.open(), job, listening)

    def milestones(self, job: Job) -> tuple[Verdict, list[Milestone]]:
        found: list[Milestone] = []
        return self.follow(job, milestone=found.append), found

    def stop_all(self) -> None:
        connection = self.open()
        for name in self.started:
            jobs.stop(connection, name, grace=0.2)


def site(host: Host, root: Path, user: str) -> Iterator[Site]:
    who = pwd.getpwnam(user)
    (root / "verl").mkdir(parents=True)
    (root / "verl" / "__init__.py").write_text("")
    for path in (root, root / "verl", root / "verl" / "__init__.py"):
        os.chown(path, who.pw_uid, who.pw_gid)
    found = Site(host, root, HostLink(host, root.name), (who.pw_uid, who.pw_gid))
    try:
        yield found
        found.stop_all()
    finally:
        found.link.close()


@pytest.fixture
def there(reachable: Machine) -> Iterator[Site]:
    """On the other side of ssh, as another user."""
    root = reachable.home / f"fork {uuid.uuid4().hex[:6]}"
    yield from site(Host("loop", "loop", path=str(root)), root, reachable.user)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """On this machine."""
    root = tmp_path / "fork"
    yield from site(Host(HERE, HERE, path=str(root)), root, pwd.getpwuid(os.getuid()).pw_name)
