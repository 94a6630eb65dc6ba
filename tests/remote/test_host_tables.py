"""`[hosts.NAME]` and the command line: strict, all mistakes at once, secrets apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.errors import RecordError, UsageError
from patcher.remote.host import HERE
from patcher.remote.slurm import Slurm
from patcher.session import config
from patcher.session.config import Config
from patcher.session.hosts import find_host
from tests.remote.hostile import REFUSED, TARGETS

WHOLE = """
[hosts.h200-3]
ssh = "me@login.example.org:2222"
path = "/data/me/my fork"
python = "/data/me/envs/verl"
data = "/data/sets"
models = "~/models"
output = "/data/out"
profile = "fast-load"
script = "examples/run.sh"
overrides = ["trainer.logger=console", "++a.api_key=${oc.env:MY_KEY}"]
secrets = ["WANDB_API_KEY", "NOT_SET_HERE"]
[hosts.h200-3.env]
NCCL_DEBUG = "INFO"
HF_TOKEN = "abc"
PROXY = "http://me:pass@proxy:80"
WANDB_API_KEY = "from the file"
[hosts.h200-3.constants]
QWEN_VL_3B_BASE = "/data/models/qwen"
"""


def loaded(folder: Path, text: str) -> Config:
    (folder / config.NAME).write_text(text)
    return config.load(folder)


def test_a_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "from here")
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    found = loaded(tmp_path, WHOLE)
    host = find_host(found, "h200-3")
    assert (host.name, host.target, host.port) == ("h200-3", "me@login.example.org", 2222)
    assert (host.path, host.python, host.models) == ("/data/me/my fork", "/data/me/envs/verl", "~/models")
    assert (host.profile, host.script) == ("fast-load", "examples/run.sh")
    assert host.constants == {"QWEN_VL_3B_BASE": "/data/models/qwen"}
    assert host.env == {"NCCL_DEBUG": "INFO"}
    assert host.secrets == {"HF_TOKEN": "abc", "PROXY": "http://me:pass@proxy:80", "WANDB_API_KEY": "from here"}
    assert host.unset == ("NOT_SET_HERE",)
    assert "abc" not in repr(host)
    assert "pass" not in repr(host)
    assert list(found.hosts) == [host.name]


def test_the_command_line_comes_first(tmp_path: Path) -> None:
    found = loaded(tmp_path, WHOLE)
    given = {"port": 99, "path": "~/other", "env": {"A": "1", "NCCL_DEBUG": "WARN"}, "overrides": ["a=1"], "data": None}
    host = find_host(found, "h200-3", **given)
    assert (host.port, host.path, host.data) == (99, "~/other", "/data/sets")
    assert host.env == {"A": "1", "NCCL_DEBUG": "WARN"}
    assert host.overrides[-1] == "a=1"
    assert len(host.overrides) == 3


def test_a_host_needs_no_table() -> None:
    host = find_host(Config(), "me@h200-3:22", path="~/verl")
    assert (host.name, host.target, host.port, host.path, host.here) == (
        "me@h200-3:22",
        "me@h200-3",
        22,
        "~/verl",
        False,
    )


def test_this_machine_has_a_name() -> None:
    assert find_host(Config(), HERE).here
    assert find_host(Config(hosts={HERE: {"data": "/d"}}), HERE).data == "/d"


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        find_host(Config(), name)
    with pytest.raises(UsageError):
        find_host(Config(), "h", ssh=name)
    with pytest.raises(RecordError):
        find_host(Config(hosts={"h": {"ssh": name}}), "h")


@pytest.mark.parametrize("path", REFUSED)
def test_hostile_paths_are_refused_before_anything_is_reached(path: str) -> None:
    with pytest.raises(UsageError):
        find_host(Config(), "h", path=path)
    with pytest.raises(RecordError):
        find_host(Config(hosts={"h": {"path": path}}), "h")


SLURM = {"scheduler": "slurm"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"port": 0}, "port: must be a whole number from 1 to 65535"),
        ({"port": True}, "port: must be"),
        ({"profile": "fast"}, "profile: 'fast' is none of: standard, debug, fast-load"),
        ({"script": "/etc/passwd"}, "script: must lie in the tree"),
        ({"script": "a/../../b"}, "script: must lie in the tree"),
        ({"env": {"A B": "1"}}, "'A B' is no name of a variable"),
        ({"env": {"A": "x\ny"}}, "no line break"),
        ({"env": {"A=$(touch canary)": "x"}}, "is no name of a variable"),
        ({"constants": {"import os": "x"}}, "is no name of a constant"),
        ({"secrets": ["A;B"]}, "'A;B' is no name of a variable"),
        ({"overrides": ["a=\x1b[2J"]}, "no line break"),
        ({"overrides": ["trainer.wandb_api_key=abc"]}, "looks like a secret"),
        ({"overrides": ["a=https://me:secret@x/"]}, "looks like a secret"),
        ({"constants": {"REPO": "https://me:secret@x/"}}, "looks like a secret"),
        ({"python": "/x\n/y"}, "no line break"),
        ({"output": "out $HOME"}, "output: must be an absolute path, or one that begins with ~/"),
        ({"data": "sets"}, "data: must be an absolute path"),
        ({"constants": {"REPO": "verl"}}, "must be an absolute path"),
        ({"pythn": "/x"}, "did you mean python?"),
        ({"scheduler": "pbs"}, "scheduler: 'pbs' is none of: slurm"),
        ({"partition": "h100"}, 'partition: goes with scheduler = "slurm"'),
        ({**SLURM, "nodes": 0}, "nodes: must be a whole number from 1 to 4096"),
        ({**SLURM, "time": "1 day"}, "'1 day' is no time limit; Slurm's own form: 30 (minutes), 4:00:00, 2-00:00:00"),
        ({**SLURM, "partition": "a b"}, "'a b' is not what Slurm takes there"),
        ({**SLURM, "sbatch": ["-p h100"]}, "'-p h100' is no option such as --qos=high"),
        ({**SLURM, "sbatch": ["--nodes=2"]}, "'--nodes=2': the key nodes says that"),
        ({**SLURM, "sbatch": ["--job-n=x"]}, "'--job-n=x': uky-patch itself gives this option"),
        ({**SLURM, "sbatch": ["--comment=https://me:secret@x/"]}, "--comment looks like a secret"),
    ],
)
def test_values_that_cannot_be_meant(given: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_host(Config(), "h", **given)
    assert told in str(caught.value)
    assert "abc" not in str(caught.value)
    assert "secret@" not in str(caught.value)
    with pytest.raises(RecordError) as listed:
        find_host(Config(hosts={"h": given}), "h")
    assert told in str(listed.value)


def test_what_its_jobs_ask_of_slurm(tmp_path: Path) -> None:
    text = """
