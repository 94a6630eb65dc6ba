"""The hook in a job's processes: it answers, keeps out of the way of others, and nothing else is ever signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from patcher.jobs.agent import processes
from patcher.jobs.agent.sitecustomize_hook import SIGNAL
from patcher.watch.agent.stacks import dump_by_hook
from tests.watch.conftest import Stalled
from tests.watch.conftest import stalled as stalled

Start = Callable[..., Stalled]


def run(code: str, *folders: Path, stacks: Path | None = None) -> subprocess.CompletedProcess[str]:
    given = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": os.environ["PATH"]}
    given |= {"UKY_PATCH_STACKS": str(stacks)} if stacks is not None else {}
    return subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)


def hooked(folder: Path) -> Path:
    from patcher.jobs.agent import sitecustomize_hook as module

    folder.mkdir()
    (folder / "sitecustomize.py").write_text(Path(module.__file__).read_text())
    return folder


def test_another_sitecustomize_is_loaded_as_without_it(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys\nVALUE = 7\nprint('noise')\n")
    asked = "import sitecustomize; print(sitecustomize.VALUE, sitecustomize.__file__)"
    for stacks in (None, tmp_path):
        done = run(asked, hooked(tmp_path / f"hook{stacks is None}"), other, stacks=stacks)
        assert done.stdout == f"noise\n7 {other / 'sitecustomize.py'}\n"
        assert done.stderr == ""


def test_a_broken_sitecustomize_is_as_broken_as_without_it(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("raise ValueError('theirs')\n")
    with_it = run("print('runs')", hooked(tmp_path / "hook"), other, stacks=tmp_path)
    without = run("print('runs')", other)
    assert with_it.stdout == without.stdout == "runs\n"
    assert with_it.stderr.splitlines()[-1] == without.stderr.splitlines()[-1]


def test_nothing_happens_where_its_folder_cannot_be_written(tmp_path: Path) -> None:
    done = run("print('runs')", hooked(tmp_path / "hook"), stacks=tmp_path / "missing")
    assert (done.stdout, done.stderr) == ("runs\n", "")


def test_what_ends_leaves_no_file(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    seen = run(
        "import os; print(len(os.listdir(os.environ['UKY_PATCH_STACKS'])))", hooked(tmp_path / "h"), stacks=stacks
    )
    assert seen.stdout == "1\n"
    assert list(stacks.iterdir()) == []


def test_a_process_without_the_hook_gets_no_signal(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        process = processes.one(sleeper.pid)
        assert process is not None
        assert dump_by_hook(process, str(tmp_path)) == ("", "no hook")
        (tmp_path / f"{os.uname()[1]}.{process.pid}.{process.start}").write_text("")
        assert dump_by_hook(process, str(tmp_path)) == ("", "no hook")
        time.sleep(0.1)
        assert sleeper.poll() is None
        sleeper.kill()


def test_another_process_under_the_same_number_gets_no_signal(stalled: Start) -> None:
    run = stalled("empty_queue")
    process = processes.one(run.process.pid)
    assert process is not None
    deadline = time.monotonic() + 30
    while not list(run.stacks.glob("*.*.*[0-9]")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert dump_by_hook(process._replace(start=process.start + 1), str(run.stacks)) == ("", "no hook")
    text, why = dump_by_hook(process, str(run.stacks))
    assert "most recent call first" in text
    assert why == ""
    assert run.process.poll() is None


def test_a_process_that_changed_its_mind_gets_no_signal(tmp_path: Path) -> None:
    """One that took the signal back is not killed by it, though its file is there."""
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    code = f"import signal, time; signal.signal({SIGNAL}, signal.SIG_DFL); print('up', flush=True); time.sleep(60)"
    given = {"PYTHONPATH": str(hooked(tmp_path / "h")), "UKY_PATCH_STACKS": str(stacks), "PATH": os.environ["PATH"]}
    with subprocess.Popen([sys.executable, "-c", code], env=given, stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        process = processes.one(sleeper.pid)
        assert process is not None
        assert dump_by_hook(process, str(stacks)) == ("", "no hook")
        assert sleeper.poll() is None
        sleeper.send_signal(signal.SIGKILL)
