"""A small tree, with all that this tool keeps in it, beside it and in the user's home, to plant things in."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path

from tests.cli.conftest import write_records, write_tree

JOB = "20261122-101112-abcdef"
SETTINGS = """\
patches = ["own"]
symptoms = ["signs"]
[pins]
vllm = "==2.1"
[hosts.far]
ssh = "nowhere.invalid"
"""
VLLM = {
    "vllm/__init__.py": "",
    "vllm/utils/__init__.py": "class Parser: ...\ndef get_uri(host, port): ...\n",
    "vllm/engine.py": "class Engine: ...\n",
}


def make(base: Path) -> None:
    """`tree`, `home` and `outside` below `base`. Nothing in `outside` may ever be changed."""
    tree, home, outside = base / "tree", base / "home", base / "outside"
    outside.mkdir(parents=True)
    (outside / "canary").write_text("somebody's\n")
    (outside / "folder").mkdir()
    (outside / "folder/canary.pyc").write_text("somebody's\n")
    (outside / "folder/server.cpython-311.pyc").write_text("somebody's\n")
    write_tree(tree, "server")
    (tree / "uky-patch.toml").write_text(SETTINGS)
    (tree / "signs").mkdir()
    (tree / "git_ignore.py").write_text("MODEL_PATH = '/models/one'\n")
    (tree / "pyproject.toml").write_text('[project]\nname = "verl"\ndependencies = ["vllm>=2"]\n')
    (tree / "requirements.txt").write_text("vllm==2.1\n")
    (tree / "run.sh").write_text("vllm serve --port 1\n")
    (tree / "verl/__pycache__").mkdir()
    (tree / "verl/__pycache__/server.cpython-311.pyc").write_bytes(b"compiled")
    (tree / "train.log").write_text("step:1\nRuntimeError: CUDA out of memory\n")
    write_records(tree / "own")
    _job(tree)
    _home(home)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "add", "verl"], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    subprocess.run(["git", "-C", str(tree), *who, "commit", "-qm", "one"], check=True)
    for sample in (tree / ".git/hooks").iterdir():
        sample.unlink()


def renew(base: Path, pristine: Path) -> None:
    """Put the site back as it was made."""
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(pristine, base, symlinks=True)


def fingerprint(outside: Path) -> dict[str, tuple[int, bytes]]:
    """All that is in a folder: permission bits and content by path."""
    return {
        str(path.relative_to(outside)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(outside.rglob("*"))
    }


def _job(tree: Path) -> None:
    at = tree / ".uky-patch/host/jobs" / JOB
    at.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    job = {
        "id": JOB,
        "script": "run.sh",
        "argv": ["bash", "run.sh"],
        "root": str(tree),
        "user": "a",
        "machine": {"host": os.uname().nodename, "boot": boot, "space": str(Path("/proc/self/ns/pid").readlink())},
        "ordered": 1.0,
        "started": 1.0,
        "process": {"pid": 4194000, "start": 1},
        "runner": {"pid": 4194001, "start": 1},
    }
    (at / "job.json").write_text(json.dumps(job))
    (at / "end.json").write_text('{"code": 1, "ended": 3.0, "seconds": 2.0}')
    (at / "log").write_text("step:1\nRuntimeError: CUDA out of memory\n")
    (at / "times").write_text("0.1 7\n1.0 42\n")
    (at / "traces").write_text("")
    (at / "run.sh").write_text("true\n")


def _home(home: Path) -> None:
    (home / ".config/pip").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@b.invalid\n")
    (home / ".config/pip/pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/simple\ntimeout = 0.2\n")
    place = home / ".cache/uky-patch/releases/vllm/2.1/sources"
    rows = []
    for name, text in {**VLLM, "vllm-2.1.dist-info/METADATA": "Name: vllm\nVersion: 2.1\n"}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text)}\n")
    (place / "vllm-2.1.dist-info/RECORD").write_text("".join(rows))
    (home / ".cache/uky-patch/releases/vllm/versions.json").write_text('["2.1", "2.0"]')
