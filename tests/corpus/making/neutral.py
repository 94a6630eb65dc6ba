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
        "https://index.example.org/simple",
        text,
    )
    return re.sub(r"^Looking in indexes.*\n", "", text, flags=re.MULTILINE)


_DULL = re.compile(
    r"(?:\x1b\[\d+m)?\((?:TaskRunner\w*|vLLMHttpServer|pid=\d+)[^)]*\)(?:\x1b\[0m)? +['{\[\]}\"-]|\s+\S+: \S+$|.*Route: /"
)
"""A configuration or a table that is printed whole."""
_DULL_KEPT = 60
"""Lines of it that stay."""


def trimmed(text: str, size: int, around: list[int]) -> str:
    """At most about `size` bytes: less of what is printed whole, then less of what is far from both ends and `around`."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if len(text.encode()) <= size:
        return text
    near = {number + shift for number in around[:3] for shift in range(-12, 6)}
    dull = [number for number, line in enumerate(lines) if _DULL.match(line) and number + 1 not in near]
    left = [number for number in range(len(lines)) if number not in set(dull[_DULL_KEPT:-10])]
    part = len(left)
    while True:
        wanted = {*left[:part], *left[-part:]}
        for number in around[:3]:
            wanted |= {each for each in left if number - part // 2 <= each + 1 <= number + part // 4}
        wanted |= {number for number in left if _TELLING.search(lines[number])}
        kept = "".join(lines[number] for number in sorted(wanted))
        if len(kept.encode()) <= size or part < 10:
            return kept
        part = part * 9 // 10


_TELLING = re.compile(
    r"Training from scratch|Total training steps|dataset len|Using dataset class|step:\d+ - |Training Progress|"
    r"Started a local Ray|Loading safetensors|Application startup complete"
)
"""Lines that say how far a run has come."""


def _addresses() -> list[str]:
    told = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return [address for address in told if not address.startswith("127.")]
