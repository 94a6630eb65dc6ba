"""One command of the tool that was run: what it said, how long it took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ran:
    """A command of a scene. `told` is its JSON, `log` the name under which the job's log is kept."""

    scene: str
    verl: str
    command: str
    code: int
    seconds: float
    told: Mapping[str, Any]
    log: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Tool:
    """The tool on one tree, with the interpreter that trains."""

    root: Path
    python: Path
    out: Path
    verl: str

    def run(
        self, scene: str, *arguments: str, env: Mapping[str, str] | None = None, limit: float = 400, keep: str = ""
    ) -> Ran:
        """Run a command of the tool. With `keep` its job's log, or else its errors, are kept under that name."""
        command = [sys.executable, "-m", "patcher", "--root", str(self.root), "--python", str(self.python)]
        began = time.monotonic()
        try:
            done = subprocess.run(
                [*command, "--format", "json", *arguments],
                env={**os.environ, **(env or {})},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, out, err = -1, "", f"no end within {late.timeout} s"
        told = _json(out)
        log = self._keep(keep, told, err) if keep else ""
        shown = " ".join(("uky-patch", *arguments))
        ran = Ran(scene, self.verl, shown, code, round(time.monotonic() - began, 1), told or {"said": err[-2000:]}, log)
        print(f"{scene:24} verl {self.verl}  {code:3}  {ran.seconds:6.1f} s  {shown}", flush=True)
        return ran

    def _keep(self, name: str, told: Mapping[str, Any], err: str) -> str:
        log = told.get("job", {}).get("log", "")
        text = Path(log).read_text(encoding="utf-8", errors="replace") if log and Path(log).is_file() else err
        (self.out / name).write_text(text, encoding="utf-8")
        return name


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
