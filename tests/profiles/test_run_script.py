"""Run scripts are run, with a Python that tells its arguments and environment: everything arrives literally."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from patcher.errors import RecordError
from patcher.profiles.agent.write_files import is_untouched
from patcher.profiles.rendered_file import Rendered
from patcher.profiles.rendering import render_all
from patcher.remote.host import HERE, Host
from patcher.remote.slurm import Slurm
from tests import tools
from tests.profiles.hosts import VERSIONS, survey

HOSTILE = [
    "plain",
    "a b",
    "it's",
    'say "hi"',
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "a\nb",
    "${HOME}",
    "\\",
    "\\'",
    "数据",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "FIND",
    "-oProxyCommand=x",
    "*",
    "~",
    "!history",
    "",
    "\u2028",
    "a\udcffb",
]

TELLER = """#!{python}
import json, os, sys
if sys.argv[1] == "-":
    os.execv(sys.executable, [sys.executable, "-"])
told = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}}
open({out!r}, "w", encoding="utf-8", errors="surrogateescape").write(json.dumps(told))
"""


@dataclass(frozen=True)
class Ran:
    command: list[str]
    environment: dict[str, str]
    folder: str

    @property
    def arguments(self) -> list[str]:
        """What the trainer is given."""
        assert self.command[:2] == ["-m", "verl.trainer.main_ppo"]
        return self.command[2:]


def write(file: Rendered, folder: Path) -> Path:
    place = folder / file.path
    place.write_bytes(file.text.encode("utf-8", "surrogateescape"))
    place.chmod(file.mode)
    return place


def teller(folder: Path) -> Path:
    python = folder / "py thon"
    python.write_text(TELLER.format(python=sys.executable, out=str(folder / "told.json")))
    python.chmod(0o755)
    return python


def run(file: Rendered, folder: Path, *arguments: str, **environment: str) -> Ran:
    """Run a script whose Python is replaced by one that tells."""
    text = file.text.replace("python=/venv/bin/python\n", f"python='{teller(folder)}'\n")
    assert text != file.text
    place = write(replace(file, text=text), folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(place), *arguments], cwd=elsewhere, env={"PATH": os.environ["PATH"], "HOME": "/nowhere", **environment},
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    told = json.loads((folder / "told.json").read_text())
    return Ran(told["arguments"], told["environment"], told["folder"])


def rendered(tmp_path: Path, host: Host, name: str = "run_debug.sh", **versions: str) -> Rendered:
    files = render_all(host, survey(root=str(tmp_path)), {**VERSIONS, **versions}, tmp_path)
    return next(file for file in files if file.path == name)


PATHS = {"MODEL_PATH": "/m", "TRAIN_FILES": "/t.parquet", "VAL_FILES": "/v.parquet"}


def test_values_of_a_profile_arrive_literally(tmp_path: Path) -> None:
    env = {f"X{index}": value for index, value in enumerate(HOSTILE)}
    overrides = tuple(f"x.k{index}={value}" for index, value in enumerate(HOSTILE))
    ran = run(rendered(tmp_path, Host(HERE, HERE, env=env, overrides=overrides)), tmp_path, **PATHS)
    assert {name: ran.environment[name] for name in env} == env
    assert [text for text in ran.arguments if text.startswith("x.k")] == list(overrides)
    assert not list(tmp_path.rglob("pwned"))


def test_arguments_of_the_script_come_last(tmp_path: Path) -> None:
    ran = run(rendered(tmp_path, Host(HERE, HERE)), tmp_path, *HOSTILE[:10], **PATHS)
    assert ran.arguments[-10:] == HOSTILE[:10]
    assert ran.folder == str(tmp_path)
    assert ran.environment["PYTHONPATH"] == str(tmp_path)


def test_setup_lines_run_first_and_not_again_in_a_job(tmp_path: Path) -> None:
    host = Host(HERE, HERE, setup=("if true; then export FROM_SETUP=yes; fi  # a comment", "unset_is_fine=$NOT_SET"))
    file = rendered(tmp_path, host)
    assert run(file, tmp_path, **PATHS).environment["FROM_SETUP"] == "yes"
    assert "FROM_SETUP" not in run(file, tmp_path, UKY_PATCH_JOB="1", **PATHS).environment
    failing = rendered(tmp_path, Host(HERE, HERE, setup=("(exit 7)",)))
    assert subprocess.run(["bash", str(write(failing, tmp_path))], capture_output=True).returncode == 7


def test_debug_settings_of_the_documents(tmp_path: Path) -> None:
    ran = run(rendered(tmp_path, Host(HERE, HERE)), tmp_path, **PATHS)
    for text in (
        "data.train_batch_size=1",
        "data.max_prompt_length=512",
        "data.max_response_length=64",
        "trainer.total_epochs=1",
        'trainer.logger=["console"]',
        "trainer.test_freq=999",
        "actor_rollout_ref.model.path=/m",
        "data.train_files=/t.parquet",
    ):
        assert text in ran.arguments
    assert ran.environment["OMP_NUM_THREADS"] == "1"


def test_a_script_for_several_nodes_of_slurm(tmp_path: Path) -> None:
    asked = Slurm(partition="h100", gres="gpu:h100:8", nodes=2, sbatch=("--comment=it's mine",))
    file = rendered(tmp_path, Host("h", "h", slurm=asked), "run_standard.sh")
    for override in ("trainer.nnodes=2", "trainer.n_gpus_per_node=8"):
        assert f"\n  {override} \\\n" in file.text
    text = file.text.replace("python=/venv/bin/python\n", f"python='{teller(tmp_path)}'\n")
    script = write(replace(file, text=text), tmp_path)
    environment = {"PATH": os.environ["PATH"], **PATHS}
    done = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "this script needs 2 nodes of Slurm, and has none: sbatch --nodes=2 " in done.stderr
    command = done.stderr.partition("none: ")[2].strip()
    assert shlex.split(command)[-4:] == ["--gres=gpu:h100:8", "--comment=it's mine", "--wrap", "./run_standard.sh"]

    alone = rendered(tmp_path, Host("h", "h", slurm=replace(asked, nodes=1)), "run_standard.sh")
    ran = run(alone, tmp_path, **PATHS)
    assert {"trainer.nnodes=1", "trainer.n_gpus_per_node=8"} <= {*ran.arguments}


def test_the_debug_run_leaves_no_checkpoint_and_the_others_save_their_last_step(tmp_path: Path) -> None:
    said = {}
    for name in ("run_debug.sh", "run_fast_load.sh", "run_standard.sh"):
        ran = run(rendered(tmp_path, Host(HERE, HERE), name), tmp_path, **PATHS)
        said[name] = [text for text in ran.arguments if text.startswith("trainer.save_freq=")]
    assert said == {
        "run_debug.sh": ["trainer.save_freq=-1"],
        "run_fast_load.sh": ["trainer.save_freq=999"],
        "run_standard.sh": ["trainer.save_freq=20"],
    }


def test_fast_load_settings_of_the_documents(tmp_path: Path) -> None:
    ran = run(rendered(tmp_path, Host(HERE, HERE), "run_fast_load.sh"), tmp_path, **PATHS)
    for text in ("load_format=safetensors", "enforce_eager=True", "gpu_memory_utilization=0.4"):
        assert f"actor_rollout_ref.rollout.{text}" in ran.arguments
    assert "data.max_prompt_length=2048" in ran.arguments
    assert "data.train_batch_size=2" in ran.arguments
    assert ran.environment["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    assert ran.environment["TOKENIZERS_PARALLELISM"] == "false"


def test_standard_settings_of_the_documents(tmp_path: Path) -> None:
    ran = run(rendered(tmp_path, Host(HERE, HERE), "run_standard.sh", vllm="0.12.0"), tmp_path, **PATHS)
    for text in ("data.train_batch_size=4", "data.max_prompt_length=10240", "data.max_response_length=512",
                 "trainer.total_epochs=20", "actor_rollout_ref.rollout.gpu_memory_utilization=0.3"):  # fmt: skip
        assert text in ran.arguments
    assert ran.environment["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"


def test_the_hosts_own_override_takes_the_place_of_ours(tmp_path: Path) -> None:
    host = Host(HERE, HERE, overrides=("++data.train_batch_size=8", "~trainer.project_name", "data.seed=1"))
    arguments = run(rendered(tmp_path, host), tmp_path, **PATHS).arguments
    assert [text for text in arguments if "train_batch_size" in text] == ["++data.train_batch_size=8"]
    assert [text for text in arguments if "project_name" in text] == ["~trainer.project_name"]
    assert "data.seed=1" in arguments


def test_model_and_data_are_found_through_git_ignore(tmp_path: Path) -> None:
    data, models = tmp_path / "da ta", tmp_path / "mo'dels"
    (models / "old").mkdir(parents=True)
    (models / "new").mkdir()
    data.mkdir()
    for name, at in (("old", 1), ("new", 2)):
        (models / name / "config.json").touch()
        os.utime(models / name, (at, at))
    (data / "train.parquet").touch()
    host = Host(HERE, HERE, data=str(data), models=str(models))
    for file in render_all(host, survey(root=str(tmp_path)), VERSIONS, tmp_path):
        write(file, tmp_path)
    (tmp_path / "sitecustomize.py").write_text("print('noise')\n")
    script = rendered(tmp_path, host)
    found = run(script, tmp_path).arguments
    assert f"actor_rollout_ref.model.path='{tmp_path}/mo\\'dels/new'" in found
    assert f"data.train_files='{data}/train.parquet'" in found
    assert f"data.val_files='{data}/train.parquet'" in found
    (data / "train_tiny.parquet").touch()
    assert f"data.train_files='{data}/train_tiny.parquet'" in run(script, tmp_path).arguments
    own = (
        (tmp_path / "git_ignore.py").read_text().replace("newest_", "other_").replace(str(models), str(models / "old"))
    )
    (tmp_path / "git_ignore.py").write_text(own)
    assert f"actor_rollout_ref.model.path='{tmp_path}/mo\\'dels/old'" in run(script, tmp_path).arguments


def test_without_a_model_it_ends_at_once_and_says_so(tmp_path: Path) -> None:
    place = write(rendered(tmp_path, Host(HERE, HERE, python=None)), tmp_path)
    place.write_text(place.read_text().replace("python=/venv/bin/python\n", f"python={sys.executable}\n"))
    done = subprocess.run([str(place)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no model" in done.stderr
    assert "MODEL_PATH" in done.stderr


def test_a_signal_reaches_python(tmp_path: Path) -> None:
    file = rendered(tmp_path, Host(HERE, HERE))
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$1" = - ] && { echo x >&3; exit 0; }\nexec sleep 30\n')
    python.chmod(0o755)
    place = write(replace(file, text=file.text.replace("/venv/bin/python", str(python))), tmp_path)
    with subprocess.Popen([str(place)], stderr=subprocess.PIPE) as job:
        for _ in range(100):
            if Path(f"/proc/{job.pid}/cmdline").read_bytes().startswith(b"sleep"):
                break
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        assert job.wait(5) == -signal.SIGTERM


@pytest.fixture(params=["run_standard.sh", "run_debug.sh", "run_fast_load.sh"])
def hard_to_quote(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A script with values that a shell would take for its own."""
    host = Host(HERE, HERE, env={"A": "it's\n\"", "B": "$x `y`"})
    return write(rendered(tmp_path, host, request.param), tmp_path)


