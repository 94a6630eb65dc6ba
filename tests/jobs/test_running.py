"""A job from its start to its verdict, on a real host and here."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from patcher import jobs
from patcher.jobs import Job
from patcher.jobs.agent import starting
from patcher.jobs.agent.processes import MARK, mark_of
from patcher.remote.channel import RefusedError
from patcher.remote.host import Host
from tests import pythons, tools
from tests.jobs.conftest import LOGS, Site

REPLAY = Path(__file__).with_name("replay.py")


def wait_for(what: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def log_of(job: Job) -> bytes:
    return Path(job.log).read_bytes()


def test_ids_of_one_second_sort_in_the_order_of_their_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest job is the last by name: `job status`, `watch` and `diagnose` mean it where none is named."""
    moments = [1_700_000_000 + at / 1000 for at in range(0, 2000, 50)]
    ids = []
    for moment in moments:
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        ids.append(starting._name())
    assert ids == sorted(set(ids))


def test_a_real_log_gives_phases_in_order_with_their_times(there: Site) -> None:
    there.write("train.log", (LOGS / "verl-0.8.0.log").read_bytes())
    there.write("replay.py", REPLAY.read_bytes())
    verdict, reached = there.milestones(there.start('python3 replay.py train.log 30 0; echo "rc=$?"'))
    assert (verdict.kind, verdict.step, verdict.steps) == ("ok", 2, 2)
    phases = [one.phase for one in reached if one.step is None]
    assert phases == ["config", "dataset", "resource-pool", "actor", "rollout", "loop"]
    took = verdict.spans
    assert took["rollout"] > took["dataset"]
    assert took["rollout"] == pytest.approx(44 / 30, abs=0.8)
    assert sum(took.values()) == pytest.approx(131 / 30, abs=1.5)
    assert verdict.dashboard == "http://127.0.0.1:8265"
    rollout = next(one for one in reached if one.phase == "rollout")
    assert rollout.usual == (30, 90)


def test_a_failed_run_is_told_by_its_exception_and_its_line(there: Site) -> None:
    there.write("train.log", (LOGS / "verl-0.6.1-failed.log").read_bytes())
    there.write("replay.py", REPLAY.read_bytes())
    job = there.start("exec python3 replay.py train.log 1000 1")
    verdict = there.follow(job)
    assert (verdict.kind, verdict.phase, verdict.job.code) == ("failed", "loop", 1)
    assert verdict.telling is not None
    assert verdict.telling.text == "KeyError: 'raw_prompt'"
    number = subprocess.run(
        ["grep", "-n", "KeyError: 'raw_prompt'$", job.log], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]
    assert verdict.telling.number == int(number.partition(":")[0])
    assert "log line" in str(verdict.lines[0])


def test_reading_all_and_searching_tell_the_same(there: Site) -> None:
    for name in ("verl-0.6.1", "verl-0.7.0", "verl-0.6.1-failed"):
        there.write("train.log", (LOGS / f"{name}.log").read_bytes())
        job = there.start("cat train.log; exit 3")
        texts: list[str] = []
        read = there.follow(job, text=texts.append)
        searched = jobs.verdict_now(there.open(), read.job)
        assert "".join(texts).encode() == log_of(job)
        for what in ("kind", "phase", "step", "steps", "telling", "dashboard", "detail"):
            assert getattr(read, what) == getattr(searched, what), what
        assert list(read.spans) == list(searched.spans)


@pytest.mark.parametrize("tmux", [True, False])
def test_the_job_outlives_connection_and_agent(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmux: bool
) -> None:
    if not tmux:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("bash", "sh", "env", "sleep", "cat", "seq", "python3", "printf"):
            (folder / name).symlink_to(str(shutil.which(name)))
        monkeypatch.setenv("PATH", str(folder))
    job = here.start("trap '' HUP; for i in $(seq 30); do echo $i; sleep 0.1; done")
    assert job.tmux is (tmux and shutil.which("tmux") is not None)
    here.link.close()
    time.sleep(0.5)
    assert alive(job.pid)
    verdict = here.follow(job)
    assert verdict.kind == "ok"
    assert log_of(job) == b"".join(b"%d\n" % i for i in range(1, 31))


