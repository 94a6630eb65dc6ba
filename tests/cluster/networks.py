"""The bridge of a cluster, network namespaces on it, and what killed runs have left of them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.processes import MARK, end
from tests.remote import namespaces


@contextlib.contextmanager
def bridge(net: str) -> Iterator[None]:
    """A bridge with the first address of `net`."""
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["ip", "link", "del", _bridge()], check=False)
        namespaces.do("ip", "link", "add", _bridge(), "type", "bridge")
        namespaces.do("ip", "address", "add", f"{net}.1/24", "dev", _bridge())
        namespaces.do("ip", "link", "set", _bridge(), "up")
        yield


def _bridge() -> str:
    return f"ukc{os.getpid() % 100000}b"


@contextlib.contextmanager
def space(number: int, address: str) -> Iterator[str]:
    """A network namespace with that address, on the cluster's bridge."""
    stem = f"ukc{os.getpid() % 100000}"
    name, here, there = f"{stem}n{number}", f"{stem}v{number}", f"{stem}p{number}"
    with contextlib.ExitStack() as stack:
        namespaces.do("ip", "netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        namespaces.do("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        stack.callback(subprocess.run, ["ip", "link", "del", here], check=False, capture_output=True)
        namespaces.do("ip", "link", "set", here, "master", _bridge(), "up")
        namespaces.do("ip", "link", "set", there, "netns", name)
        namespaces.do("ip", "-n", name, "link", "set", there, "name", "eth0")
        namespaces.do("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        namespaces.do("ip", "-n", name, "link", "set", "eth0", "up")
        namespaces.do("ip", "-n", name, "link", "set", "lo", "up")
        yield name


def sweep() -> None:
    """End what earlier runs have left that were killed."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                for item in (path / "environ").read_bytes().split(b"\0"):
                    name, _, value = item.decode("utf-8", "replace").partition("=")
                    if name == MARK and not Path("/proc", value.partition("-")[0]).exists():
                        end(**{MARK: value})
    running = {int(path.name) % 100000 for path in Path("/proc").iterdir() if path.name.isdigit()}
    for kind, listed in (("netns", ("ip", "netns", "list")), ("link", ("ip", "-o", "link"))):
        shown = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
        for name, number in set(re.findall(r"\b(ukc(\d+)[bnv]\d*)", shown)):
            if int(number) not in running:
                subprocess.run(["ip", kind, "del", name], check=False, capture_output=True)
    for folder in Path("/tmp").glob("uky-cluster-*"):
        if not Path("/proc", folder.name.rpartition("-")[2]).exists():
            shutil.rmtree(folder, ignore_errors=True)
