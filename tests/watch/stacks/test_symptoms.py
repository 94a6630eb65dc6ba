"""A symptom is told by where a process stands: by all of its patterns, in whatever way the functions are named."""

from __future__ import annotations

from dataclasses import replace

from patcher.diagnose.diagnosis import Diagnosis
from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Stack
from patcher.watch.stacks.grouping import group_processes
from patcher.watch.stacks.symptoms import find_in_stacks
from patcher.watch.watch import add_stack_symptoms
from tests.watch.stacks.standins import ALL_REDUCE, COMPILES, PYTHON, QUEUE, heard, rank, told

SHIPPED = load_symptoms()
ANY = SHIPPED[0]
ELSEWHERE = "/mnt/packages"
"""A folder on PYTHONPATH that packages were installed into."""
IDLE_ENGINE = (
    (f"{PYTHON}/queue.py", "get", 171),
    (f"{ELSEWHERE}/vllm/v1/engine/core.py", "_process_input_queue", 1190),
    (f"{ELSEWHERE}/vllm/v1/engine/core.py", "run_busy_loop", 1168),
)
IDLE_LOADER = (
    (f"{PYTHON}/multiprocessing/queues.py", "get", 113),
    (f"{ELSEWHERE}/torchdata/stateful_dataloader/worker.py", "_worker_loop", 187),
)


def test_all_patterns_are_needed() -> None:
    found = heard(rank(0, 2, ALL_REDUCE), rank(1, 2, COMPILES)).processes
    both = replace(ANY, stacks=(Stack((r"distributed_c10d\.py:all_reduce", r"fsdp_workers\.py:update_actor$")),))
    (sign,) = find_in_stacks([both], found, (), {})
    assert (sign.process.pid, sign.frame.line) == (100, 3252)
    other = replace(ANY, stacks=(Stack((r"distributed_c10d\.py:all_reduce", r"cpp_extension")),))
    assert find_in_stacks([other], found, (), {}) == ()


def test_the_odd_process_shows_it_first() -> None:
    found = heard(*(rank(number, 3, COMPILES) for number in range(3))).processes
    symptom = replace(ANY, stacks=(Stack((r"torch/utils/cpp_extension\.py:",)),))
    assert find_in_stacks([symptom], found, (102,), {})[0].process.pid == 102


def test_versions_that_cannot_show_it() -> None:
    symptom = replace(ANY, when={"torch": "<2"}, stacks=(Stack((r"all_reduce",)),))
    assert find_in_stacks([symptom], heard(rank(0, 1, ALL_REDUCE)).processes, (), {"torch": "2.9.0"}) == ()


def test_a_stopped_worker_is_the_root_and_idle_processes_are_no_sign() -> None:
    """As on a GPU: the worker is stopped, engine and loaders have nothing to do, the driver waits in its loop."""
    processes = heard(
        rank(0, 1, None, state="T"),
        told(7, IDLE_ENGINE, title="VLLM::EngineCore"),
        told(8, IDLE_LOADER, title="ray::TaskRunner.run"),
        told(9, QUEUE, title="ray::TaskRunner.run"),
    ).processes
    odd = [pid for group in group_processes(processes).odd for pid in group.pids]
    found = add_stack_symptoms(Diagnosis("stalled", "loop"), SHIPPED, processes, odd)
    assert [(one.id, one.role) for one in found.findings][:1] == [("process-stopped", "root")]
    assert found.findings[0].place.file == "pid 100 rank 0"
    assert found.findings[0].place.text == "ray::WorkerDict.actor_rollout_update_actor"
    assert found.findings[0].fixes[0].commands == ("kill -CONT 100",)
    waiting = next(one for one in found.findings if one.id == "queue-empty")
    assert (waiting.role, waiting.place.file) == ("cascade", "pid 9")


def test_processes_that_wait_for_work_have_no_symptom() -> None:
    processes = heard(told(7, IDLE_ENGINE, title="VLLM::EngineCore"), told(8, IDLE_LOADER)).processes
    assert find_in_stacks(SHIPPED, processes, (), {}) == ()


def test_a_stopped_process_with_frames() -> None:
    symptom = replace(ANY, stacks=(Stack((r"all_reduce$",), stopped=True),))
    going, held = rank(0, 2, ALL_REDUCE), rank(1, 2, ALL_REDUCE, state="T")
    (sign,) = find_in_stacks([symptom], heard(going, held).processes, (), {})
    assert sign.process.pid == 101
