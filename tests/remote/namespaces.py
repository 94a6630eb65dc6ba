"""Several hosts, each in a network namespace of its own behind one bridge, with its own sshd, user, home and Python."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import machines, tools
from tests.machines import Machine

NAME = "ukn"
"""What the names of namespaces and links begin with; then the process that made them, then a letter and a number."""
_MADE = re.compile(rf"{NAME}(\d+)([bnv])\d*")


def why_not() -> str:
    """Why no namespaces can be made here; empty where they can."""
    if reason := machines.why_not():
        return reason
    if reason := tools.missing("ip"):
        return reason
    probe = f"{NAME}{os.getpid() % 100000}n9"
    done = subprocess.run(["ip", "netns", "add", probe], check=False, capture_output=True, text=True)
    if done.returncode:
        return f"ip netns: {done.stderr.strip()}"
    do("ip", "netns", "del", probe)
    return ""


@contextlib.contextmanager
def fleet(folder: Path, pythons: Sequence[Path | None]) -> Iterator[tuple[Machine, ...]]:
    """As many hosts as `pythons`, `a`, `b`, `c`, each with that Python (None: the system's).

    What an earlier run that was killed has left is removed first.
    """
    sweep()
    mine = f"{NAME}{os.getpid() % 100000}"
    bridge = f"{mine}b"
    net = free_net()
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, mine)
        do("ip", "link", "add", bridge, "type", "bridge")
        do("ip", "address", "add", f"{net}.1/24", "dev", bridge)
        do("ip", "link", "set", bridge, "up")
        found = []
        for number, python in enumerate(pythons):
            space, here, there = f"{mine}n{number}", f"{mine}v{number}", f"{mine}p{number}"
            address = f"{net}.{number + 10}"
            do("ip", "netns", "add", space)
            do("ip", "link", "add", here, "type", "veth", "peer", "name", there)
            do("ip", "link", "set", here, "master", bridge, "up")
            do("ip", "link", "set", there, "netns", space)
            do("ip", "-n", space, "link", "set", there, "name", "eth0")
            do("ip", "-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            do("ip", "-n", space, "link", "set", "eth0", "up")
            do("ip", "-n", space, "link", "set", "lo", "up")
            name = "abcdefgh"[number]
            made = machines.machine(folder / name, name, address=address, within=space, python=python)
            found.append(stack.enter_context(made))
        yield tuple(found)


def sweep() -> None:
    """Remove namespaces, links and users whose process has gone without doing so."""
    shown = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    shown += subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout
    running = {int(path.name) % 100000 for path in Path("/proc").iterdir() if path.name.isdigit()}
    for number in {int(found[1]) for found in _MADE.finditer(shown)} - running:
        _remove(f"{NAME}{number}")
    for line in Path("/etc/passwd").read_text().splitlines():
        user = re.fullmatch(rf"{machines.USERS}(\d+)[a-z]+\d+", line.split(":")[0])
        if user and int(user[1]) not in running:
            machines.remove_user(user[0])


def _remove(mine: str) -> None:
    """All that bears this name; whatever runs inside, this process's own sshd, is ended first."""
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        space = line.split()[0]
        if _MADE.fullmatch(space) and space.startswith(f"{mine}n"):
            inside = subprocess.run(["ip", "netns", "pids", space], check=False, capture_output=True, text=True).stdout
            for pid in inside.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            subprocess.run(["ip", "netns", "del", space], check=False)
    subprocess.run(["ip", "link", "del", f"{mine}b"], check=False, capture_output=True)


def free_net() -> str:
    taken = subprocess.run(["ip", "-o", "-4", "address"], check=True, capture_output=True, text=True).stdout
    start = os.getpid()
    for number in range(start, start + 250):
        net = f"10.213.{number % 250}"
        if f" {net}." not in taken:
            return net
    raise RuntimeError("no free network among 10.213.*")


def do(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
