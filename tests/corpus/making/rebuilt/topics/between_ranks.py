"""NCCL and the store of the process group, over several ranks and nodes."""

from tests.corpus.making.rebuilt.failing import back, frames, others
from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage
from tests.corpus.making.rebuilt.topics.memory import oom

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"
ABORTED = (
    "frame #0: c10::Error::Error(c10::SourceLocation, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >) + 0x80 "
    "(0x7f6a2877eeb0 in /home/user/venv/lib/python3.11/site-packages/torch/lib/libc10.so)\n"
    "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long, std::ratio<1l, 1000l> > >) + 0x23d "
    "(0x7f69cb9f1c3d in /home/user/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #2: c10d::ProcessGroupNCCL::Watchdog::runLoop() + 0xe38 (0x7f69cb9f4bf8 in /home/user/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #3: c10d::ProcessGroupNCCL::Watchdog::run() + 0x105 (0x7f69cb9f5e65 in /home/user/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #4: <unknown function> + 0xd3b75 (0x7f6a6c0a4b75 in /home/user/venv/bin/../lib/libstdc++.so.6)\n"
    "frame #5: <unknown function> + 0x94ac3 (0x7f6a6d2e7ac3 in /usr/lib/x86_64-linux-gnu/libc.so.6)\n"
    "frame #6: <unknown function> + 0x126850 (0x7f6a6d379850 in /usr/lib/x86_64-linux-gnu/libc.so.6)\n"
)


def watchdog(rank: int, number: int, kind: str, limit: int, clock: str, first: str = "") -> str:
    """torch 2.8's words of one rank whose collective did not end; `first` stands before the first line."""
    stamp = f"[rank{rank}]:[E314 {clock}.{(rank * 7919 + 104729) % 1000000000:09} ProcessGroupNCCL.cpp:"
    caught = (
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType={kind}, NumelIn=233373696, NumelOut=233373696, "
        f"Timeout(ms)={limit}) ran for {limit + 31 + rank * 7} milliseconds before timing out."
    )
    return (
        f"{first}{stamp}685] {caught}\n"
        f"{stamp}2252] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: {number} PG status: last enqueued "
        f"work: {number + 2}, last completed work: {number - 1}\n"
        f"{stamp}732] Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can enable it by setting "
        "TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.\n"
        f"{stamp}2584] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] First PG on this rank to signal dumping.\n"
        f"{stamp}1866] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a dump signal due to a collective timeout from this local rank and we will try "
        "our best to dump the debug info. Last enqueued NCCL work: 1582, last completed NCCL work: 1579.This is most likely caused by incorrect usages of "
        "collectives, e.g., wrong sizes used across ranks, the order of collectives is not same for all ranks or the scheduled collective, for some reason, "
        "didn't run. Additionally, this can be caused by GIL deadlock or other reasons such as network errors or bugs in the communications library "
        "(e.g. NCCL), etc. \n"
        f"{stamp}746] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations "
        "might run on corrupted/incomplete data.\n"
        f"{stamp}760] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.\n"
        f"{stamp}2068] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: {caught}\n"
        "Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:688 (most recent call first):\n"
        f"{ABORTED}\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: {caught}\n"
    )


def died(stage: Stage, rank: int) -> str:
    """What Ray tells of a worker that aborted, and how the driver ends."""
    actor = f"{stage.rng.getrandbits(96):024x}01000000"
    node = f"10.0.0.{5 + rank // stage.gpus}"
    text = (
        "A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. "
        f"RayTask ID: fffffffffffffffff{actor[:15]}01000000 Worker ID: {stage.rng.getrandbits(224):056x} Node ID: {stage.rng.getrandbits(224):056x} "
        f"Worker IP address: {node} Worker port: 10017 Worker PID: {stage.workers[rank]} Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
        "unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM "
        "killer due to high memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors."
    )
    end = (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict\n"
        f"\tactor_id: {actor}\n\tpid: {stage.workers[rank]}\n\tname: 8wQxXbWorkerDict_0:{rank}\n\tnamespace: 5b5cb1c2-14ad-4a43-9b0e-4a3e0ee87e40\n"
        f"\tip: {node}\nThe actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly "
        "exits with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to "
        "high memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n"
    )
    tail = "Error executing job with overrides: ['algorithm.adv_estimator=grpo']\nTraceback (most recent call last):\n"
    return f"\x1b[33m(raylet)\x1b[0m {text}\n{tail}{frames('driver', 'fit update')}{end}\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"


