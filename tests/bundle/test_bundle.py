"""A bundle holds what a report needs, says what it lacks, and no secret, wherever one stood."""

from __future__ import annotations

import gzip
import json
import os
import pwd
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run
from tests.jobs.conftest import Site
from tests.jobs.test_running import wait_for

HEX = "4f2c9a7b1e8d3056af4c9b2e7d1058c3f6a90b7e"
TOKENS = {
    "hub": "hf_CanaryCanaryCanary0123456789ab",
    "open": "sk-proj-CanaryCanaryCanaryCanary0123",
    "git": "ghp_CanaryCanaryCanaryCanaryCanary0123",
    "cloud": "AKIACANARYCANARY0123",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOiJjYW5hcnkifQ.Canary0Canary1Canary2",
    "wandb": HEX,
    "random": "Zq8Canary7Lw3Vb8ZcT1pR",
    "plain": "canary-known-by-its-variable",
    "login": "canary-of-a-url",
    "file": "canary-of-a-netrc-file",
}
"""By what gives each away: its shape, its name, or that it is known."""
WORDS = ("mallory", "trainbox-17", "10.77.66.55", "carol", "UNLISTED_NAME", "unlisted value")
LOG = f"""\
+ HF_TOKEN={TOKENS["hub"]} python3 -m verl.trainer.main_ppo trainer.api_key={TOKENS["open"]} x=/home/carol/d
wandb: Currently logged in as: mallory; wandb: login {HEX}
connecting to trainbox-17:6379 (10.77.66.55), key = {TOKENS["random"]}
https://me:{TOKENS["login"]}@proxy.example.org:3128 and {TOKENS["plain"]} and {TOKENS["cloud"]}
{TOKENS["jwt"]} {TOKENS["file"]}
-----BEGIN OPENSSH PRIVATE KEY-----
canaryprivatekeycanaryprivatekey
-----END OPENSSH PRIVATE KEY-----
Traceback (most recent call last):
  File "/home/mallory/fork/verl/x.py", line 3, in f
    check("{TOKENS["git"]}")
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing it.
"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Caller:
    def __init__(self, root: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.folder, self._capsys = root, folder, capsys

    def __call__(self, *words: str, output: str = "json") -> Done:
        archive = ["--output", str(self.folder / "b.tar.gz")]
        code = run(["--root", str(self.root), "--format", output, "bundle", *archive, *words])
        return Done(code, *self._capsys.readouterr())

    @property
    def archive(self) -> Path:
        return self.folder / "b.tar.gz"

    def unpacked(self) -> dict[str, str]:
        with tarfile.open(self.archive) as found:
            members = [member for member in found.getmembers() if member.isfile()]
            return {
                member.name.partition("/")[2]: content.read().decode()
                for member in members
                if (content := found.extractfile(member)) is not None
            }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fork, and a user whose environment and files hold what nobody should see."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    root, home = tmp_path / "fork", tmp_path / "people/mallory"
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/__init__.py").touch()
    (root / "verl/version/version").write_text("0.6.1\n")
    home.mkdir(parents=True)
    (home / ".netrc").write_text(f"machine x login mallory password {TOKENS['file']}\n")
    for name, value in {
        "HOME": str(home),
        "USER": "mallory",
        "HOSTNAME": "trainbox-17",
        "HF_TOKEN": TOKENS["hub"],
        "VLLM_API_KEY": TOKENS["open"],
        "MY_SERVICE_TOKEN": TOKENS["plain"],
        "UNLISTED_NAME": "unlisted value",
        "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"env_vars": {"UNLISTED_NAME": "unlisted value"}}),
        "NCCL_SOCKET_IFNAME": "eth0",
        "VLLM_CACHE_ROOT": str(home / "cache"),
        "MASTER_ADDR": "10.77.66.55",
    }.items():
        monkeypatch.setenv(name, value)
    host = '[hosts.far]\nssh = "mallory@trainbox-17"\n[hosts.far.env]\n'
    (root / "uky-patch.toml").write_text(f'{host}WANDB_API_KEY = "{HEX}"\nMY_KEY = "{TOKENS["random"]}"\n')
    git = ["git", "-C", str(root), "-c", "user.name=carol", "-c", "user.email=carol@corp.net"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "remote", "add", "a", f"https://mallory:{TOKENS['login']}@code.corp.net/v.git"], check=True)
    subprocess.run([*git, "remote", "add", "b", f"https://{TOKENS['git']}@github.com/mallory/verl"], check=True)
    return root


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("healthy\n" * 300 + LOG + "(RayWorker pid=2) behind\n" * 30)
    return path


@pytest.fixture
def bundle(tree: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Caller:
    return Caller(tree, folder, capsys)


def held(caller: Caller) -> list[str]:
    """What of the canaries is in the archive: in its names, its files, and the bytes as they are."""
    raw = caller.archive.read_bytes()
    whole = gzip.decompress(raw) + raw
    return [word for word in (*TOKENS.values(), "canaryprivatekey", *WORDS) if word.encode() in whole]


def test_no_secret_and_no_name_wherever_it_stood(bundle: Caller, log: Path, tmp_path: Path) -> None:
    script = tmp_path / "mallory.py"
    script.write_text(f"import os\nos.environ['WANDB_API_KEY'] = '{HEX}'\npassword = '{TOKENS['plain']}'\n")
    told = ("--script", str(script), "--tried", f"token {TOKENS['git']}", "--whole-log", "--yes")
    command = f"python3 x.py --api-key {TOKENS['random']} --root /home/carol/x"
    done = bundle(str(log), "--command", command, *told)
    assert done.code == 0, done.err
    assert held(bundle) == []
    assert done.json["replaced"]["secrets"] >= 20
    for text in (done.out, done.err):
        assert not [word for word in TOKENS.values() if word in text]
    shown = bundle(str(log), "--command", command, *told[:-1], "--dry-run", output="text")
    assert not [word for word in TOKENS.values() if word in shown.out + shown.err]
    files = bundle.unpacked()
    assert "healthy" in files["log/whole.txt"]
    assert files["log/whole.txt"].count("\n") == log.read_text().count("\n")
    variables = json.loads(files["environment.json"])[0]["variables"]
    assert variables["NCCL_SOCKET_IFNAME"] == "eth0"
    assert re.fullmatch(r"/home/user\d/cache", variables["VLLM_CACHE_ROOT"])
    assert not {"HF_TOKEN", "VLLM_API_KEY", "RAY_JOB_CONFIG_JSON_ENV_VAR"} & set(variables)
    assert json.loads(files["tree/git.json"])["remotes"]["a"].startswith("https://host")


def test_what_was_announced_is_what_is_there(bundle: Caller, log: Path) -> None:
    dry = bundle(str(log), "--dry-run")
    assert (dry.code, bundle.archive.exists(), dry.json["written"]) == (1, False, False)
    done = bundle(str(log), "--yes")
    assert (done.code, done.json["bytes"]) == (0, bundle.archive.stat().st_size)
    announced = {file["name"]: file["bytes"] for file in done.json["files"]}
    assert announced == {name: len(text.encode()) for name, text in bundle.unpacked().items()}
    assert set(announced) == {file["name"] for file in dry.json["files"]}
    with tarfile.open(bundle.archive) as found:
        assert {member.name.split("/")[0] for member in found.getmembers()} == {done.json["folder"]}
    assert done.json["root"] == "vllm-no-kv-cache-memory"


def test_it_is_not_written_unless_somebody_agrees(bundle: Caller, log: Path) -> None:
    done = bundle(str(log), output="text")
    assert (done.code, bundle.archive.exists()) == (1, False)
    assert "log/tail.txt" in done.out
    assert "--yes" in done.err
    bundle.archive.write_text("mine")
    assert bundle(str(log), "--yes").code == 2
    assert bundle.archive.read_text() == "mine"


def test_the_seven_points_and_what_is_missing(bundle: Caller, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert bundle(str(log), "--tried", "less memory", "--yes").code == 0
    files = bundle.unpacked()
    report = files["REPORT.md"]
    for number, point in enumerate(
        (
            "Hardware",
            "Software",
            "Command",
            "Log",
            "Environment variables",
            "Script that reproduces it",
            "What was tried",
        ),
        1,
    ):
        assert f"## {number}. {point}\n" in report
    assert "python3 -m verl.trainer.main_ppo" in report
    assert "Traceback (most recent call last):" in report
    assert "ValueError: No available memory" in report
    assert "- less memory" in report
    assert "**missing: a minimal script that reproduces it** (Add one with --script FILE.)" in report
    assert "## 1. 硬件\n" in files["REPORT.zh-CN.md"]
    assert "还缺" in files["REPORT.zh-CN.md"]


def test_names_stay_where_they_are_wanted(bundle: Caller, log: Path) -> None:
    assert bundle(str(log), "--keep-names", "--yes").code == 0
    assert set(held(bundle)) == {"mallory", "trainbox-17", "10.77.66.55", "carol"}


def test_who_writes_the_log_tells_the_command_and_its_variables(bundle: Caller, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    program = "import os, sys, time; print('on', flush=True); time.sleep(60)"
    command = f'{sys.executable} -c "{program}" --lr 1 2>&1 | tee {log}'
    running = subprocess.Popen(
        ["bash", "-c", command],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "NCCL_DEBUG": "WARN", "MY_OWN_TOKEN": "canary-of-the-run"},
    )
    try:
        wait_for(lambda: log.exists() and "on" in log.read_text())
        log.write_text("on\nsaid canary-of-the-run\n")
        assert bundle(str(log), "--yes").code == 0
        files = bundle.unpacked()
        assert "--lr 1" in files["REPORT.md"]
        assert json.loads(files["environment.json"])[0]["variables"]["NCCL_DEBUG"] == "WARN"
        assert "canary-of-the-run" not in "".join(files.values())
    finally:
        os.killpg(running.pid, 9)
        running.wait()


def test_of_a_job_here(here: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    caller = Caller(here.root, folder, capsys)
    job = here.start(f"export HF_TOKEN={TOKENS['hub']}\necho begun; echo 'KeyError: x'; exit 1", arguments=("a.b=1",))
    here.follow(job)
    done = caller("--yes")
    assert done.code == 0, done.err
    files = caller.unpacked()
    assert json.loads(files["job.json"])["id"] == job.id
    assert "a.b=1" in files["REPORT.md"]
    assert "HF_TOKEN=***" in files["script/run.sh"]
    assert json.loads(files["environment.json"])[0]["whose"] == "start"
    assert held(caller) == []
    by_log = caller(job.folder + "/log", "--dry-run")
    assert "job.json" in {file["name"] for file in by_log.json["files"]}


def test_how_a_job_ended_is_in_the_report(here: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    caller = Caller(here.root, folder, capsys)
    here.follow(here.start("for n in 1 2 3; do echo step:$n - actor/loss:0.1; done; kill -SEGV $$"))
    assert caller("--yes").code == 0
    files = caller.unpacked()
    assert json.loads(files["diagnosis.json"])["verdict"] == "failed"
    head, _, rest = files["REPORT.md"].partition("## 4. Log")
    assert "(`segmentation-fault`)" in head
    assert "ended by SIGSEGV" in head
    assert "Its last lines:\n\n````text\nstep:1 - actor/loss:0.1\nstep:2" in rest
    assert "log/root.txt" not in files
    caller.archive.unlink()
    here.follow(here.start("echo step:1 - actor/loss:0.1; exit 1"))
    assert caller("--yes").code == 0
    report = caller.unpacked()["REPORT.md"]
    assert "The log's verdict is failed." in report
    assert "ended with exit code 1" in report


def test_of_a_job_that_runs_on_another_host(there: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / there.root.name / "verl").mkdir(parents=True)
    (folder / there.root.name / "verl/__init__.py").touch()
    caller = Caller(folder / there.root.name, folder, capsys)
    job = there.start(
        "export NCCL_DEBUG=INFO MY_TOKEN=canary-of-the-run\nbash -c 'echo said $MY_TOKEN; sleep 60; true'"
    )
    wait_for(lambda: "canary" in there.root.joinpath(".uky-patch/host/jobs", job.id, "log").read_text())
    done = caller("loop", "--path", str(there.root), "--yes")
    assert done.code == 0, done.err
    files = caller.unpacked()
    assert "said ***" in files["log/tail.txt"]
    assert "NCCL_DEBUG" in files["environment.json"]
    assert {"machine.json", "job.json", "processes.json"} <= set(files)
    whole = "".join(files.values())
    user = pwd.getpwuid(there.owner[0]).pw_name
    assert [word for word in ("canary-of-the-run", user) if word in whole] == []
    assert caller("loop", "--job", "none", "--path", str(there.root), "--dry-run").code == 2


def test_mistakes(bundle: Caller, log: Path, tmp_path: Path) -> None:
    assert bundle("./nowhere.log").code == 2
    assert bundle(str(log), "--script", str(tmp_path / "none.py")).code == 2
    assert bundle(str(log), "--job", "x").code == 2
    assert bundle(str(log), "--output", str(tmp_path / "no/where.tar.gz"), "--yes").code == 2


@pytest.mark.hosts
def test_a_log_that_is_larger_than_what_may_be_held(tree: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    line = (
        b"INFO 11-20 10:00:%02d loggers.py:123] Engine 000: Avg prompt throughput: 12.5, Running: 3 reqs, Waiting: 0\n"
    )
    block = b"".join(line % (number % 60) for number in range(20_000))
    with log.open("wb") as stream:
        while stream.tell() < 400 << 20:
            stream.write(block)
        stream.write(b"KeyError: 'raw_prompt'\n")
    program = (
        "import resource, sys\nfrom patcher.cli.app import run\n"
        "code = run(sys.argv[1:])\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)\nsys.exit(code)"
    )
    archive = tmp_path / "b.tar.gz"
    words = ["--root", str(tree), "bundle", str(log), "--yes", "--output", str(archive)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    log.unlink()
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < 250
    assert archive.stat().st_size < 1 << 20