[hosts.cluster]
scheduler = "slurm"
partition = "h100"
gres = "gpu:h100:8,nvme:1"
time = "1-00:00:00"
nodes = 2
sbatch = ["--qos=high", "--requeue", "--signal=B:USR1@60"]
"""
    asked = find_host(loaded(tmp_path, text), "cluster").slurm
    assert asked is not None
    node = ("--partition=h100", "--gres=gpu:h100:8,nvme:1")
    wanted = ("--nodes=2", "--ntasks-per-node=1", "--time=1-00:00:00", *node, "--qos=high")
    assert asked.options == (*wanted, "--requeue", "--signal=B:USR1@60")
    assert asked.check_options == (*node, "--qos=high"), "srun knows no --requeue"
    assert asked.gpus_per_node == 8
    with pytest.raises(RecordError, match="scheduler"):
        loaded(tmp_path, '[hosts.here]\nscheduler = "slurm"\n')


@pytest.mark.parametrize(
    ("gres", "sbatch", "gpus"),
    [
        ("gpu", (), 1),
        ("gpu:4", (), 4),
        ("gpu:h100:4(S:0-1)", (), 4),
        ("gpu:a:2,gpu:b:1", (), 3),
        ("nvme:3", (), None),
        (None, ("--gpus-per-node=h100:8",), 8),
        (None, (), None),
    ],
)
def test_gpus_of_each_node(gres: str | None, sbatch: tuple[str, ...], gpus: int | None) -> None:
    assert Slurm(gres=gres, sbatch=sbatch).gpus_per_node == gpus


def test_all_mistakes_of_all_hosts_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    text = '[hosts.a]\nprt = 2\n[hosts.b]\nssh = "-oX"\nenv = {A = 1}\n[hosts."x y"]\n[hosts.here]\nport = 22\n'
    with pytest.raises(RecordError) as caught:
        loaded(tmp_path, text)
    told = str(caught.value)
    assert caught.value.exit_code == 4
    for place in (":2: hosts.a.prt", ":4: hosts.b.ssh", ":5: hosts.b.env", ":6: hosts.x y", ":8: hosts.here.port"):
        assert f"{config.NAME}{place}" in told


@pytest.mark.parametrize("text", ["hosts = 1\n", "[[hosts]]\n", "[hosts]\na = 1\n"])
def test_hosts_are_tables(tmp_path: Path, text: str) -> None:
    with pytest.raises(RecordError, match="must be tables"):
        loaded(tmp_path, text)


def test_a_fork_without_hosts_does_not_pay_for_them(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / config.NAME).write_text('marker = "Uky"\n')
    program = (
        "import sys\nfrom pathlib import Path\nfrom patcher.session import config\n"
        "config.load(Path(sys.argv[1]))\nprint([name for name in sys.modules if name.startswith('patcher.remote')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