@log(
    "nccl-timeout-after-oom",
    "cuda-oom",
    "cuda-oom-after-steps",
    made="Rank 5 runs out of memory in step 9; ten minutes later the others' collectives time out.",
    versions=SETS,
)
def after_oom() -> str:
    stage = Stage(21)
    error = oom("3.62 GiB", 5, "2.31 GiB", "76.78 GiB", "70.15 GiB", "4.90 GiB")
    told = stage.until("loop", range(1, 9)) + others(
        stage, "OutOfMemoryError", error, "actor_rollout_update_actor", "update", "backward", ranks=(5,)
    )
    for rank in (0, 3, 7):
        told += stage.at(rank, watchdog(rank, 15432, "_REDUCE_SCATTER_BASE", 600000, f"10:02:4{rank}"))
    told += stage.at(
        0,
        "*** SIGABRT received at time=1773482564 on cpu 41 ***\nPC: @     0x7f6a6d2e99fc  (unknown)  pthread_kill\n"
        "    @     0x7f6a6d295520  (unknown)  (unknown)\nFatal Python error: Aborted\n",
        again=6,
    )
    return told + died(stage, 0)


@log(
    "nccl-timeout-after-reward-plugin",
    "unknown",
    made="A rank's own plugin raises; the other ranks of a plain torchrun script time out.",
    phase="",
    versions="torch=2.6.0",
)
def after_plugin() -> str:
    told = "".join(
        f"[2026-03-02 11:0{n // 6}:{n % 6 * 10:02},118] [INFO] [trainer.py:88] epoch 0 | iter {n * 10}/4000 | loss {2.31 - n / 40:.4f} | lr 2.0e-05 | grad_norm 1.{n:02}\n"
        for n in range(1, 19)
    )
    told += (
        "Traceback (most recent call last):\n"
        + frames(
            "/home/user/moe/train.py 340 <module>: main()",
            "/home/user/moe/train.py 301 main: batch = packer.pack(next(stream))",
            "/home/user/moe/packing/bins.py 77 pack: raise BinOverflow(self.index, len(rows))",
        )
        + f"{MARK}packing.errors.BinOverflow: bin 14 takes 32 rows and was given 33\n"
    )
    for rank in (1, 2):
        old = (
            watchdog(rank, 9141, "_ALLGATHER_BASE", 1800000, "11:34:09")
            .replace("cpp:685]", "cpp:616]")
            .replace("E314", "E302")
        )
        told += old
    told += (
        "W0302 11:34:12.774000 30121 site-packages/torch/distributed/elastic/multiprocessing/api.py:897] Sending process 30190 closing signal SIGTERM\n"
        "E0302 11:34:13.101000 30121 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 1 (pid: 30189) of binary: "
        "/home/user/venv/bin/python\nTraceback (most recent call last):\n"
        + frames(
            "/home/user/venv/bin/torchrun 8 <module>: sys.exit(main())", "torch/distributed/run.py 918 main: run(args)"
        )
        + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n========================================================\ntrain.py FAILED\n"
        "--------------------------------------------------------\nFailures:\n[1]:\n  time      : 2026-03-02_11:34:12\n  host      : node-1\n  rank      : 2 "
        "(local_rank: 2)\n  exitcode  : -6 (pid: 30190)\n  error_file: <N/A>\n  traceback : Signal 6 (SIGABRT) received by PID 30190\n"
        "--------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-02_11:34:12\n  host      : node-1\n"
        "  rank      : 1 (local_rank: 1)\n  exitcode  : -6 (pid: 30189)\n  error_file: <N/A>\n  traceback : Signal 6 (SIGABRT) received by PID 30189\n"
        "========================================================\n"
    )
    return told


