"""A tree that holds programs and modules under every name that somebody might start or import; each tells if it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = (
    *("python", "python3", "python3.11", "git", "ssh", "rsync", "tmux", "py-spy", "probing", "ray", "nvidia-smi"),
    *("sh", "bash", "env", "node", "uv", "pip", "ldconfig", "gcc", "lfs", "quota", "docker", "less", "tar"),
)
MODULES = (
    *("click", "json", "tomllib", "tomli", "rich", "yaml", "git", "jinja2", "packaging", "platformdirs", "socket"),
    *("subprocess", "multiprocessing", "pickle", "site", "sitecustomize", "usercustomize", "conftest", "setup", "zlib"),
    *("unearth", "ahocorasick_rs", "ray", "torch", "vllm", "encodings", "signal", "selectors"),
)
FOLDERS = ("", "bin", ".venv/bin", "venv/bin", "conda/bin", ".conda/bin", ".tools", "verl")


class Planted:
    """The tree, and what it has had started."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "fork"
        self.fired = folder / "fired"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        version = self.root / "verl/version/version"
        version.parent.mkdir(parents=True)
        version.write_text("0.6.1\n")
        (self.root / "verl/__init__.py").write_text("")
        (self.root / "verl/rollout.py").write_text("from vllm import LLM\n")
        for place in FOLDERS:
            for name in PROGRAMS:
                self._program(self.root / place / name)
        (self.root / ".python-version").write_text("./bin/python\n")
        (self.root / "uv.toml").write_text('python-preference = "only-system"\n')
        (self.root / "train.log").write_text("ValueError: no\n")

    def with_modules(self) -> Planted:
        """What `import` would find where one stands. The programs whose names they would take are given up."""
        for name in MODULES:
            (self.root / f"{name}.py").write_text(self.telling(name))
        (self.root / "evil.pth").write_text(f"import os; os.system('echo pth >> {self.fired}')\n")
        return self

    def with_environment(self) -> Planted:
        """Environments as `venv` makes them, but with a layout that only the interpreter itself could tell."""
        for name in (".venv", "venv"):
            (self.root / name / "pyvenv.cfg").write_text(f"home = {self.root}/bin\nversion = 3.11.7\n")
        return self

    def _program(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\nprintf "%s %s\\n" "$0" "$*" >> {self.fired}\nexit 0\n')
        path.chmod(0o755)

    def telling(self, name: str) -> str:
        """The text of a module that tells that it was imported."""
        return f"with open({str(self.fired)!r}, 'a') as told:\n    told.write('{name}\\n')\n"

    def run(self, *words: str, module: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
        """uky-patch with these words, started in the tree, with a PATH as people should not have it."""
        beside = Path(sys.executable).parent
        command = [sys.executable, "-m", "patcher"] if module else [str(beside / "uky-patch")]
        kept = {name: os.environ[name] for name in ("UKY_PATCH_CACHE", "LANG") if name in os.environ}
        path = f".:bin::{self.root}/bin:./.venv/bin:{self.root}:{os.environ['PATH']}"
        return subprocess.run(
            [*command, *words],
            cwd=self.root,
            env={**kept, "PATH": path, "HOME": str(self.home), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @property
    def started(self) -> list[str]:
        return self.fired.read_text().splitlines() if self.fired.exists() else []


def real(program: str) -> str:
    found = shutil.which(program)
    assert found is not None
    return found
