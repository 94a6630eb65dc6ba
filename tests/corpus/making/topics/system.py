"""The machine itself: disks, memory, limits, signals."""

from tests.corpus.making.scenes import scene
from tests.corpus.making.topics.programs import trainer

scene(
    "disk-full-at-checkpoint",
    made="Checkpoints go to a file system of 300 kB, which is full in step 3.",
    command="mkdir ckpt; mount -t tmpfs -o size=300k none ckpt; $PYTHON train.py --save ckpt",
    files=trainer(),
    root=["disk-full", "checkpoint-save-failed"],
    phase="loop",
    signs=[r"No space left on device|PytorchStreamWriter failed writing file|basic_ios::clear|unexpected pos \d+ vs"],
    all_signs=True,
)
scene(
    "disk-full-plain-file",
    made="Writing rollouts as JSON lines to a full file system, from a plain script.",
    command="""mkdir out; mount -t tmpfs -o size=64k none out; $PYTHON - <<'END'
import json, logging
logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s - %(message)s")
with open("out/rollouts.jsonl", "w") as out:
    for i in range(100000):
        out.write(json.dumps({"index": i, "response": "x" * 200}) + "\\n")
        if i % 100 == 0:
            out.flush(); logging.info("wrote %d rollouts", i)
END""",
    root=["disk-full"],
    signs=[r"No space left on device"],
    all_signs=True,
    versions=[],
)
scene(
    "disk-read-only",
    made="The checkpoint folder is on a file system that is mounted read-only.",
    command="mkdir ckpt; mount -t tmpfs -o ro none ckpt; $PYTHON train.py --save ckpt",
    files=trainer(),
    root=["read-only-filesystem", "checkpoint-save-failed"],
    phase="loop",
    signs=[r"Read-only file system|Parent directory .* (does not exist|is not writable)|cannot be opened"],
    all_signs=True,
)
scene(
    "permission-denied-checkpoint",
    made="A user without rights on the checkpoint folder saves to it.",
    command="""mkdir ckpt; chmod 755 . ckpt; cat > save.py <<'END'
import os
print("local_global_step_folder: ckpt/global_step_20", flush=True)
os.makedirs("ckpt/global_step_20/actor")
END
setpriv --reuid 65534 --clear-groups /usr/bin/python3 save.py""",
    root=["no-permission"],
    signs=[r"PermissionError: \[Errno 13\]"],
    versions=[],
)
scene(
    "too-many-open-files",
    made="A process under ulimit -n 64 opens one file after another.",
    command="""ulimit -n 64; $PYTHON - <<'END'
import logging, pathlib
logging.basicConfig(level=logging.INFO)
held = []
for shard in range(100):
    path = pathlib.Path(f"shard-{shard}.jsonl"); path.touch()
    held.append(path.open()); logging.info("opened %s", path)
END""",
    root=["too-many-open-files"],
    signs=[r"Too many open files"],
    versions=[],
)
scene(
    "threads-openblas",
    made="numpy is imported by a user under a tight ulimit -u, with OpenBLAS asking for 64 threads.",
    command="""chmod 755 .
export OPENBLAS_NUM_THREADS=64 HOME=/tmp; setpriv --reuid 64999 --clear-groups prlimit --nproc=1:1 $PYTHON -c "import numpy; print(numpy.__version__)" """,
    root=["process-limit", "pthread-create"],
    signs=[r"pthread_create failed"],
    all_signs=True,
    versions=["numpy"],
)
scene(
    "threads-python",
    made="A user under a tight ulimit -u starts threads in Python.",
    command="""HOME=/tmp setpriv --reuid 64998 --clear-groups prlimit --nproc=20:20 $PYTHON - <<'END'
import threading, time
from concurrent.futures import ThreadPoolExecutor
print("Starting 64 reward workers", flush=True)
pool = ThreadPoolExecutor(64)
list(pool.map(lambda i: time.sleep(0.5), range(64)))
END""",
    root=["process-limit", "pthread-create"],
    signs=[r"can't start new thread"],
    versions=[],
)
scene(
    "oom-killed-by-kernel",
    made="A training grows beyond its control group's memory and the kernel kills it; the shell says so.",
    command="bash run.sh",
    files={
        **trainer("    globals().setdefault('kept', []).append(bytearray(os.urandom(1 << 20)) * 200)\n    return loss"),
        "run.sh": 'set -x\nexport VLLM_LOGGING_LEVEL=WARN\n$PYTHON train.py --steps 50\necho "exit code $?"\n',
    },
    memory=1200,
    root=["process-killed", "host-oom-killed"],
    phase="loop",
    signs=[r"Killed"],
)
scene(
    "host-memory-refused",
    made="Under ulimit -v a tensor is asked for that torch's CPU allocator cannot get.",
    command="ulimit -v 12000000; $PYTHON train.py",
    files=trainer("    if step == 3:\n        torch.empty(1 << 34)\n    return loss"),
    root=["cannot-allocate-memory"],
    phase="loop",
    signs=[r"DefaultCPUAllocator: can't allocate memory|not enough memory"],
)
scene(
    "memory-error-python",
    made="Under ulimit -v a list of responses outgrows memory: MemoryError.",
    command="""ulimit -v 3000000; $PYTHON - <<'END'
print("Loading responses", flush=True)
held = []
while True:
    held.append("x" * (64 << 20))
END""",
    root=["cannot-allocate-memory"],
    signs=[r"^MemoryError"],
    versions=[],
)
scene(
    "sigterm-by-scheduler",
    made="A batch system ends the training with SIGTERM in step 4; torchrun says so.",
    command="$PYTHON -m torch.distributed.run --nproc_per_node 2 train.py --steps 60 --pause 1 & p=$!; sleep 14; kill -TERM $p; wait $p",
    files=trainer(),
    root=["terminated-by-signal"],
    phase="loop",
    signs=[r"got signal: 15|Received Signals.SIGTERM|Received 15 death signal"],
    all_signs=True,
)
scene(
    "ctrl-c-in-loop",
    made="Ctrl-C in step 4 of a training.",
    command="""set -m; $PYTHON train.py --steps 60 --pause 1 & p=$!; sleep 12; kill -INT $p; wait $p""",
    files=trainer(),
    root=["interrupted-by-user", "terminated-by-signal"],
    phase="loop",
    signs=[r"^KeyboardInterrupt"],
)
scene(
    "segfault-faulthandler",
    made="A native crash in step 3, with faulthandler on, run from a shell script.",
    command="bash run.sh",
    files={
        **trainer("    if step == 3:\n        import ctypes; ctypes.string_at(0)\n    return loss"),
        "run.sh": "$PYTHON -X faulthandler train.py\n",
    },
    root=["segmentation-fault"],
    phase="loop",
    signs=[r"Segmentation fault"],
    all_signs=True,
)
scene(
    "segfault-bare",
    made="A native crash in step 3 without faulthandler: only the shell tells.",
    command="bash run.sh",
    files={
        **trainer("    if step == 3:\n        import ctypes; ctypes.string_at(0)\n    return loss"),
        "run.sh": "$PYTHON train.py\nexit $?\n",
    },
    root=["segmentation-fault"],
    phase="loop",
    signs=[r"Segmentation fault"],
)
scene(
    "shm-too-small",
    made="A DataLoader with two workers on a /dev/shm of 1 MB: the worker dies of a bus error.",
    command="mount -t tmpfs -o size=1m none /dev/shm; $PYTHON load.py",
    files={
        "load.py": """
import torch
from torch.utils.data import DataLoader, Dataset
class Prompts(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.zeros(1 << 18)
print("Using dataset class: Prompts", flush=True)
for n, batch in enumerate(DataLoader(Prompts(), batch_size=8, num_workers=2)):
    print("batch", n, tuple(batch.shape), flush=True)
""",
    },
    root=["shm-bus-error"],
    signs=[r"bus error|Bus error|insufficient shared memory|No space left on device"],
    all_signs=True,
)
scene(
    "dataloader-worker-raises",
    made="A DataLoader worker raises on one sample.",
    command="$PYTHON load.py",
    files={
        "load.py": """
import torch
from torch.utils.data import DataLoader, Dataset
class Prompts(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        row = {"prompt": "what is one plus two?"} if i != 37 else {}
        return len(row["prompt"])
print("Using dataset class: Prompts", flush=True)
for n, batch in enumerate(DataLoader(Prompts(), batch_size=8, num_workers=2)):
    print("batch", n, batch.tolist(), flush=True)
""",
    },
    root=["unknown", "data-column-missing"],
    phase="dataset",
    signs=[r"^KeyError: 'prompt'", r"Caught KeyError in DataLoader worker"],
)
scene(
    "dataloader-worker-killed",
    made="A DataLoader worker is killed with SIGKILL while it loads.",
    command="$PYTHON load.py",
    files={
        "load.py": """
import os, signal, torch
from torch.utils.data import DataLoader, Dataset
class Prompts(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        if i == 40: os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(4)
if __name__ == "__main__":
    print("Using dataset class: Prompts", flush=True)
    for n, batch in enumerate(DataLoader(Prompts(), batch_size=8, num_workers=2)):
        print("batch", n, tuple(batch.shape), flush=True)
""",
    },
    root=["dataset-worker-died", "process-killed"],
    phase="dataset",
    signs=[r"DataLoader worker \(pid.*\) (is killed by signal|exited unexpectedly)"],
    all_signs=True,
)
scene(
    "nan-loss",
    made="From step 4 on the loss is nan; the training goes on to the end.",
    command="$PYTHON train.py --steps 12",
    files=trainer("    return loss * float('nan') if step >= 4 else loss"),
    verdict="ok",
    root=["loss-or-gradient-nan"],
    phase="loop",
    signs=[r"actor/pg_loss:nan", r"actor/grad_norm:nan"],
    all_signs=True,
)
scene(
    "module-not-found",
    made="A training script imports a package that is not installed.",
    command="$PYTHON main.py",
    files={
        "main.py": "import torch\nprint('torch', torch.__version__, flush=True)\nfrom lightrft.trainer import PPOTrainer\n"
    },
    root=["module-missing", "package-not-installed"],
    signs=[r"ModuleNotFoundError: No module named 'lightrft'"],
)