@log(
    "nccl-timeout-alone",
    "nccl-timeout",
    made="All ranks of two nodes time out in one collective, and nothing else is told.",
    versions=SETS,
)
def timeout_alone() -> str:
    stage = Stage(23, nodes=2)
    told = stage.until("loop", range(1, 7), dump=True)
    for rank in (8, 1, 15):
        told += stage.at(rank, watchdog(rank, 20877, "_ALLGATHER_BASE", 600000, "10:51:07", MARK))
    return told + died(stage, 8)


@log(
    "nccl-remote-peer-gone",
    "host-oom-killed",
    made="The kernel kills a worker of the second node for memory, and the first node's ranks lose the connection.",
    versions=SETS,
)
def remote() -> str:
    stage = Stage(24, nodes=2)
    error = (
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, remote process exited or there was a network "
        "error, NCCL version 2.27.3\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\n"
        "socketProgress: Connection closed by remote peer node-2<41672>"
    )
    told = stage.until("loop", range(1, 13))
    told += f"{MARK}[Sat Mar 14 09:41:55 2026] Out of memory: Killed process {stage.workers[11]} (ray::WorkerDict) total-vm:412336180kB, anon-rss:201993472kB, file-rss:71680kB, shmem-rss:1048576kB, UID:1000 pgtables:398812kB oom_score_adj:1000\n"
    told += stage.at(
        2,
        f"[2026-03-14 09:41:57] node-1:{stage.workers[2]}:61044 [2] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer node-2<41672>\n\n"
        f"[2026-03-14 09:41:57] node-1:{stage.workers[2]}:61044 [2] proxy.cc:1521 NCCL WARN [Service thread] Could not receive type from localRank 3, res=3, closed=0",
    )
    told += others(stage, "DistBackendError", error, "actor_rollout_update_actor", "update", ranks=(2, 4))
    return told + back(stage, "DistBackendError", error, "actor_rollout_update_actor", "fit update", "update")


@log(
    "nccl-system-error",
    "nccl-system-error",
    "multi-node-only",
    phase="actor",
    made="NCCL cannot open a connection to the other node's interface.",
    versions=SETS,
)
def system_error() -> str:
    stage = Stage(25, nodes=2)
    error = (
        f"{MARK}torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO "
        f"for details), NCCL version 2.27.3\n{MARK}ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n{MARK}Last error:\n"
        f"{MARK}socketPollConnect: connect returned No route to host, exceeded error retry count after 35 attempts"
    )
    warn = f"{MARK}node-1:{stage.workers[0]}:40112 [0] misc/socket.cc:568 NCCL WARN socketPollConnect: connect returned No route to host, exceeded error retry count after 35 attempts"
    told = stage.until("actor", dump=True) + stage.at(0, "\n".join([f"NCCL version 2.27.3+cuda12.9\n\n{warn}"]))
    below = (
        "workers/fsdp_workers.py 892 init_model: ) = self._build_model_optimizer(",
        "torch/distributed/distributed_c10d.py 4818 barrier: work = group.barrier(opts=opts)",
    )
    told += others(stage, "DistBackendError", error, "actor_rollout_init_model", *below, ranks=(1, 6))
    return told + back(stage, "DistBackendError", error, "actor_rollout_init_model", "init model", *below)


