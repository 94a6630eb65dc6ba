"""Files worked on by one process and by two: the same records; and ended by Ctrl-C, or killed from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.errors import EnvironmentProbeError
from patcher.recording import by_file
from patcher.recording.by_file import Differing, Replaying, Workers, workers
from patcher.records.model import Record, When
from patcher.rewrite.edits import Edit, Insert, Replace
from patcher.rewrite.outcome import Rewritten
from tests.recording.test_record import commit, git

COUNT = 12
BEFORE = "import os\n\n\ndef start(port):\n    prepare({0})\n    launch(port, {0})\n    return os.getpid()\n"
AFTER = BEFORE.replace("launch(port, {0})", "launch(port, {0} + 1)").replace("    return", "    settle()\n    return")


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """Two edits in each of a dozen files, a file of another kind, and one that is new."""
    root = tmp_path / "fork"
    (root / "verl").mkdir(parents=True)
    (root / "verl/__init__.py").write_text('__version__ = "0.6.1"\n')
    (root / "verl/settings.yaml").write_text("trainer:\n  nodes: 1\n")
    for number in range(COUNT):
        (root / f"verl/part_{number}.py").write_text(BEFORE.format(number))
    git(root, "init", "-q", "-b", "fork")
    commit(root, "verl 0.6.1")
    (root / "verl/settings.yaml").write_text("trainer:\n  nodes: 2\n")
    for number in range(COUNT):
        (root / f"verl/part_{number}.py").write_text(AFTER.format(number))
    (root / "verl/own.py").write_text("x = 1\n")
    return root


@pytest.mark.parametrize("output", ["json", "text"])
def test_two_processes_record_what_one_records(
    fork: Path, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for processes in (1, 2):
        monkeypatch.setattr(by_file, "PROCESSES", processes)
        into = f"records-{processes}"
        asked = ["--root", str(fork), "--assume", "vllm==0.12.0", "--format", output, "record", "--yes", "--into", into]
        assert run(asked) == 0
        texts = {path.name: path.read_text() for path in (fork / into).glob("*.toml")}
        assert len(texts) >= COUNT
        told.append((texts, capsys.readouterr().out.replace(into, "")))
        subprocess.run(["git", "clean", "-fdq", "--exclude", "verl"], cwd=fork, check=True)
    assert told[0] == told[1]


def test_results_come_in_the_order_of_the_jobs() -> None:
    """Whatever is begun first, which is the longest."""
    jobs = [Differing(f"verl/{number}.py", "x = 1\n" * number, "x = 2\n" * number) for number in range(1, 6)]
    heard: list[tuple[int, int]] = []
    with workers(len(jobs), processes=2) as working:
        found = working.results(jobs, lambda done, total: heard.append((done, total)))
        again = working.results(jobs, silent)
    assert [one.edits.file for one in found] == [job.file for job in jobs]
    assert found == again == Workers(None).results(jobs, silent)
    assert heard == [(done, len(jobs)) for done in range(len(jobs) + 1)]


def test_few_files_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_file, "pool", None)
    with workers(3) as working:
        assert working.results([Differing("verl/a.py", "f(1)\n", "f(2)\n")], silent)[0].edits.made


def silent(_done: int, _total: int) -> None:
    return


def made_by(name: str, edit: Edit) -> Record:
    return Record(name, name, "", "fork-only", When(), (edit,))


def test_edits_are_made_one_after_the_other_and_each_record_has_its_example() -> None:
    text = "def start(port):\n    launch(port)\n"
    first = made_by("first", Replace(file="verl/a.py", pattern="launch(port)", replacement="launch(port, 2)"))
    second = made_by("second", Insert(file="verl/a.py", where="after", anchor="launch(port, 2)", code="settle()"))
    steps = ((first, frozenset[str]()), (second, frozenset({"first"})))
    job = Replaying("verl/a.py", text, text, steps, frozenset({"first"}), "0.6.1", "0.6.1", "Uky")
    worked = job.work()
    one, two = worked.outcomes.values()
    assert isinstance(one, Rewritten)
    assert isinstance(two, Rewritten)
    assert [asked[0] for asked in worked.outcomes] == [text, one.source]
    assert list(worked.examples) == ["first"]
    assert [example.name for example in worked.examples["first"]] == ["as in verl 0.6.1"]


@dataclass(frozen=True, slots=True)
class Killed:
    """A job whose process is ended from outside."""

    size: int = 1

    def work(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_one_clear_mistake() -> None:
    with pytest.raises(EnvironmentProbeError, match="ended from outside"), workers(1, processes=2) as working:
        working.results([Killed(), Killed()], silent)


def _children(process: int) -> list[str]:
    """The command lines of a process's children."""
    pids = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in pids]


def test_an_interrupt_ends_all_processes(fork: Path) -> None:
    """As from a keyboard: the whole group gets it, while the processes work."""
    slow = (
        "import time\nfrom patcher import interrupt\ninterrupt.end_at_once()\n"
        "if __name__ == '__main__':\n    import sys\n    from patcher.recording import by_file\n"
        "    by_file.PROCESSES = 2\n    from patcher.cli.app import run\n    sys.exit(run(sys.argv[1:]))\n"
        "from patcher.recording.by_file import Differing\nDiffering.work = lambda self: time.sleep(60)\n"
    )
    program = fork.parent / "slow.py"
    program.write_text(slow)
    asked = [sys.executable, str(program), "--root", str(fork), "--assume", "vllm==0.12.0", "record", "--dry-run"]
    running = subprocess.Popen(
        asked,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 60
    while sum("spawn_main" in one for one in _children(running.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert sum("spawn_main" in one for one in _children(running.pid)) == 2
    time.sleep(1)
    begun = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, "", "interrupted\n")
    assert time.monotonic() - begun < 20
    while _is_there(running.pid):
        assert time.monotonic() - begun < 30, "something of the group is left"
        time.sleep(0.1)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
