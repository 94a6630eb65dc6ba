"""Trees that a stranger comes with: forks in git, stale or edited by hand for a year, and an installed release."""

from __future__ import annotations

import shutil
from pathlib import Path

from patcher.packages.releases import wheel
from tests.cli.test_hand_edited_fork import EDITS, SERVER, SPMD, STUBS
from tests.forks import commit, edit, git
from tests.packages.venvs import Venv

REWARD = "verl/utils/reward_score/mcq.py"
_IGNORED = "__pycache__/\n*.py[cod]\noutputs/\n/git_ignore.py\n*.parquet\n"
_PATHS = """\
from pathlib import Path

PROJECT_ROOT = Path("/workspace/verl_fork")
USER_DATA_BASE = Path("/data")
MODEL_BASE = USER_DATA_BASE / "models"
DATA_OUTPUT_DIR = USER_DATA_BASE / "sets"
QWEN_VL_3B_BASE = MODEL_BASE / "models--Qwen--Qwen2.5-VL-3B-Instruct"
DATA_OUTPUT_DIR_STR = str(DATA_OUTPUT_DIR)


def newest_snapshot(base):
    return max((base / "snapshots").iterdir(), key=lambda folder: folder.stat().st_mtime)


def validate_paths():
    return [path for path in (PROJECT_ROOT, MODEL_BASE, DATA_OUTPUT_DIR) if not path.exists()]
"""
_LEDGER = """\
# What we changed

1. vllm_async_server.py, lines 355-356: `disable_log_requests` became `enable_log_requests`
2. vllm_rollout_spmd.py, lines 44-47: the stubs folder of CUDA on LD_LIBRARY_PATH
"""
_SCORE = """\
import re


def compute_score(solution, truth):  # Uky
    found = re.findall(r"\\\\b([A-E])\\\\b", solution)  # Uky
    return float(bool(found) and found[-1] == truth)  # Uky
"""
_RUN = """\
set -x
export VLLM_ATTENTION_BACKEND=FLASH_ATTN
export VLLM_USE_V1=1
TRAIN=$(python3 -c 'from git_ignore import DATA_OUTPUT_DIR_STR as d; print(d)')/train_TINY.parquet
python3 -m verl.trainer.main_ppo data.train_files="$TRAIN" data.train_batch_size=8 actor_rollout_ref.rollout.name=vllm
"""


def released(folder: Path, version: str) -> Path:
    """A checkout of a release, as it came."""
    _files(folder, version)
    (folder / ".gitignore").write_text(_IGNORED)
    (folder / "README.md").write_text("# A fork of verl\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, f"verl {version}")
    return folder


def hand_edited(folder: Path) -> Path:
    """verl's main between 0.6.1 and 0.7.0 after a year of edits by hand, of which a few are written down."""
    released(folder, "0.6.1")
    (folder / "verl/version/version").write_text("0.7.0.dev0\n")
    commit(folder, "verl main")
    for old, new in EDITS:
        edit(folder / SERVER, lambda text, old=old, new=new: text.replace(old, new))  # type: ignore[misc]
    for file in (SERVER, SPMD):
        edit(folder / file, lambda text: text.replace("import os\n", f"import os\n{STUBS}", 1))
    edit(folder / "verl/utils/reward_score/__init__.py", lambda text: text + "\nMCQ_TOLERANCE = 0.5\n")
    for name, text in {
        REWARD: _SCORE,
        "CHANGES_uky.md": _LEDGER,
        "git_ignore.py": _PATHS,
        "run_standard.sh": _RUN,
        "scripts/serve_reward.py": "from verl.utils.reward_score import mcq\n\nprint(mcq.compute_score('A', 'A'))\n",
        "requirements.txt": "vllm==0.12.0\ntransformers==4.57.6\nray[default]>=2.41.0\n",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "sitecustomize.py").symlink_to("/workspace/verl_fork/tools/sitecustomize.py")
    commit(folder, "Our own edits")
    return folder


def installed(venv: Venv, version: str) -> Path:
    """The release in the environment's site-packages; a folder without git."""
    _files(venv.site, version)
    for name in ("tests", "scripts"):
        assert not (venv.site / name).exists()
    venv.metadata("verl", version, files={"RECORD": "verl/__init__.py,,\n", "top_level.txt": "verl\n"})
    return venv.site


def _files(folder: Path, version: str) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(wheel("verl", version) / "verl", folder / "verl", ignore=ignored, copy_function=shutil.copyfile)