def test_bash_takes_it(hard_to_quote: Path) -> None:
    assert subprocess.run(["bash", "-n", str(hard_to_quote)], capture_output=True).stderr == b""
    assert is_untouched(hard_to_quote.read_text())


@tools.needs("shellcheck")
def test_shellcheck_takes_it(hard_to_quote: Path) -> None:
    command = [str(tools.find("shellcheck")), "--exclude=SC2016,SC1003", str(hard_to_quote)]
    assert not subprocess.run(command, capture_output=True, text=True).stdout


SECRETS = {
    "WANDB_API_KEY": "k3y",
    "HF_TOKEN": "k3y",
    "MY_SECRET_X": "k3y",
    "DB_PASSWORD": "k3y",
    "PROXY": "http://u:k3y@host/",
}


def test_secrets_are_in_no_file(tmp_path: Path) -> None:
    host = Host(HERE, HERE, env=SECRETS, secrets={"X_API_KEY": "k3y"})
    for file in render_all(host, survey(root=str(tmp_path)), VERSIONS, tmp_path):
        assert "k3y" not in file.text
        assert "k3y" not in "".join(str(note) for note in file.notes)
        assert "export HF_TOKEN" not in file.text


@pytest.mark.parametrize(
    "host",
    [
        Host(HERE, HERE, env={"A B": "x"}),
        Host(HERE, HERE, env={"A=$(id)": "x"}),
        Host(HERE, HERE, env={"": "x"}),
        Host(HERE, HERE, env={"A": "x\0"}),
        Host(HERE, HERE, overrides=("--config-path=/x",)),
        Host(HERE, HERE, overrides=("-m",)),
        Host(HERE, HERE, overrides=("trainer",)),
        Host(HERE, HERE, overrides=("",)),
        Host(HERE, HERE, output="/${oc.env:X}"),
        Host(HERE, HERE, output="/a\nb"),
        Host(HERE, HERE, data="relative"),
        Host(HERE, HERE, data="~other/x"),
        Host(HERE, HERE, models=""),
        Host(HERE, HERE, constants={"lower": "/x"}),
        Host(HERE, HERE, constants={"X_STR": "/x"}),
        Host(HERE, HERE, constants={"X = 1\nimport os": "/x"}),
    ],
)
def test_a_profile_that_cannot_be_carried_is_refused(tmp_path: Path, host: Host) -> None:
    with pytest.raises(RecordError):
        render_all(host, survey(root=str(tmp_path)), VERSIONS, tmp_path)


