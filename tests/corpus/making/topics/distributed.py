"""torch.distributed with gloo, on one machine: peers that die, never come, or do another thing."""

from tests.corpus.making.scenes import scene
from tests.corpus.making.topics.programs import trainer

TORCHRUN = "$PYTHON -m torch.distributed.run --nproc_per_node"

scene(
    "gloo-training-ok",
    made="Two ranks train on gloo to the end.",
    command=f"{TORCHRUN} 2 train.py --steps 8",
    files=trainer(),
    verdict="ok",
    phase="loop",
)
scene(
    "gloo-peer-killed",
    made="Of two ranks under torchrun, rank 1 is killed with SIGKILL in step 3.",
    command=f"{TORCHRUN} 2 train.py",
    files=trainer("    if step == 3 and rank == 1:\n        os.kill(os.getpid(), signal.SIGKILL)\n    return loss"),
    root=["process-killed"],
    phase="loop",
    signs=[r"exitcode +: -9", r"failed \(exitcode: -9\)"],
    all_signs=True,
)
scene(
    "gloo-peer-raises",
    made="Of two ranks under torchrun, rank 1 raises a ValueError of its own in step 3.",
    command=f"{TORCHRUN} 2 train.py",
    files=trainer(
        "    if step == 3 and rank == 1:\n        raise ValueError('reward of sample 17 is not a number: None')\n    return loss"
    ),
    root=["unknown"],
    phase="loop",
    signs=[r"ValueError: reward of sample 17"],
    all_signs=True,
)
scene(
    "gloo-peer-absent-times-out",
    made="Rank 1 sleeps instead of joining the all-reduce; the group's timeout is 5 s.",
    command=f"PG_TIMEOUT=5 {TORCHRUN} 2 train.py",
    files=trainer("    if step == 2 and rank == 1:\n        time.sleep(40)\n    return loss"),
    root=["gloo-timeout"],
    phase="loop",
    signs=[r"Timed out waiting \d+ms for recv operation"],
    all_signs=True,
    seconds=90,
)
scene(
    "store-peer-never-comes",
    made="Rank 0 of 2 waits at init_process_group for a rank 1 that is never started; timeout 5 s.",
    command="MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 RANK=0 WORLD_SIZE=2 PG_TIMEOUT=5 $PYTHON train.py",
    files=trainer(),
    root=["c10d-store-timeout"],
    signs=[r"DistStoreError: Timed out after", r"torch.distributed.DistStoreError"],
)
scene(
    "store-rank1-no-master",
    made="Rank 1 of 2 starts alone: nothing listens at MASTER_ADDR and MASTER_PORT; timeout 5 s.",
    command="MASTER_ADDR=127.0.0.1 MASTER_PORT=29512 RANK=1 WORLD_SIZE=2 PG_TIMEOUT=5 $PYTHON train.py",
    files=trainer(),
    root=["c10d-connect-timeout"],
    signs=[r"The client socket has timed out|TCP client failed to connect|DistNetworkError: "],
    all_signs=True,
)
scene(
    "store-master-unresolvable",
    made="MASTER_ADDR is a host name that cannot be resolved.",
    command="MASTER_ADDR=gpu-head-01 MASTER_PORT=29512 RANK=1 WORLD_SIZE=2 PG_TIMEOUT=5 $PYTHON train.py",
    files=trainer(),
    root=["c10d-connect-timeout"],
    signs=[r"gpu-head-01.*(Name or service not known|Temporary failure)|gpu-head-01"],
    all_signs=True,
)
scene(
    "store-port-in-use",
    made="Another program listens on MASTER_PORT already when rank 0 starts.",
    command="""$PYTHON -c "
import socket, time
s = socket.socket(socket.AF_INET6); s.bind(('::', 29513)); s.listen(); time.sleep(60)" &
sleep 1; MASTER_ADDR=127.0.0.1 MASTER_PORT=29513 RANK=0 WORLD_SIZE=2 $PYTHON train.py""",
    files=trainer(),
    root=["port-in-use"],
    signs=[r"EADDRINUSE"],
    all_signs=True,
    seconds=40,
)
scene(
    "rank-not-set",
    made="init_process_group with the env:// method and no RANK in the environment.",
    command="""WORLD_SIZE=2 $PYTHON -c "
import torch.distributed as dist
print('Initializing process group', flush=True)
dist.init_process_group('gloo')" """,
    root=["rank-env-missing"],
    signs=[r"environment variable RANK expected"],
)
scene(
    "collective-mismatch",
    made="With TORCH_DISTRIBUTED_DEBUG=DETAIL rank 1 calls all_gather where rank 0 calls all_reduce.",
    command=f"TORCH_DISTRIBUTED_DEBUG=DETAIL {TORCHRUN} 2 train.py",
    files=trainer(
        "    if step == 2:\n        t = torch.ones(4)\n"
        "        dist.all_reduce(t) if rank == 0 else dist.all_gather([torch.ones(4) for _ in range(2)], t)\n    return loss"
    ),
    root=["collective-mismatch"],
    phase="loop",
    signs=[r"Detected mismatch between collectives on ranks"],
    all_signs=True,
)
scene(
    "shape-mismatch-detail",
    made="With TORCH_DISTRIBUTED_DEBUG=DETAIL the ranks reduce tensors of different shapes.",
    command=f"TORCH_DISTRIBUTED_DEBUG=DETAIL {TORCHRUN} 2 train.py",
    files=trainer("    if step == 2:\n        dist.all_reduce(torch.ones(4 + rank))\n    return loss"),
    root=["collective-mismatch"],
    phase="loop",
    signs=[r"Detected mismatch between collectives on ranks|Detected mismatch"],
    all_signs=True,
)
scene(
    "torchrun-script-missing",
    made="torchrun is given a script that does not exist.",
    command=f"{TORCHRUN} 2 examples/grpo_trainer/run_train.py",
    root=["unknown", "command-not-found"],
    signs=[r"can't open file"],
    all_signs=True,
)
scene(
    "nccl-without-gpu",
    made="init_process_group with the backend nccl on a machine without a GPU, torch's CPU build.",
    command="""MASTER_ADDR=127.0.0.1 MASTER_PORT=29514 RANK=0 WORLD_SIZE=1 $PYTHON -c "
import torch.distributed as dist
print('Initializing process group', flush=True)
dist.init_process_group('nccl')" """,
    root=["nccl-not-built", "cuda-no-device"],
    signs=[r"NCCL.*(not available|no GPUs found|not built)|doesn't have NCCL"],
)
scene(
    "gloo-interface-unknown",
    made="GLOO_SOCKET_IFNAME names an interface that this machine lacks.",
    command=f"GLOO_SOCKET_IFNAME=ib0 {TORCHRUN} 2 train.py",
    files=trainer(),
    root=["gloo-no-interface"],
    signs=[r"Unable to find address for: ib0|ib0"],
    all_signs=True,
)
scene(
    "gloo-stalls-one-rank-absent",
    made="Rank 1 sleeps instead of joining the all-reduce of step 3, with the timeout that verl sets; cut after 30 s.",
    command=f"PG_TIMEOUT=1800 {TORCHRUN} 2 train.py",
    files=trainer("    if step == 3 and rank == 1:\n        time.sleep(4000)\n    return loss"),
    verdict="running",
    phase="loop",
    until="step:2 - ",
    linger=15,
)
scene(
    "store-stalls-at-init",
    made="Rank 0 of 2 waits at init_process_group for a rank 1 that is never started; cut after 25 s.",
    command="MASTER_ADDR=127.0.0.1 MASTER_PORT=29515 RANK=0 WORLD_SIZE=2 $PYTHON train.py",
    files=trainer(),
    verdict="stalled",
    root=["process-group-init"],
    signs=[r"Initializing process group", r"hostname of the client socket"],
    until="Initializing process group",
    linger=15,
)
