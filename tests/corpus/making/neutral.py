"""Takes out of a log what belongs to the machine it was made on, and what nobody needs."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

from tests.corpus.making.grounds import RELEASES
from tests.runtime.environment import interpreter


def neutral(text: str, scratch: Path, name: str) -> str:
    """The log with a neutral user's paths, host and addresses."""
    python = interpreter()
    assert python is not None
    environment = python.parents[1]
    base = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True
    )
    for old, new in (
        (f"{scratch}/runs/{name}", "/home/user/verl"),
        (f"{scratch}/trees/verl-0.8.0-cpu", "/home/user/verl-0.8.0"),
        *((f"{scratch}/trees/verl-{version}-patched", f"/home/user/verl-{version}") for version in RELEASES),
        (f"{scratch}/trees", "/home/user"),
        (f"{scratch}/overlays", "/home/user/overlay"),
        (f"{scratch}/tiny/model", "/data/models/Qwen2.5-0.5B-Instruct"),
        (f"{scratch}/tiny", "/data/gsm8k"),
        (f"{scratch}/home", "/home/user"),
        (str(scratch), "/home/user/scratch"),
        (base.stdout.strip(), "/home/user/python3.11"),
        (str(environment), "/home/user/venv"),
        (str(Path.home()) + "/", "/home/user/"),
    ):
        text = text.replace(old, new)
    host = socket.gethostname()
    text = re.sub(rf"\b{re.escape(host)}\b(?=[\]:,\s'\"]|$)", "node-1", text, flags=re.MULTILINE)
    for address in _addresses():
        text = text.replace(address, "10.0.0.5")
    text = re.sub(r"\[fd00::\w*\]|\bfd00::\w+", "10.0.0.5", text)
    text = re.sub(
        r"https?://[^\s/@]*@?[\w.-]*(?:pypi|proxy|mirror|artifactory|nexus)[\w.:-]*/\S*",
        "https://pypi.org/simple",
        text,
    )
    return re.sub(r"^Looking in indexes.*\n", "", text, flags=re.MULTILINE)


def trimmed(text: str, size: int, around: list[int]) -> str:
    """At most about `size` bytes: the first lines, the last, and those near the lines of `around`, numbered from 1."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    part = len(lines)
    while True:
        wanted = {*range(part), *range(max(0, len(lines) - part), len(lines))}
        for number in around[:3]:
            wanted |= set(range(max(0, number - part // 2), min(len(lines), number + part // 4)))
        kept = "".join(line for number, line in enumerate(lines) if number in wanted)
        if len(kept.encode()) <= size or part < 10:
            return kept
        part = part * 9 // 10


def _addresses() -> list[str]:
    told = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return [address for address in told if not address.startswith("127.")]
