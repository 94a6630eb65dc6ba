"""Ray on one machine: workers that die, resources that are not there, environments that cannot be made."""

from tests.corpus.making.scenes import scene

HEAD = """
import logging, os, signal, sys, time
import ray
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("main")
"""


def driver(body: str, init: str = "num_cpus=2, include_dashboard=False") -> dict[str, str]:
    """A driver on a Ray of its own."""
    return {"main.py": f"{HEAD}ray.init({init})\nlog.info('ray is up')\n{body}"}


WORKERS = """
@ray.remote(num_cpus=0.5)
class WorkerDict:
    def __init__(self, rank): self.rank = rank; print(f"worker {rank} initialised", flush=True)
    def init_model(self): time.sleep(0.2); print(f"rank {self.rank}: model initialised", flush=True); return self.rank
    def update_actor(self, step):
        return self._update(step)
    def _update(self, step):
        return {"loss": 0.1 * step}
"""
TRAIN = """
workers = [WorkerDict.remote(rank) for rank in range(2)]
ray.get([w.init_model.remote() for w in workers])
for step in range(1, 7):
    out = ray.get([w.update_actor.remote(step) for w in workers])
    print(f"step:{step} - actor/pg_loss:{out[0]['loss']:.4f} - timing_s/step:0.21 - perf/throughput:812.4", flush=True)
print("training done", flush=True)
"""


def workers(update: str) -> str:
    """Two workers and a loop; `update` is the body of a worker's update."""
    return WORKERS.replace('        return {"loss": 0.1 * step}\n', update) + TRAIN


