"""Several logs of one run, in the order of their own times."""

from __future__ import annotations

import os
from pathlib import Path

from patcher.diagnose.diagnose import judge_logs, read_log
from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.log_files import logs_named
from patcher.diagnose.scanner import Scanner
from patcher.session.session import Session
from tests.diagnose.diagnosed import SYMPTOMS, TRACEBACK, root


def diagnosed(folder: Path, logs: dict[str, str]) -> Diagnosis:
    for at, (name, text) in enumerate(logs.items()):
        (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder / name, (1_700_000_000 + at, 1_700_000_000 + at))
    parts = [read_log(Scanner(SYMPTOMS), one, timed=True) for one in logs_named(str(folder))]
    return judge_logs(Session(), parts)


def test_the_earliest_cause_by_time_is_the_root_whatever_its_file_is_called(tmp_path: Path) -> None:
    found = diagnosed(
        tmp_path,
        {
            "a.err": "2026-01-11 10:00:09,000 ERROR CUDA out of memory on rank 0\n",
            "b.err": "ready\n2026-01-11 10:00:03,000 ERROR CUDA out of memory on rank 1\nengine is gone\n",
            "c.err": "2026-01-11 10:00:05,000 INFO going on\nCUDA out of memory on rank 2\n",
        },
    )
    assert found.root is not None
    assert (Path(found.root.place.file).name, found.root.place.number, found.root.count) == ("b.err", 2, 3)
    assert [finding.id for finding in found.findings] == ["memory", "engine-dead"]


def test_training_that_went_on_in_another_log_counts_where_times_tell(tmp_path: Path) -> None:
    step = "2026-01-11 10:00:07,000 INFO step:{0} - actor/pg_loss:0.1 - x:1\n"
    early = "2026-01-11 10:00:03,000 ERROR CUDA out of memory, retried\n"
    late = "2026-01-11 10:00:30,000 ERROR CUDA out of memory\n"
    assert diagnosed(tmp_path, {"a.err": early, "b.out": step.format(1) + step.format(2)}).findings == ()
    found = diagnosed(tmp_path, {"a.err": early + late, "b.out": step.format(1) + step.format(2)})
    assert (found.verdict, found.step, root(found)) == ("failed", 2, ("memory", 2))


def test_a_run_that_calls_itself_complete_in_one_log_may_have_failed_in_another(tmp_path: Path) -> None:
    steps = "(TaskRunner pid=9) Training Progress: {0}%|x| {0}/100 [00:07<00:10, 1.0s/it]\n"
    logs = {"b.out": "Training completed successfully\n", "c.err": f"{TRACEBACK}ValueError: odd\n"}
    assert diagnosed(tmp_path, {"a.out": steps.format(40), **logs}).verdict == "failed"


def test_what_rays_own_processes_say_counts_where_a_worker_has_ended(tmp_path: Path) -> None:
    raylet = (
        f"[2026-01-11 10:00:03,000 E 7 7] (raylet) agent died\n{TRACEBACK}ValueError: odd\n"
        "[2026-01-11 10:00:04,000 I 7 7] (raylet) CUDA out of memory\n"
    )
    ready = "2026-01-11 10:00:01,000 INFO ready\n"
    assert diagnosed(tmp_path, {"raylet.out": raylet, "worker-1.out": ready}).findings == ()
    gone = ready + "2026-01-11 10:00:06,000 ERROR engine is gone\n"
    assert root(diagnosed(tmp_path, {"raylet.out": raylet, "worker-1.out": gone})) == ("memory", 6)
    own = gone + f"{TRACEBACK}KeyError: 'x'\n"
    assert root(diagnosed(tmp_path, {"raylet.out": raylet, "worker-1.out": own})) == ("unknown", 6)
    late = raylet.replace("10:00:04", "10:09:04")
    assert root(diagnosed(tmp_path, {"raylet.out": late, "worker-1.out": gone})) == ("engine-dead", 2)


def test_a_worker_s_own_log_tells_its_actor_once(tmp_path: Path) -> None:
    found = diagnosed(
        tmp_path,
        {
            "worker-1.out": ":job_id:01000000\n:actor_name:TaskRunner\nUsing dataset class: RLHFDataset\n",
            "worker-2.out": ":job_id:01000000\n:actor_name:WorkerDict\nloading\n:task_name:init\n",
        },
    )
    assert (found.phase, list(found.spans)) == ("actor", ["config", "dataset", "actor"])
    assert [place.text for place in found.telling] == ["loading"]


def test_parts_of_a_rotated_log_are_one_log(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {"w.out.1": "CUDA out of memory, retried\n", "w.out": "step:1 - x:1\nready\n"})
    assert (found.findings, found.step, found.lines) == ((), 1, 3)
    found = diagnosed(tmp_path, {"w.out.1": "step:1 - x:1\nready\n", "w.out": "CUDA out of memory\n"})
    assert found.root is not None
    assert (Path(found.root.place.file).name, found.root.place.number) == ("w.out", 1)
