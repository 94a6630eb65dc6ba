"""The tool as it travels: one archive that is all that a node needs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from patcher.cluster import worker
from patcher.cluster.cargo import LIBRARIES, packed
from tests.cluster.conftest import bytes_of, plain_tree, records_for_it
from tests.cluster.processes import marked, wait_for


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return records_for_it(tmp_path / "records")


def test_the_same_tool_is_the_same_bytes(records: Path) -> None:
    assert packed([records]) == packed([records])


def test_it_holds_the_tool_its_records_and_what_an_apply_needs(records: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(packed([records]))) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} - {*LIBRARIES} == {"patcher", "own-patches"}
    assert "own-patches/0/log-flag.toml" in names
    assert "patcher/data/patches/vllm-utils-split.toml" in names
    assert {Path(name).suffix for name in names} == {".py", ".toml"}


def answer(cargo: bytes, ask: dict[str, object], folder: Path) -> dict[str, object]:
    """What a bare interpreter, without any package of its own, says with nothing but the archive."""
    with zipfile.ZipFile(io.BytesIO(cargo)) as archive:
        archive.extractall(folder)
    program = f"import sys; sys.path.insert(0, {str(folder)!r}); from patcher.cluster.node import main; main()"
    asked = {"allow_dirty": False, "merge": False, "level": "markers", "ids": [], "tags": [], "imported": None}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        input=json.dumps({**asked, "limit": 30, "assume": {"vllm": "2.1"}, **ask}),
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_bare_interpreter_applies_with_it_as_this_one_does(records: Path, tmp_path: Path) -> None:
    from patcher.cli.app import run

    here, there = plain_tree(tmp_path / "here"), plain_tree(tmp_path / "there")
    assert run(["--root", str(here), "--patches", str(records), "--assume", "vllm==2.1", "apply"]) == 0
    told = answer(packed([records]), {"verb": "apply", "root": str(there)}, tmp_path / "unpacked")
    assert told["round"] == {
        "failed": {},
        "would_change": ["verl/server.py", "verl/worker.py"],
        "written": ["verl/server.py", "verl/worker.py"],
    }
    assert bytes_of(there) == bytes_of(here) != bytes_of(plain_tree(tmp_path / "plain"))


def test_without_a_tree_it_says_so_and_tells_of_the_machine(tmp_path: Path) -> None:
    told = answer(packed(), {"verb": "look", "root": None}, tmp_path / "unpacked")
    assert told["error"]["title"]["template"] == "no tree was named, and a worker finds no verl"  # type: ignore[index]
    assert told["hostname"]
    assert "identity" not in told


ASK = {"verb": "look", "root": None, "assume": {}, "ids": (), "tags": (), "level": "markers"}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def test_what_a_worker_runs_leaves_nothing(scratch: Path) -> None:
    told = worker.work(packed(), ASK, 60.0)
    assert told["python"]["executable"] == sys.executable
    assert not list(scratch.iterdir())


def test_a_program_that_does_not_end_is_ended(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something at the start of every Python there, as a site's own start-up file may be, hangs."""
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert worker.work(packed(), ASK, 1.0)["crashed"] == "ended by signal 9"
    assert not list(scratch.iterdir())


def test_what_a_site_prints_at_the_start_is_no_part_of_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('{welcome}', end='')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "error" in worker.work(packed(), ASK, 60.0)


def test_an_old_python_cannot_run_it_and_says_which_it_is(other_python: Path | None, tmp_path: Path) -> None:
    if other_python is None:
        pytest.skip("no other Python here")
    (tmp_path / "cargo.zip").write_bytes(packed())
    program = (
        f"import json, runpy; found = runpy.run_path({worker.__file__!r}); "
        f"cargo = open({str(tmp_path / 'cargo.zip')!r}, 'rb').read(); "
        f"print(json.dumps(found['work'](cargo, {ASK!r}, 60.0)))"
    )
    done = subprocess.run([other_python, "-c", program], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    version = tuple(map(int, (told["python"]["version"] if "error" in told else told["python"]).split(".")[:2]))
    assert ("crashed" in told) == (version < (3, 10))


def test_gpus_are_as_the_worker_was_started_with_and_not_as_ray_hides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        f"import os, runpy; found = runpy.run_path({worker.__file__!r}); "
        "os.environ['CUDA_VISIBLE_DEVICES'] = ''; os.environ['HIP_VISIBLE_DEVICES'] = ''; os.environ['MORE'] = '1'; "
        "now = found['environment'](); "
        "print(now.get('CUDA_VISIBLE_DEVICES'), now.get('HIP_VISIBLE_DEVICES'), now['MORE'])"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2,3", "None", "1"]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_a_worker_that_is_killed_leaves_nothing(scratch: Path, tmp_path: Path, seconds: float) -> None:
    """Whether it is asked to end early, while the tool is unpacked, or while it runs."""
    (tmp_path / "cargo.zip").write_bytes(packed())
    program = (
        f"from patcher.cluster import worker; cargo = open({str(tmp_path / 'cargo.zip')!r}, 'rb').read(); "
        f"print('ready', flush=True); worker.work(cargo, {ASK!r}, 60.0)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.kill()
    wait_for(lambda: not marked(TMPDIR=str(scratch)), "the end of what it has begun")
    assert not list(scratch.iterdir())


def test_a_guard_whose_worker_ended_before_it_sent_the_whole_tool_makes_no_folder(scratch: Path) -> None:
    done = guarded("print('not to be seen')", b"half", size=8)
    assert (done.stdout, done.stderr) == (b"", b"the worker has ended\n")
    assert not list(scratch.iterdir())


def test_the_guard_ends_a_program_in_time_and_removes_its_folder_without_a_worker(scratch: Path) -> None:
    done = guarded("import time; time.sleep(600)", packed())
    assert done.stderr == b"ended by signal 9\n"
    assert not list(scratch.iterdir())


def guarded(program: str, cargo: bytes, size: int | None = None) -> subprocess.CompletedProcess[bytes]:
    options = [program, str(len(cargo) if size is None else size), "0.5"]
    command = [sys.executable, "-I", "-S", "-c", worker.GUARD, *options]
    return subprocess.run(command, input=cargo, capture_output=True, check=True)
