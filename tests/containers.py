"""A real container for tests: podman on a root of its own, the machine's /usr mounted read-only, and no network."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import tools

PYTHON = "/usr/bin/python3"
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64")
_FOLDERS = ("dev", "etc", "home", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var")
_LIMITS = ("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096")
"""Below what the machine allows: podman's own may be above, and is refused where raising limits is."""


@dataclass(frozen=True)
class Container:
    """A container that runs, whose first process waits for nothing. `do` and `via` run programs in it."""

    name: str
    folder: Path

    @property
    def podman(self) -> list[str]:
        """The client with the storage of this container alone."""
        places = ("--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run"))
        kinds = ("--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file")
        return ["podman", *places, *kinds]

    @property
    def via(self) -> list[str]:
        """What `via` in `[hosts.NAME]` is to be."""
        return [*self.podman, "exec", "-i", self.name]

    @property
    def root(self) -> Path:
        """The container's own root, seen from here."""
        return self.folder / "root"

    @property
    def home(self) -> Path:
        """The home in it."""
        return Path("/root")

    def sees(self, path: Path) -> Path:
        """The way from here to an absolute path there."""
        return self.root / path.relative_to("/")

    def do(self, *command: str, check: bool = True) -> str:
        """Run a command there and give its output."""
        done = subprocess.run(
            [*self.via, *command], check=check, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        return done.stdout

    def stop(self) -> None:
        """End all that runs in it."""
        subprocess.run([*self.podman, "kill", self.name], check=True, capture_output=True)


def why_not() -> str:
    """Why no container can be made here; empty where one can."""
    if os.geteuid() != 0:
        return "a container of root needs root"
    if not Path(PYTHON).exists():
        return f"not there: {PYTHON}"
    return tools.missing("podman", "runc", "conmon")


@contextlib.contextmanager
def container(name: str = "verl", mounts: Sequence[str] = (), shared_memory: str = "64m") -> Iterator[Container]:
    """Make a container. `mounts` are podman's `SOURCE:TARGET[:ro]`; `shared_memory` is the size of its /dev/shm."""
    folder = Path(tempfile.mkdtemp(prefix="uky-", dir="/tmp"))  # podman takes a runroot of 50 characters at most.
    made = Container(name, folder)
    for part in _FOLDERS:
        (made.root / part).mkdir(parents=True)
    (made.root / "tmp").chmod(0o1777)
    for part in _LINKS:
        if Path("/", part).is_symlink():
            (made.root / part).symlink_to(Path("/", part).readlink())
    (made.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (made.root / "etc/group").write_text("root:x:0:\n")
    volumes = [word for mount in ("/usr:/usr:ro", *mounts) for word in ("--volume", mount)]
    limits = [*_LIMITS, "--network", "none", "--runtime", "runc"]
    command = [
        *made.podman,
        "run",
        "--detach",
        "--name",
        name,
        "--shm-size",
        shared_memory,
        *limits,
        *volumes,
        "--rootfs",
        str(made.root),
    ]
    started = subprocess.run([*command, "sleep", "infinity"], capture_output=True, text=True, check=False)
    if started.returncode:
        raise RuntimeError(started.stderr)
    try:
        yield made
    finally:
        subprocess.run([*made.podman, "rm", "--force", "--time", "0", "--all"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
