"""Programs that stand still, each in its way: `python stalls.py NAME [ARGUMENT...]`, or `ranks:NAME:COUNT` of them."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


def launch(name: str, count: int, *arguments: str) -> None:
    """Ranks as torchrun starts them, and the wait for them."""
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, name, *arguments],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(count)
    ]
    print("dataset len: 2", flush=True)
    for rank in ranks:
        rank.wait()


def begun() -> int:
    rank = int(os.environ.get("RANK", "0"))
    print(f"[ROLLOUT] rank {rank} has begun", flush=True)
    return rank


def held_lock() -> None:
    """Rank 1 holds a file's lock for ever; the others want it."""
    import fcntl

    rank = begun()
    with Path(sys.argv[2]).open("w") as file:
        if rank != 1:
            time.sleep(0.5)
        fcntl.flock(file, fcntl.LOCK_EX)
        consume_batch(queue.Queue())


def consume_batch(batches: queue.Queue[int]) -> None:
    batches.get()


def empty_queue() -> None:
    """Every rank waits for a batch, but rank 0 for its other thread, which does nothing."""
    rank = begun()
    if rank:
        consume_batch(queue.Queue())
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    thread.join()


def stopped_rank() -> None:
    """Rank 2 is stopped; the others wait for a batch of it."""
    rank = begun()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    consume_batch(queue.Queue())


def pool() -> None:
    """A pool of processes that were forked, one of which never answers."""
    begun()
    with multiprocessing.get_context("fork").Pool(2) as workers:
        workers.apply_async(time.sleep, (0,)).get()
        workers.apply(time.sleep, (3600,))


def works() -> None:
    """Computes without a word, in ever other places."""
    begun()
    number = 0
    while True:
        number += 1
        (one, two, three, four)[number % 4]()


def one() -> int:
    return sum(range(200_000))


def two() -> int:
    return max(range(200_000))


def three() -> int:
    return min(range(200_000))


def four() -> int:
    return len(list(range(100_000)))


def spins() -> None:
    """Looks again and again for an answer that never comes."""
    begun()
    waiting = queue.Queue()  # type: ignore[var-annotated]
    while waiting.empty():
        pass


def reads() -> None:
    """Reads a file again and again, without a word."""
    begun()
    while True:
        with Path(sys.argv[2]).open("rb") as file:
            while file.read(1 << 20):
                time.sleep(0.01)


def bursts() -> None:
    """Takes much memory at once, and then nothing is done."""
    content = Path(sys.argv[2]).read_bytes()
    begun()
    queue.Queue[int]().get()
    print(len(content))


def all_reduce() -> None:
    """torch, gloo: rank 1 does not come to the third all-reduce."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=int(os.environ["RANK"]), world_size=3)
    rank = begun()
    for step in range(3):
        if rank == 1 and step == 2:
            print("[ROLLOUT] rank 1 goes elsewhere", flush=True)
            prepare_batch()
        dist.all_reduce(torch.ones(4))


def prepare_batch() -> None:
    time.sleep(3600)


def absent_rank() -> None:
    """torch, gloo: rank 1 has died before the group formed."""
    import torch.distributed as dist

    if begun() == 1:
        os._exit(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=int(os.environ["RANK"]), world_size=3)


def loader() -> None:
    """torch: a worker of rank 0's DataLoader is stopped."""
    from torch.utils.data import DataLoader

    rank = begun()
    for number, _ in enumerate(DataLoader(Numbers(), num_workers=2, multiprocessing_context="fork")):
        if number == 4 and rank == 0:
            for child in multiprocessing.active_children()[:1]:
                os.kill(int(child.pid or 0), signal.SIGSTOP)
                print(f"[ROLLOUT] rank {rank} stopped {child.pid}", flush=True)
        if number == 8 and rank == 1:
            time.sleep(3600)


class Numbers:
    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        return index


def ray_get() -> None:
    """Ray: an actor that never answers."""
    import ray

    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000, _temp_dir=sys.argv[2])

    @ray.remote(runtime_env={"env_vars": {"RANK": "0", "WORLD_SIZE": "1"}})
    class WorkerDict:
        def init_model(self) -> None:
            load_nothing()

    actor = WorkerDict.remote()
    print("colocated worker base class <class 'Worker'>", flush=True)
    ray.get(actor.init_model.remote())


def load_nothing() -> None:
    threading.Event().wait()


if __name__ == "__main__":
    if "RANK" not in os.environ and sys.argv[1].startswith("ranks:"):
        name, _, count = sys.argv[1].removeprefix("ranks:").partition(":")
        launch(name, int(count), *sys.argv[2:])
    else:
        globals()[sys.argv[1]]()
