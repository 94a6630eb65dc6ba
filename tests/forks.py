"""A fork of verl as people have one: a checkout with history, hand edits, ignored files, and things that lie about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from patcher.packages.releases import sources

IGNORED = (
    "**/*.pt **/checkpoints **/*.ckpt **/outputs **/*.tar.gz **/wandb __pycache__/ *.py[cod] dataset/* env/ build/ "
    "*.egg-info/ .cache *.log .env venv/ .venv/ .idea/ .vscode *.lock *.parquet logs log outputs *.err *.out models/*"
)
"""Patterns of verl's own .gitignore. `dataset/*` and `models/*` mean the root's folders to git, and any to rsync."""
OWN = "/git_ignore.py /.uky-patch/ /.uky-patch-kept/"
"""What the fork adds to them."""
UNICODE = "notes/über das Training 训练 – 1.txt"
SPACES = "notes/two words.txt"
SECRET = "sk-not-to-be-seen-4711"
"""In an ignored file; it must never get to a host."""

_SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
_KEPT = (
    "verl/__init__.py",
    "verl/version",
    "verl/utils/dataset",
    "verl/models/__init__.py",
    "verl/models/registry.py",
    "verl/models/transformers/qwen2.py",
    "verl/utils/__init__.py",
    "verl/utils/npu_utils.py",
    "verl/utils/vllm",
    "verl/utils/reward_score/__init__.py",
    "verl/workers/rollout/vllm_rollout",
    "verl/trainer/__init__.py",
    "verl/trainer/main_ppo.py",
)


def fork(folder: Path, *, small: bool = False) -> Path:
    """Make the checkout at `folder`, on verl 0.6.1 with 0.6.0 before it. `small`: a part of verl that is soon sent.

    Fetches the releases.
    """
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    _text(folder / ".gitignore", "\n".join(f"{IGNORED} {OWN}".split()) + "\n")
    _text(folder / "README.md", "# A fork of verl\n")
    for version in ("0.6.0", "0.6.1"):
        shutil.rmtree(folder / "verl", ignore_errors=True)
        _release(folder, version, small=small)
        commit(folder, f"verl {version}")
    _edited(folder)
    commit(folder, "Our own edits")
    _lying_about(folder)
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git there as somebody, at one and the same time, with no configuration but its own."""
    somebody = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        somebody |= {f"GIT_{role}_NAME": "somebody", f"GIT_{role}_EMAIL": "somebody@example.org"}
        somebody |= {f"GIT_{role}_DATE": "2025-12-01T12:00:00Z"}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env={**os.environ, **somebody}
    )
    return done.stdout


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)


def listed(folder: Path) -> list[str]:
    """The files that git has or would take, as git lists them; symlinks out of the tree and deleted files too."""
    return [name for name in git(folder, "ls-files", "-co", "--exclude-standard", "-z").split("\0") if name]


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Change a file's text; it must change."""
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before, path
    path.write_text(after, encoding="utf-8")


def _release(folder: Path, version: str, *, small: bool) -> None:
    found = sources("verl", version)
    left_out = shutil.ignore_patterns("__pycache__", "*.pyc")
    if not small:
        shutil.copytree(found / "verl", folder / "verl", ignore=left_out, copy_function=shutil.copyfile)
        return
    for name in sorted({*_KEPT, *_named_by_records()}):
        if (found / name).is_dir():
            shutil.copytree(found / name, folder / name, ignore=left_out, copy_function=shutil.copyfile)
        elif (found / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found / name, folder / name)


def _named_by_records() -> set[str]:
    patches = Path(__file__).parent.parent / "patches"
    named = re.compile(r'^file = "(.+)"', re.MULTILINE)
    return {name for file in patches.glob("*.toml") for name in named.findall(file.read_text())}


def _edited(folder: Path) -> None:
    """Marked and unmarked edits, in both cases of the marker, and files of the fork's own."""
    edit(
        folder / _SERVER,
        lambda text: (
            text.replace(
                "await init_app_state(engine_client, vllm_config, app.state, args)",
                "await init_app_state(engine_client, app.state, args)  # uky",
            )
            + "\n# Uky: the block above was looked at on the new cluster\n"
        ),
    )
    edit(folder / "verl/utils/dataset/rl_dataset.py", lambda text: text + "\nUKY_TRIED = True  # Uky\n")
    edit(folder / "verl/utils/reward_score/__init__.py", lambda text: text + "\nMCQ_TOLERANCE = 0.5\n")
    _text(folder / "git_ignore.py.example", "PROJECT_ROOT = None\nUSER_DATA_BASE = None\n")
    _text(folder / "requirements-fork.txt", "vllm==0.12.0\n")
    _text(folder / "scripts/serve reward.sh", "#!/bin/sh\nexec python3 -m http.server\n").chmod(0o755)
    _text(folder / SPACES, "a name with a space\n")
    _text(folder / UNICODE, "ein Name mit Umlaut\n")
    (folder / "sitecustomize.py").symlink_to("/opt/somewhere/else/sitecustomize.py")
    (folder / "latest-notes").symlink_to("notes/two words.txt")


def _lying_about(folder: Path) -> None:
    """What git ignores, and one new file that it does not."""
    for name, size in {
        "outputs/2025-12-01/main.log": 2_000,
        "checkpoints/step_10/model.pt": 300_000,
        "wandb/run-1/run.wandb": 10_000,
        "train.log": 5_000,
        "data.parquet": 50_000,
        "models/qwen/weights.bin": 200_000,
        "dataset/raw.json": 10_000,
        "verl/__pycache__/__init__.cpython-311.pyc": 100,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * size)
    _text(folder / ".env", f"WANDB_API_KEY={SECRET}\n")
    _text(folder / "git_ignore.py", "PROJECT_ROOT = '/this/machine'\n")
    _text(folder / "verl/utils/dataset/new_loader.py", "NEW = True\n")


def _text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
