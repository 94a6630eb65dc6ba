"""A fork as forks are after a year of hand edits: verl 0.6.1's files, a development version, marks of both cases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run
from patcher.packages.releases import wheel

pytestmark = [pytest.mark.network, pytest.mark.slow]

SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
SPMD = "verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py"
STUBS = """\
# Uky: make the linker find libcuda before any vLLM import
stubs = "/usr/local/cuda/lib64/stubs"
if os.path.exists(stubs):
    os.environ["LD_LIBRARY_PATH"] = f"{stubs}:{os.environ.get('LD_LIBRARY_PATH', '')}"
"""
EDITS = (
    (
        "            disable_log_requests=engine_args.disable_log_requests,\n",
        "            # disable_log_requests=engine_args.disable_log_requests, # Uky\n"
        "            enable_log_requests=engine_args.enable_log_requests, # Uky\n",
    ),
    (
        "from vllm.utils import FlexibleArgumentParser, get_tcp_uri\n",
        "try:\n    from vllm.utils import FlexibleArgumentParser\nexcept ImportError:\n"
        "    from vllm.utils.argparse_utils import FlexibleArgumentParser\nfrom vllm.v1.utils import get_tcp_uri\n",
    ),
    (
        "await init_app_state(engine_client, vllm_config, app.state, args)",
        "await init_app_state(engine_client, app.state, args)  # uky",
    ),
)


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    root = tmp_path / "fork"
    shutil.copytree(wheel("verl", "0.6.1") / "verl", root / "verl")
    (root / "verl/version/version").write_text("0.7.0.dev0\n")
    server = (root / SERVER).read_text()
    for old, new in EDITS:
        assert server.count(old) == 1
        server = server.replace(old, new)
    (root / SERVER).write_text(server)
    spmd = (root / SPMD).read_text()
    (root / SPMD).write_text(spmd.replace("import os\n", f"import os\n{STUBS}", 1))
    (root / "verl/utils/reward_score/mcq.py").write_text("PATTERN = r'[A-E]'  # Uky\n")
    return root


def call(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> tuple[int, Any]:
    shared = ["--root", str(root), "--assume", "vllm==0.12.0", "--assume", "transformers==4.57.6", "--format", "json"]
    code = run([*shared, *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_what_was_done_by_hand_is_seen_and_what_was_forgotten_is_made(
    fork: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in fork.rglob("*.py")}
    code, report = call(capsys, fork, "status")
    outcomes = {record["id"]: record["outcome"] for record in report["records"]}
    assert code == 1
    by_hand = ("vllm-log-requests", "vllm-utils-split", "vllm-app-state-signature")
    assert [outcomes[name] for name in by_hand] == ["adopted"] * 3
    assert outcomes["vllm-executor-futures"] == "pending"
    assert not set(outcomes.values()) & {"drifted", "ambiguous", "conflict", "missing-file"}
    assert {mark["file"] for mark in report["unrecorded"]} == {SPMD, "verl/utils/reward_score/mcq.py"}
    assert call(capsys, fork, "apply")[0] == 0
    assert (fork / SERVER).read_text().count("enable_log_requests=") == 1
    code, after = call(capsys, fork, "status")
    assert code == 0
    marks = {
        (mark["file"], (fork / mark["file"]).read_text().splitlines()[mark["line"] - 1]) for mark in after["unrecorded"]
    }
    assert marks == {(SPMD, STUBS.splitlines()[0]), ("verl/utils/reward_score/mcq.py", "PATTERN = r'[A-E]'  # Uky")}
    assert call(capsys, fork, "revert")[0] == 0
    assert {path: path.read_bytes() for path in fork.rglob("*.py")} == before
