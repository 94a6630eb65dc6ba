"""Accounts of stacks by py-spy and faulthandler come to the same frames."""

from __future__ import annotations

from patcher.watch.stacks.frame_meaning import frames_key, shown_frame, telling_frames
from patcher.watch.stacks.read_stacks import of_faulthandler, of_spy

DUMP = """RANK=1 WORLD_SIZE=3
Thread 0x00007f45 [ray_print_logs] (most recent call first):
  File "/venv/lib/python3.13/site-packages/ray/_private/worker.py", line 1091 in print_logs
  File "/usr/lib/python3.13/threading.py", line 982 in run

Current thread 0x00007f46 (most recent call first):
  File "/usr/lib/python3.13/threading.py", line 320 in wait
  File "/usr/lib/python3.13/queue.py", line 171 in get
  File "/home/me/fork/verl/trainer/ppo/ray_trainer.py", line 900 in fit
  File "/home/me/fork/train.py", line 3 in <module>
"""


def test_faulthandlers_main_thread_is_the_last() -> None:
    other, main = of_faulthandler(DUMP, "/home/me/fork")
    assert (other.main, other.name) == (False, "ray_print_logs")
    assert main.main
    assert [one.place for one in main.frames] == [
        "threading.py:wait",
        "queue.py:get",
        "verl/trainer/ppo/ray_trainer.py:fit",
        "train.py:<module>",
    ]


def test_both_accounts_have_one_key() -> None:
    frames = [
        ["/usr/lib/python3.13/threading.py", "Condition.wait", 320],
        ["/usr/lib/python3.13/queue.py", "Queue.get", 171],
        ["/home/me/fork/verl/trainer/ppo/ray_trainer.py", "RayPPOTrainer.fit", 900],
        ["/home/me/fork/train.py", "<module>", 3],
    ]
    spied = of_spy([{"name": "MainThread", "main": True, "frames": frames}], "/home/me/fork")[0]
    dumped = of_faulthandler(DUMP, "/home/me/fork")[-1]
    assert frames_key(telling_frames(spied.frames)) == frames_key(telling_frames(dumped.frames))
    assert telling_frames(spied.frames)[0].place == "queue.py:Queue.get"


def test_a_forked_processs_frames_end_where_it_was_forked() -> None:
    frames = [
        ["/usr/lib/python3.12/multiprocessing/connection.py", "Connection._recv", 395],
        ["/usr/lib/python3.12/multiprocessing/process.py", "BaseProcess._bootstrap", 314],
        ["/home/me/fork/train.py", "main", 9],
    ]
    (thread,) = of_spy([{"name": "", "main": True, "frames": frames}])
    assert [one.function for one in thread.frames] == ["Connection._recv"]


def test_paths_are_cut_to_what_tells() -> None:
    shown = {
        "/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py": "vllm/v1/engine/core.py",
        "/usr/lib/python3/dist-packages/torch/x.py": "torch/x.py",
        "/opt/python/lib/python3.11/multiprocessing/queues.py": "multiprocessing/queues.py",
        "<frozen importlib._bootstrap>": "importlib._bootstrap",
        "/data/forks/mine/verl/trainer/main_ppo.py": "verl/trainer/main_ppo.py",
        "/src/verl/verl/single_controller/ray/base.py": "verl/single_controller/ray/base.py",
        "/mnt/packages/vllm/v1/engine/core.py": "vllm/v1/engine/core.py",
        "/src/vllm/vllm/v1/executor/ray_executor.py": "vllm/v1/executor/ray_executor.py",
        "/src/ray/python/ray/_private/worker.py": "ray/_private/worker.py",
        "/home/ray/work/reward/mcq.py": "reward/mcq.py",
        "/home/ray/fork/verl/trainer/main_ppo.py": "verl/trainer/main_ppo.py",
        "/home/me/work/reward/mcq.py": "reward/mcq.py",
        "train.py": "train.py",
    }
    assert {path: shown_frame(path, "f", 1).path for path in shown} == shown
