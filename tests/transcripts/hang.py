"""A driver and three workers, of which one never fills the queue that the two others wait at."""

import multiprocessing
import time


def work(rank: int, batches: "multiprocessing.Queue[int]") -> None:
    if rank == 2:
        time.sleep(3600)
    batches.get()


if __name__ == "__main__":
    print("dataset len: 8", flush=True)
    print("[ROLLOUT] Initializing Rollout Worker", flush=True)
    multiprocessing.set_start_method("fork")
    batches: "multiprocessing.Queue[int]" = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(rank, batches)) for rank in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
