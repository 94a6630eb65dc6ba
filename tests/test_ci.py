"""The hooks for pre-commit, and the action for GitHub: valid by their own schemas, and run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import write_tree

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_they_are_valid() -> None:
    schema = ["--builtin-schema", "vendor.github-actions"]
    subprocess.run([sys.executable, "-m", "check_jsonschema", *schema, str(ROOT / "action.yml")], check=True)
    hooks = str(ROOT / ".pre-commit-hooks.yaml")
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", hooks], check=True)


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """A fork in a folder of its repository, and a vLLM that lacks what it imports."""
    write_tree(tmp_path / "work/fork", "server")
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    (tmp_path / "vllm/vllm/utils").mkdir(parents=True)
    (tmp_path / "vllm/vllm/__init__.py").write_text('__version__ = "2.1"\n')
    (tmp_path / "vllm/vllm/utils/__init__.py").write_text("class Parser: ...\n")
    return tmp_path / "work"


def run_steps(work: Path, inputs: dict[str, str]) -> tuple[dict[str, str], str, int]:
    """The action's own steps, but for the installation: what they put out, what they print, and the last exit code."""
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    temp = work.parent / "temp"
    temp.mkdir()
    outputs: dict[str, str] = {}
    printed = ""
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install":
            continue
        if "if" in step and outputs["code"] != step["if"].split("'")[1]:
            continue
        env = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(temp),
            "GITHUB_OUTPUT": str(temp / "output"),
            "GITHUB_STEP_SUMMARY": str(temp / "summary"),
            "LC_ALL": "C.UTF-8",
        }
        for name, value in step.get("env", {}).items():
            kind, _, key = value.strip("${} ").rpartition(".")
            env[name] = given[key] if kind == "inputs" else outputs[key]
        shell = (
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
            if step["shell"] == "bash"
            else [sys.executable, "-c"]
        )
        done = subprocess.run([*shell, step["run"]], cwd=work, env=env, capture_output=True, text=True, check=False)
        printed += done.stdout + done.stderr
        outputs = dict(line.split("=", 1) for line in (temp / "output").read_text().splitlines())
    return outputs, printed, done.returncode


def test_the_action_annotates_the_lines_of_findings_and_fails(fork: Path) -> None:
    outputs, printed, code = run_steps(fork, {"against": f"vllm={fork.parent / 'vllm'}", "root": "fork"})
    assert code == 1
    assert "::warning file=fork/verl/server.py,line=3,title=uky-patch symbol-removed::vllm.utils.get_uri" in printed
    assert "get_uri" in (fork.parent / "temp/summary").read_text()
    assert Path(outputs["sarif"]).is_file()


def test_the_action_passes_where_nothing_is_found_and_tells_a_mistake(fork: Path) -> None:
    (fork.parent / "vllm/vllm/utils/__init__.py").write_text("class Parser: ...\ndef get_uri(host, port): ...\n")
    _, printed, code = run_steps(fork, {"against": f"vllm={fork.parent / 'vllm'}", "root": "fork"})
    assert (code, "::" in printed) == (0, False)
    (fork.parent / "temp").rename(fork.parent / "first")
    _, printed, code = run_steps(fork, {"against": "vllm>=1", "root": "fork"})
    assert (code, "vllm>=1" in printed) == (2, True)


@pytest.mark.slow
@pytest.mark.network
def test_the_hooks_run_as_pre_commit_installs_them(tmp_path: Path) -> None:
    fork = write_tree(tmp_path / "fork", "server")
    (fork / "verl/version/version").write_text("0.7.0\n")  # Of one that the records were tried on.
    env = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=fork, check=True)
    (fork / ".pre-commit-config.yaml").write_text(
        yaml.safe_dump(
            {
                "repos": [
                    {
                        "repo": str(ROOT),
                        "rev": subprocess.run(
                            ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
                        ).stdout.strip(),
                        "hooks": [{"id": "uky-patch-verify", "args": ["--assume", "vllm==0.9.2"]}],
                    }
                ]
            }
        )
    )
    run = ["pre-commit", "run", "--all-files"]
    lacking = subprocess.run(run, cwd=fork, env=env, capture_output=True, text=True, check=False)
    assert (lacking.returncode, "record flash-attn-padding" in lacking.stdout) == (1, True), lacking.stdout
    (fork / "uky-patch.toml").write_text(
        'disable = ["flash-attn-padding", "image-bytes-decoded", "valuehead-attn-implementation"]\n'
    )
    done = subprocess.run(run, cwd=fork, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "records hold" in done.stdout


WEEKLY = [
    text
    for name in ("ci.md", "ci.zh-CN.md")
    for text in re.findall(
        r"^```yaml\n(.*?)^```$", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    if "schedule:" in text
]
GH = """#!/bin/sh
echo "$*" >>"$CALLS"
[ "$2" = list ] && cat "$OPEN"
exit 0
"""


def test_the_weekly_workflow_is_valid_and_the_same_in_both_languages(tmp_path: Path) -> None:
    assert len(WEEKLY) == 2
    assert WEEKLY[0] == WEEKLY[1]
    (tmp_path / "newest.yml").write_text(WEEKLY[0])
    schema = ["--builtin-schema", "vendor.github-workflows"]
    subprocess.run([sys.executable, "-m", "check_jsonschema", *schema, str(tmp_path / "newest.yml")], check=True)


@pytest.mark.parametrize(
    ("code", "open_", "said"),
    [(0, "", ["list"]), (1, "", ["list", "create"]), (1, "7\n", ["list", "edit 7"]), (5, "", [])],
    ids=["nothing breaks", "first", "again", "no index"],
)
def test_the_weekly_workflow_keeps_one_issue(tmp_path: Path, code: int, open_: str, said: list[str]) -> None:
    programs = {
        "gh": GH,
        "python": "#!/bin/sh\n",
        "uky-patch": f"#!/bin/sh\n[ {code} -gt 1 ] || echo report >newest.md\nexit {code}\n",
    }
    for name, text in programs.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "open").write_text(open_)
    calls, summary = tmp_path / "calls", tmp_path / "summary"
    calls.touch()
    step = next(one for one in yaml.safe_load(WEEKLY[0])["jobs"]["newest"]["steps"] if one.get("name") == "Compare")
    env = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "CALLS": str(calls),
        "OPEN": str(tmp_path / "open"),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=env, check=False)
    assert (done.returncode == 0) is (code <= 1)
    made = [line.split(" ", 1)[1] for line in calls.read_text().splitlines()]
    assert [one.startswith(words) for one, words in zip(made, said, strict=True)] == [True] * len(said)
    assert summary.is_file() is (code <= 1)
