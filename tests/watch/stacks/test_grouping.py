"""The odd one among processes that should stand together is named, and no other."""

from __future__ import annotations

from patcher.watch.stacks.frame_meaning import phase_of_processes
from patcher.watch.stacks.grouping import ProcessGroups, group_processes
from patcher.watch.stacks.processes import MachineStacks
from patcher.watch.stacks.read_stacks import read_stacks
from tests.watch.stacks.standins import ALL_REDUCE, COMPILES, QUEUE, heard, rank, told


def of(found: MachineStacks) -> ProcessGroups:
    return group_processes(found.processes, found.locks)


def test_one_rank_compiles_while_seven_wait_for_it() -> None:
    found = of(heard(*(rank(number, 8, COMPILES if number == 5 else ALL_REDUCE) for number in range(8))))
    together, odd = found.groups
    assert (together.ranks, together.where) == (
        (0, 1, 2, 3, 4, 6, 7),
        "torch/distributed/distributed_c10d.py:all_reduce",
    )
    assert str(together.action) == "is in a collective operation"
    assert not together.odd
    assert (odd.ranks, odd.where) == ((5,), "torch/utils/cpp_extension.py:_run_ninja_build")
    assert str(odd.action) == "compiles a kernel"
    assert "elsewhere" in str(odd.odd)


def test_of_two_ranks_the_one_outside_of_the_collective_is_odd() -> None:
    found = of(heard(rank(0, 2, ALL_REDUCE), rank(1, 2, COMPILES)))
    assert [group.ranks for group in found.odd] == [(1,)]


def test_all_ranks_in_one_place_leave_no_odd_one() -> None:
    assert of(heard(*(rank(number, 4, ALL_REDUCE) for number in range(4)))).odd == ()


def test_a_rank_that_is_not_there_is_named_and_those_that_wait_are_not_odd() -> None:
    found = of(heard(rank(0, 4, ALL_REDUCE), rank(1, 4, ALL_REDUCE), rank(3, 4, ALL_REDUCE)))
    assert (found.absent, found.size, found.odd) == ((2,), 4, ())


def test_a_stopped_rank_is_odd_though_it_stands_in_the_same_place() -> None:
    found = of(heard(rank(0, 3, ALL_REDUCE), rank(1, 3, ALL_REDUCE), rank(2, 3, ALL_REDUCE, state="T")))
    assert [group.ranks for group in found.odd] == [(2,)]
    assert str(found.odd[0].action) == "is stopped by a signal"


def test_a_rank_that_computes_while_the_others_wait() -> None:
    own = (("/home/me/fork/reward.py", "score", 12),)
    found = of(heard(rank(0, 2, ALL_REDUCE), rank(1, 2, own, state="R")))
    assert [group.ranks for group in found.odd] == [(1,)]
    assert "processor" in str(found.odd[0].odd)


def test_without_stacks_the_kernel_tells_them_apart() -> None:
    waits = {"wchan": "futex_do_wait", "call": "futex", "file": None}
    reads = {"wchan": "anon_pipe_read", "call": "read", "file": "pipe:[7]", "ends": [[4242, True]]}
    found = of(heard(rank(0, 3, waits=waits), rank(1, 3, waits=waits), rank(2, 3, waits=reads)))
    assert [group.ranks for group in found.odd] == [(2,)]
    assert str(found.odd[0].action) == "waits at an empty pipe that process 4242 writes"


def test_who_holds_the_lock_that_others_wait_for_is_odd() -> None:
    lock = {"path": "/cache/x.lock", "holders": {"101": "python"}, "waiters": [100]}
    waits = {"wchan": "", "call": "flock", "file": "/cache/x.lock"}
    found = of(heard(rank(0, 2, waits=waits), rank(1, 2, QUEUE), locks=[lock]))
    assert [group.ranks for group in found.odd] == [(1,)]


def test_rays_own_processes_and_its_idle_workers_are_left_out() -> None:
    found = of(heard(rank(0, 1, QUEUE), told(7, title="ray::IDLE"), told(8, name="raylet", system=True)))
    assert [group.pids for group in found.groups] == [(100,)]


def test_data_loaders_have_the_rank_that_they_read_for() -> None:
    loop = (("/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", "_worker_loop", 334),)
    found = of(heard(rank(3, 4, QUEUE), told(9, loop, parent=103, state="T"), told(10, loop, parent=103)))
    odd = found.odd[0]
    assert (odd.role, odd.ranks, odd.pids) == ("loader", (3,), (9,))


def test_engines_by_their_titles() -> None:
    found = of(heard(told(1, QUEUE, title="VLLM::Worker_TP1"), told(2, QUEUE, title="VLLM::EngineCore_DP0")))
    ranks = {(group.role, group.processes[0].rank.group, group.ranks) for group in found.groups}
    assert ranks == {("engine", "TP", (1,)), ("engine", "DP", (0,))}


def test_the_odd_rank_may_be_on_another_host() -> None:
    first = heard(*(rank(number, 4, ALL_REDUCE) for number in (0, 1)))
    second = read_stacks(
        {"processes": [rank(2, 4, ALL_REDUCE), rank(3, 4, COMPILES)], "locks": [], "spy": None}, "node b"
    )
    found = group_processes([*first.processes, *second.processes])
    assert [(group.ranks, group.processes[0].host) for group in found.odd] == [((3,), "node b")]
    assert next(group for group in found.groups if not group.odd).ranks == (0, 1, 2)


def test_frames_name_the_phase() -> None:
    assert phase_of_processes(heard(rank(0, 1, ALL_REDUCE)).processes) == "loop"
    loads = (
        ("/venv/lib/python3.12/site-packages/safetensors/torch.py", "load_file", 5),
        ("/home/me/fork/verl/workers/fsdp_workers.py", "init_model", 5),
    )
    assert phase_of_processes(heard(rank(0, 1, loads)).processes) == "actor"
    syncs = (("/home/me/fork/verl/workers/fsdp_workers.py", "ActorRolloutRefWorker.update_weights", 5),)
    assert phase_of_processes(heard(rank(0, 1, syncs)).processes) == "weight-sync"


def test_an_import_is_no_wait_for_what_is_imported() -> None:
    imports = (
        ("/usr/lib/python3.12/socket.py", "<module>", 52),
        ("<frozen importlib._bootstrap>", "_find_and_load", 1176),
        ("/home/me/fork/train.py", "<module>", 1),
    )
    assert str(of(heard(rank(0, 1, imports))).groups[0].action) == "imports modules"