@pytest.mark.parametrize("gpus", [1, 2, 3, 4, 8, 16])
def test_every_division_in_verl_comes_out_even(tmp_path: Path, gpus: int) -> None:
    files = render_all(Host(HERE, HERE), survey(root=str(tmp_path), gpus=gpus), VERSIONS, tmp_path)
    for file in files[1:]:
        said = dict(line.strip().removesuffix(" \\").partition("=")[::2] for line in file.text.splitlines())
        batch, answers = int(said["data.train_batch_size"]), int(said["actor_rollout_ref.rollout.n"])
        assert said["trainer.n_gpus_per_node"] == str(gpus)
        assert batch * answers % gpus == 0
        assert batch * answers % int(said["actor_rollout_ref.rollout.agent.num_workers"]) == 0
        assert int(said["actor_rollout_ref.actor.ppo_mini_batch_size"]) <= batch
        assert answers >= 2
        assert batch <= 2 or "debug" not in file.path


def test_names_of_hosts_stay_in_their_comment(tmp_path: Path) -> None:
    for name in ("h\ntouch pwned", "h\u2028touch pwned", "h\rtouch", "h # rendered by uky-patch @"):
        file = rendered(tmp_path, Host(name, "h"))
        (line,) = [line for line in file.text.splitlines() if "Further hydra overrides" in line]
        assert line.startswith("# For h")
        assert "\ntouch" not in file.text
        assert is_untouched(file.text)