@log(
    "nccl-infiniband",
    "nccl-ib",
    made="An InfiniBand port goes down in step 40, and NCCL's transfers fail.",
    versions="verl=0.7.1 torch=2.8.0",
)
def infiniband() -> str:
    stage = Stage(26, nodes=4, color=0)
    told = stage.until("loop", range(28, 40))
    for rank in (9, 25):
        told += stage.at(
            rank,
            (
                f"\n{MARK}node-{rank // 8 + 1}:{stage.workers[rank]}:72011 [1] transport/net_ib.cc:2370 NCCL WARN NET/IB: Got completion from peer 10.0.0.{8 - rank // 8}<50818> with status=12 "
                "opcode=0 len=0 vendor err 129 (Send) localGid fe80::9c03:a103:f4:1b2c remoteGidsfe80::9c03:a103:f4:22e8 hca mlx5_1\n"
                f"{MARK}[rank{rank}]:[E314 13:20:11.201443911 ProcessGroupNCCL.cpp:2068] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: "
                "NCCL error: remote process exited or there was a network error, NCCL version 2.27.3\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
                "prematurely.\nLast error:\n\nException raised from checkForNCCLErrorsInternal at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2559 (most recent call first):\n"
                + ABORTED
            ),
        )
    return told + died(stage, 9)


@log(
    "nccl-duplicate-gpu",
    "nccl-duplicate-gpu",
    phase="actor",
    made="Two workers of Ray are placed on one GPU.",
    versions="verl=0.6.1 torch=2.8.0",
)
def duplicate() -> str:
    stage = Stage(27, gpus=2)
    error = (
        f"{MARK}torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.3\n"
        f"{MARK}ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n{MARK}Last error:\n{MARK}Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"
    )
    warn = f"\n{MARK}[2026-03-14 09:24:31] node-1:{stage.workers[1]}:9921 [0] init.cc:1031 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"
    told = stage.until("actor") + stage.at(1, warn)
    below = (
        "workers/fsdp_workers.py 602 _build_model_optimizer: actor_module_fsdp = FSDP(",
        "torch/distributed/utils.py 308 _sync_module_states: dist._broadcast_coalesced(",
    )
    return told + back(stage, "DistBackendError", error, "actor_rollout_init_model", "init model", *below)


@log(
    "store-timeout-two-nodes",
    "c10d-store-timeout",
    "c10d-connect-timeout",
    phase="",
    made="The second node of a torchrun job never comes.",
    versions="torch=2.6.0",
)
def store() -> str:
    said = "W0302 11:34:12.774000 7711 site-packages/torch/distributed/run.py:793] "
    return (
        f"{said}\n{said}*****************************************\n{said}Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, "
        f"please further tune the variable for optimal performance in your application as needed. \n{said}*****************************************\n"
        "[2026-03-02 11:34:20,013] [INFO] [main.py:31] rank 0/16 local 0 -> tcp://10.0.0.5:29500\n"
        "[rank0]: Traceback (most recent call last):\n"
        + "".join(
            f"[rank0]: {row}\n"
            for row in frames(
                "/home/user/sft/main.py 33 <module>: dist.init_process_group('nccl', timeout=timedelta(minutes=10))",
                "torch/distributed/c10d_logger.py 81 wrapper: return func(*args, **kwargs)",
                "torch/distributed/c10d_logger.py 95 wrapper: func_return = func(*args, **kwargs)",
                "torch/distributed/distributed_c10d.py 1714 init_process_group: store, rank, world_size = next(rendezvous_iterator)",
                "torch/distributed/rendezvous.py 278 _env_rendezvous_handler: store = _create_c10d_store(",
                "torch/distributed/rendezvous.py 198 _create_c10d_store: return TCPStore(",
            )
            .rstrip("\n")
            .split("\n")
        )
        + f"{MARK}[rank0]: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 8/16 clients joined.\n"
        "E0302 11:44:24.101000 7711 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 7790) of binary: /home/user/venv/bin/python\n"
        "Traceback (most recent call last):\n"
        + frames("/home/user/venv/bin/torchrun 8 <module>: sys.exit(main())")
        + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\nmain.py FAILED\n"
        "============================================================\n"
    )