@tools.needs("tmux")
def test_tmux_shows_the_log_and_ends_with_the_job(there: Site, reachable: object) -> None:
    job = there.start("echo hello from the job; until [ -e go ]; do sleep 0.1; done")
    assert job.tmux
    as_user = ["setpriv", f"--reuid={there.owner[0]}", "--clear-groups", "env", "-C", job.folder, "tmux", "-S", "tmux"]
    listed = subprocess.run([*as_user, "ls", "-F", "#S"], capture_output=True, text=True, check=True).stdout
    assert listed == f"uky-{job.id}\n"

    def shown() -> bool:
        pane = subprocess.run([*as_user, "capture-pane", "-p"], capture_output=True, text=True, check=True)
        return "hello from the job" in pane.stdout

    wait_for(shown)
    subprocess.run([*as_user, "send-keys", "C-c"], check=True)
    time.sleep(0.3)
    assert alive(job.pid)
    there.write("go", "")
    assert there.follow(job).kind == "ok"
    wait_for(lambda: subprocess.run([*as_user, "ls"], capture_output=True, check=False).returncode != 0)


@tools.needs("tmux")
@pytest.mark.parametrize("pruned", [False, True])
def test_tmux_ends_with_a_job_whose_end_nobody_notes(here: Site, pruned: bool) -> None:
    job = here.start("until [ -e go ]; do sleep 0.1; done")
    runner = json.loads((Path(job.folder) / "job.json").read_text())["runner"]["pid"]
    (viewer,) = (int(one.name) for one in Path("/proc").glob("[0-9]*") if shows_log_of(job, one))
    os.kill(runner, signal.SIGKILL)
    time.sleep(1)
    assert alive(viewer)  # The job goes on, and so does its log.
    if pruned:
        shutil.rmtree(job.folder)
        here.started.clear()
    here.write("go", "")
    wait_for(lambda: not alive(viewer))


def shows_log_of(job: Job, process: Path) -> bool:
    try:
        words = (process / "cmdline").read_text().split("\0")
    except (OSError, ValueError):
        return False
    return words[2:3] == [f"{job.folder}/viewer.py"]


@tools.needs("tmux")
def test_killing_tmux_leaves_the_job_alone(here: Site) -> None:
    job = here.start("sleep 1; echo done")
    assert job.tmux
    subprocess.run(["tmux", "-S", "tmux", "kill-server"], check=True, cwd=job.folder)
    assert here.follow(job).kind == "ok"
    assert log_of(job) == b"done\n"


def test_a_job_that_is_killed_is_failed_by_the_signal(there: Site) -> None:
    job = there.start("echo begun; exec sleep 60")
    assert job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    verdict = there.follow(job)
    assert (verdict.kind, verdict.job.code) == ("failed", -signal.SIGKILL)
    assert "SIGKILL" in str(verdict.detail)


def test_a_job_without_its_runner_goes_on_and_is_lost_when_it_ends(there: Site) -> None:
    job = there.start("cat train.log; until [ -e go ]; do sleep 0.1; done")
    runner = json.loads((Path(job.folder) / "job.json").read_text())["runner"]["pid"]
    os.kill(runner, signal.SIGKILL)
    wait_for(lambda: not alive(runner))
    found, _ = jobs.look(there.open())
    assert (found.state, found.watched) == ("running", False)
    there.write("go", "")
    verdict = there.follow(job)
    assert verdict.kind == "lost"
    assert alive(job.pid) is False


def test_a_number_that_is_used_again_is_not_taken_for_the_job(there: Site) -> None:
    job = there.start("exec sleep 60")
    folder = Path(job.folder)
    told = json.loads((folder / "job.json").read_text())
    os.kill(told["runner"]["pid"], signal.SIGKILL)
    os.kill(told["process"]["pid"], signal.SIGKILL)
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        told["runner"]["pid"] = told["process"]["pid"] = stranger.pid
        (folder / "job.json").write_text(json.dumps(told))
        assert jobs.look(there.open())[0].state == "lost"
        assert list(jobs.stop(there.open(), grace=0.1).processes) == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_secrets_reach_the_job_and_nothing_else(there: Site) -> None:
    secret = "s3cr3t-" + "x" * 20
    there.host = Host("loop", "loop", path=str(there.root), env={"PLAIN": "seen"}, secrets={"WANDB_API_KEY": secret})
    there.link.host = there.host
    job = there.start(
        'echo "$PLAIN $UKY_PATCH_JOB $PYTHONUNBUFFERED"; echo "key=${WANDB_API_KEY}" | tee key; sleep 0.3'
    )
    texts: list[str] = []
    verdict = there.follow(job, text=texts.append)
    assert verdict.kind == "ok"
    assert (there.root / "key").read_text() == f"key={secret}\n"
    assert texts == [f"seen {job.id} 1\n", "key=***\n"]
    on_disk = b"".join(
        path.read_bytes() for path in Path(job.folder).iterdir() if path.is_file() and path.name != "log"
    )
    assert secret.encode() not in on_disk
    assert secret not in json.dumps(verdict.as_json())