scene(
    "ray-training-ok",
    made="Two Ray workers do six steps.",
    command="$PYTHON main.py",
    files=driver(workers('        return {"loss": 0.1 * step}\n')),
    verdict="ok",
    phase="loop",
    versions=["ray"],
)
scene(
    "ray-actor-raises",
    made="One of two Ray workers raises an error of its own in step 3.",
    command="$PYTHON main.py",
    files=driver(
        workers(
            '        if step == 3 and self.rank == 1: raise ValueError("advantages have 7 rows, log probs have 8")\n        return {"loss": 0.1 * step}\n'
        )
    ),
    root=["unknown"],
    phase="loop",
    signs=[r"ValueError: advantages have 7 rows"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-worker-killed",
    made="One of two Ray workers is killed with SIGKILL in step 3.",
    command="$PYTHON main.py",
    files=driver(
        workers(
            '        if step == 3 and self.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n        return {"loss": 0.1 * step}\n'
        )
    ),
    root=["ray-worker-crashed", "ray-actor-died", "process-killed"],
    phase="loop",
    signs=[
        r"ActorDiedError",
        r"died unexpectedly|Worker unexpectedly exits|connection error code 2|died or was killed",
    ],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-worker-segfault",
    made="One of two Ray workers crashes with a segmentation fault in step 2.",
    command="$PYTHON main.py",
    files=driver(
        workers(
            '        if step == 2 and self.rank == 1:\n            import ctypes; ctypes.string_at(0)\n        return {"loss": 0.1 * step}\n'
        )
    ),
    root=["segmentation-fault"],
    phase="loop",
    signs=[r"SIGSEGV|Segmentation fault|Fatal Python error: Segmentation"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-worker-exits",
    made="One of two Ray workers calls sys.exit in step 2.",
    command="$PYTHON main.py",
    files=driver(
        workers('        if step == 2 and self.rank == 1: os._exit(3)\n        return {"loss": 0.1 * step}\n')
    ),
    root=["ray-worker-crashed", "ray-actor-died", "unknown"],
    phase="loop",
    signs=[r"ActorDiedError", r"died unexpectedly|Worker unexpectedly exits|connection error code 2|exit code 3"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-actor-constructor",
    made="The constructor of a Ray worker fails: a package that only the driver has.",
    command="$PYTHON main.py",
    files=driver(
        """
@ray.remote
class RewardWorker:
    def __init__(self):
        import math_verify
    def score(self): return 1
ray.get(RewardWorker.remote().score.remote())
"""
    ),
    root=["module-missing"],
    signs=[r"ModuleNotFoundError: No module named 'math_verify'"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-memory-monitor",
    made="Ray's memory monitor kills a worker: the node uses more than a threshold set very low.",
    command="RAY_memory_usage_threshold=0.02 RAY_memory_monitor_refresh_ms=100 $PYTHON main.py",
    files=driver(
        """
@ray.remote(max_retries=0)
def load(): 
    held = [bytearray(os.urandom(1 << 20)) * 300 for _ in range(4)]
    time.sleep(30)
ray.get(load.remote())
"""
    ),
    root=["host-oom-killed"],
    signs=[r"ray.exceptions.OutOfMemoryError|low on memory"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-worker-oom-kernel",
    made="The kernel kills a Ray worker that outgrows the control group's memory; Ray's monitor is off.",
    command="RAY_memory_monitor_refresh_ms=0 $PYTHON main.py",
    files=driver(
        """
@ray.remote(max_restarts=0)
class Loader:
    def load(self):
        held = [bytearray(os.urandom(1 << 20)) * 200 for _ in range(40)]
        return len(held)
ray.get(Loader.remote().load.remote())
""",
        "num_cpus=1, include_dashboard=False, object_store_memory=100 << 20",
    ),
    memory=1500,
    root=["ray-worker-crashed", "ray-actor-died", "process-killed", "host-oom-killed"],
    signs=[r"ActorDiedError", r"died unexpectedly|Worker unexpectedly exits|OOM"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-object-store-full",
    made="Objects outgrow Ray's object store, and what they are spilled to is full.",
    command="mount -t tmpfs -o size=150m none /tmp/ray; $PYTHON main.py",
    files=driver(
        """
import numpy as np
held = []
for n in range(20):
    held.append(ray.put(np.ones(6 << 20)))
    log.info("put %d", n)
""",
        "num_cpus=1, include_dashboard=False, object_store_memory=100 << 20",
    ),
    root=["ray-disk-full", "ray-object-store-full", "disk-full"],
    signs=[r"ObjectStoreFullError|OutOfDiskError|No space left on device|object store is full|over .*% full"],
    all_signs=True,
    versions=["ray"],
    seconds=100,
)
scene(
    "ray-pending-gpus",
    made="A placement group asks for 8 GPUs, which the cluster has not; cut after 45 s.",
    command="$PYTHON main.py",
    files=driver(
        """
from ray.util.placement_group import placement_group
pg = placement_group([{"GPU": 1, "CPU": 1}] * 8, strategy="STRICT_PACK")
log.info("waiting for the resource pool")
ray.get(pg.ready())
"""
    ),
    verdict="stalled",
    root=["ray-resources-pending"],
    signs=[r"cannot be scheduled right now|No available node types can fulfill"],
    all_signs=True,
    versions=["ray"],
    seconds=45,
)
scene(
    "ray-pending-actor",
    made="A worker asks for a GPU, which the cluster has not, and ray.get waits for it; cut after 45 s.",
    command="$PYTHON main.py",
    files=driver(WORKERS.replace("num_cpus=0.5", "num_gpus=1") + TRAIN),
    verdict="stalled",
    root=["ray-resources-pending"],
    signs=[r"cannot be scheduled right now|No available node types can fulfill"],
    all_signs=True,
    versions=["ray"],
    seconds=45,
)
scene(
    "ray-get-times-out",
    made="A worker never answers; ray.get has a timeout of 5 s.",
    command="$PYTHON main.py",
    files=driver(
        """
@ray.remote
def sync_weights(): time.sleep(1000)
log.info("Starting weight synchronization")
ray.get(sync_weights.remote(), timeout=5)
"""
    ),
    root=["ray-get-timeout", "weight-sync-timeout"],
    signs=[r"GetTimeoutError"],
    versions=["ray"],
)
scene(
    "ray-get-never-returns",
    made="A worker waits for a lock that is never released and ray.get for the worker; cut after 30 s.",
    command="$PYTHON main.py",
    files=driver(
        workers(
            '        if step == 3:\n            import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()\n        return {"loss": 0.1 * step}\n'
        )
    ),
    verdict="running",
    phase="loop",
    versions=["ray"],
    until="step:2 - ",
    linger=20,
)
scene(
    "ray-runtime-env-working-dir",
    made="The runtime environment names a working_dir that does not exist.",
    command="$PYTHON main.py",
    files={
        "main.py": HEAD
        + "ray.init(num_cpus=1, include_dashboard=False, runtime_env={'working_dir': '/home/user/verl_fork'})\n"
    },
    root=["ray-runtime-env-failed"],
    signs=[r"ValueError|is not a valid|must be"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-runtime-env-pip",
    made="The runtime environment asks pip for a package that cannot be had: no network.",
    command="$PYTHON main.py",
    files=driver(
        """
@ray.remote(runtime_env={"pip": ["math-verify==0.8.0"]})
def score(): return 1
print(ray.get(score.remote()))
"""
    ),
    root=["ray-runtime-env-failed"],
    signs=[r"RuntimeEnvSetupError"],
    all_signs=True,
    versions=["ray"],
    seconds=200,
)
scene(
    "ray-no-cluster",
    made="ray.init(address='auto') where no Ray runs.",
    command="$PYTHON main.py",
    files={"main.py": HEAD + "ray.init(address='auto')\n"},
    root=["ray-not-started"],
    signs=[r"ConnectionError|Could not find any running Ray"],
    versions=["ray"],
)
scene(
    "ray-head-unreachable",
    made="ray.init with the address of a head at which nothing listens.",
    command="$PYTHON main.py",
    files={"main.py": HEAD + "ray.init(address='127.0.0.1:6399')\n"},
    root=["ray-gcs-unreachable"],
    signs=[r"Failed to connect to GCS|Unable to connect to GCS|Failed to get.*GCS|ConnectionError|RpcError"],
    all_signs=True,
    versions=["ray"],
    seconds=150,
)
scene(
    "ray-gcs-port-in-use",
    made="ray start --head where another program listens on the port.",
    command="""$PYTHON -c "
import socket, time
s = socket.socket(); s.bind(('0.0.0.0', 6379)); s.listen(); time.sleep(100)" &
sleep 1; ray start --head --port 6379 --num-cpus 1 --include-dashboard=false --block""",
    root=["port-in-use", "ray-address-in-use"],
    signs=[r"6379.*(in use|already)|already in use|Address already in use|Failed to (bind|start)"],
    all_signs=True,
    versions=["ray"],
    seconds=90,
)
scene(
    "ray-register-timeout",
    made="Ray is told of 48 cores on a machine of two and prestarts as many workers, which have 3 s to register.",
    command="RAY_worker_register_timeout_seconds=3 timeout 60 $PYTHON main.py",
    files=driver(
        """
@ray.remote(num_cpus=1)
class Worker:
    def ping(self): return os.getpid()
held = [Worker.remote() for _ in range(12)]
ray.get([w.ping.remote() for w in held])
print("all up")
""",
        "num_cpus=48, include_dashboard=False",
    ),
    root=["ray-register-timeout", "ray-unable-to-register"],
    signs=[r"not registered within the timeout|Unable to register worker with raylet|[Ff]ailed to register"],
    all_signs=True,
    versions=["ray"],
    seconds=80,
)
scene(
    "ray-raylet-killed",
    made="The raylet is killed with SIGKILL in step 3.",
    command="$PYTHON main.py",
    files=driver(
        workers("""        if step == 3 and self.rank == 0:
            import subprocess, psutil
            for p in psutil.process_iter(["cmdline"]):
                if p.info["cmdline"] and p.info["cmdline"][0].endswith("raylet/raylet") and p.ppid() == psutil.Process(os.getppid()).ppid() and os.getppid() == p.pid: p.kill()
            if psutil.Process(os.getppid()).name() == "raylet": os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(20)
        return {"loss": 0.1 * step}
""")
    ),
    root=["ray-raylet-died", "ray-node-died"],
    phase="loop",
    signs=[r"[Rr]aylet.*(died|dead|exit|terminated)|node.*(died|dead)|Local raylet died"],
    all_signs=True,
    versions=["ray"],
    seconds=120,
)
scene(
    "ray-gcs-killed",
    made="Ray's GCS is killed with SIGKILL in step 3.",
    command="$PYTHON main.py",
    files=driver(
        workers("""        if step == 3 and self.rank == 0:
            import psutil
            session = ray._private.worker.global_worker.node.session_name
            for p in psutil.process_iter(["name", "cmdline"]):
                if p.info["name"] == "gcs_server" and session in " ".join(p.info["cmdline"]): p.kill()
            time.sleep(150)
        return {"loss": 0.1 * step}
""")
    ),
    root=["ray-gcs-unreachable"],
    phase="loop",
    signs=[r"[Ff]ailed to connect to GCS|GCS.*(died|dead|down|unavailable|within)"],
    all_signs=True,
    versions=["ray"],
    seconds=160,
)
scene(
    "ray-cannot-serialize",
    made="A lock is passed to a Ray task: it cannot be pickled.",
    command="$PYTHON main.py",
    files=driver(
        """
import threading
lock = threading.Lock()
@ray.remote
def work(): return lock.locked()
ray.get(work.remote())
"""
    ),
    root=["ray-serialization", "unknown"],
    signs=[r"TypeError: cannot pickle|Could not serialize"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-temp-dir-full",
    made="The folder that Ray puts its session into is on a full file system.",
    command="mkdir t; mount -t tmpfs -o size=40k none t; head -c 30000 /dev/zero > t/held; $PYTHON main.py",
    files=driver("", "num_cpus=1, include_dashboard=False, _temp_dir=os.path.abspath('t')"),
    root=["unknown", "disk-full", "ray-tmp-full", "ray-disk-full"],
    signs=[r"The current node timed out during startup|No space left on device"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-temp-dir-too-long",
    made="The folder that Ray puts its session into has a path too long for a socket.",
    command="$PYTHON main.py",
    files=driver("", "num_cpus=1, include_dashboard=False, _temp_dir='/tmp/corpus-' + 'x' * 90"),
    root=["socket-path-too-long"],
    signs=[r"AF_UNIX path|validate_socket_filename|too long"],
    all_signs=True,
    versions=["ray"],
)
scene(
    "ray-retried-task-ok",
    made="A Ray task's worker is killed once, the task is retried and the job ends well.",
    command="$PYTHON main.py",
    files=driver(
        """
@ray.remote(max_retries=3)
def rollout(n):
    if n == 2 and not os.path.exists("tried"):
        open("tried", "w").close(); os.kill(os.getpid(), signal.SIGKILL)
    return n
for step in range(1, 7):
    ray.get([rollout.remote(n) for n in range(4)])
    print(f"step:{step} - critic/rewards/mean:0.{step} - timing_s/step:0.4", flush=True)
log.info("done")
"""
    ),
    verdict="running",
    phase="loop",
    versions=["ray"],
)
scene(
    "ray-handled-errors-ok",
    made="Rewards raise now and then; the caller logs each traceback and goes on.",
    command="$PYTHON main.py",
    files=driver(
        """
@ray.remote
def score(n):
    if n == 3: raise TimeoutError("math_verify took longer than 5 s")
    return 1.0
for step in range(1, 9):
    rewards = []
    for n in range(5):
        try: rewards.append(ray.get(score.remote(n)))
        except Exception: log.exception("Error in computing the reward of sample %d, counted as 0", n); rewards.append(0.0)
    print(f"step:{step} - critic/rewards/mean:{sum(rewards) / 5:.3f} - timing_s/step:0.4", flush=True)
"""
    ),
    verdict="running",
    phase="loop",
    versions=["ray"],
)