def test_the_interpreter_comes_first_and_the_login_files_count(there: Site, reachable: object) -> None:
    home = there.root.parent
    profile = home / ".bash_profile"
    profile.write_text("export FROM_LOGIN=yes\necho noise\n")
    try:
        texts: list[str] = []
        there.follow(there.start("echo $FROM_LOGIN; readlink /proc/self/fd/0"), text=texts.append)
        assert texts == ["yes\n", "/dev/null\n"]
        profile.write_text("sleep 60\n")
        begun = time.monotonic()
        job = there.start("echo $PATH")
        assert time.monotonic() - begun < 20
        assert there.follow(job).kind == "ok"
    finally:
        profile.unlink()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("../outside.sh", "does not lie in the tree"),
        ("/bin/sh", "does not lie in the tree"),
        ("missing.sh", "there is no such file"),
        ("link.sh", "does not lie in the tree"),
        ("verl", "verl is no file"),
    ],
)
def test_a_script_that_is_not_in_the_tree_is_refused(here: Site, script: str, said: str) -> None:
    (here.root / "link.sh").symlink_to("/bin/sh")
    (here.root.parent / "outside.sh").write_text("true")
    connection, _ = here.link.open()
    with here.link.locked("a test"), pytest.raises(RefusedError) as refused:
        jobs.start(connection, here.host, None, profile="debug", script=script)
    assert refused.value.kind == "script"
    assert said in str(refused.value)
    assert not (here.root / ".uky-patch/host/jobs").exists()


def test_all_its_processes_carry_the_mark(there: Site) -> None:
    job = there.start("sleep 60 & (setsid sleep 61 &) ; wait")
    wait_for(lambda: len(jobs.look(there.open())[1].processes) >= 3)
    usage = jobs.look(there.open())[1]
    assert {process["name"] for process in usage.processes} == {"bash", "sleep"}
    assert all(mark_of(process["pid"]) == job.id for process in usage.processes)
    assert MARK == "UKY_PATCH_JOB"


def test_another_python_runs_jobs_too(there: Site) -> None:
    python = pythons.another(there.root.parent)
    if python is None:
        pytest.skip("there is no other Python")
    there.host = there.link.host = Host("loop", "loop", path=str(there.root), python=str(python))
    texts: list[str] = []
    job = there.start("echo one; sleep 0.5; (setsid sleep 70 &); exit 2")
    verdict = there.follow(job, text=texts.append)
    assert (verdict.kind, verdict.job.code, texts) == ("failed", 2, ["one\n"])
    assert jobs.verdict_now(there.open(), verdict.job).kind == "failed"
    assert jobs.tail(there.open(), None, 5)[0] == "one\n"
    assert [process["name"] for process in jobs.stop(there.open(), grace=0.5).processes] == ["sleep"]


@pytest.mark.parametrize("program", ["runner", "traces", "viewer", "sitecustomize_hook"])
def test_what_is_copied_into_a_jobs_folder_needs_no_patcher_there(program: str) -> None:
    """On a host nothing of `patcher` is installed; here an import of it would go unnoticed."""
    module = import_module(f"patcher.jobs.agent.{program}")
    imports = list(ast.walk(ast.parse(Path(module.__file__ or "").read_text())))
    named = [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
    named += [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in named if name.partition(".")[0] == "patcher"]


def test_setup_lines_run_before_the_job_and_it_has_what_they_leave(here: Site) -> None:
    here.host = replace(here.host, setup=('export FROM_SETUP="two words"', "helper() { :; }"))
    job = here.start('echo "setup: $FROM_SETUP"')
    assert here.follow(job).kind == "ok"
    assert b"setup: two words" in log_of(job)


def test_a_job_is_not_started_where_a_line_of_setup_fails(here: Site) -> None:
    here.host = replace(here.host, setup=("false",))
    with pytest.raises(RefusedError, match="a line of setup failed: false"):
        here.start("echo never")
    assert jobs.all_jobs(here.open()) == ()
