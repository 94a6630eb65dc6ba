"""Ray over several nodes: nodes that die, resources that are too few, workers that cannot register."""

from tests.corpus.making.rebuilt.failing import HYDRA, OVERRIDES, frames, runner
from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage
from tests.corpus.making.rebuilt.topics.between_ranks import died

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"
NODE = "8f1b7c0e5d3a29464e0b91d75c6a8f23e1047db95a6c3e82f0d41b77"


def at_driver(*blocks: str) -> str:
    return f"{OVERRIDES}\nTraceback (most recent call last):\n{frames(*blocks)}"


@log("ray-node-died", "ray-node-died", made="The second node is switched off in step 31.", versions=SETS)
def node_died() -> str:
    stage = Stage(31, nodes=2)
    told = stage.until("loop", range(20, 31), dump=True)
    told += (
        f"{MARK}\x1b[33m(raylet, ip=10.0.0.6)\x1b[0m The node with node id: {NODE} and address: 10.0.0.6 and node name: 10.0.0.6 has been marked dead because the detector has missed too "
        "many heartbeats from it. This can happen when a \t(1) raylet crashes unexpectedly (OOM, etc.) \n\t(2) raylet has lagging heartbeats due to slow network or busy workload.\n"
    )
    told += at_driver("driver") + runner(stage, "ActorDiedError") + frames("fit update")
    return told + (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict\n"
        f"\tactor_id: 2f0be3b94a6f3dd8ba82c8a501000000\n\tpid: {stage.workers[8]}\n\tname: mG3v1EWorkerDict_0:8\n\tip: 10.0.0.6\n"
        f"{MARK}The actor died because its node has died. Node Id: {NODE}\n{MARK}\tthe actor's node was terminated: health check failed due to missing too many heartbeats\n{HYDRA}"
    )


@log(
    "ray-too-few-gpus",
    "ray-too-few-gpus",
    phase="resource-pool",
    made="The run asks for two nodes of eight GPUs, and one has joined.",
    versions=SETS,
)
def too_few() -> str:
    stage = Stage(32, nodes=2)
    told = stage.until("dataset", dump=True) + stage.data() + at_driver("driver") + runner(stage, "ValueError")
    told += frames(
        "trainer/main_ppo.py 356 run: trainer.init_workers()",
        "trainer/ppo/ray_trainer.py 694 init_workers: self.resource_pool_manager.create_resource_pool()",
        "trainer/ppo/ray_trainer.py 97 create_resource_pool: self._check_resource_available()",
        "trainer/ppo/ray_trainer.py 120 _check_resource_available: raise ValueError(",
    )
    return told + f"{MARK}ValueError: Total available GPUs 8.0 is less than total desired GPUs 16\n{HYDRA}"


@log(
    "raylet-oom-kill",
    "host-oom-killed",
    made="Ray's memory monitor kills a worker because the node's memory is used up at a checkpoint.",
    versions=SETS,
)
def raylet_oom() -> str:
    stage = Stage(33)
    told = stage.until("loop", range(1, 20)) + stage.run(
        "local_global_step_folder: checkpoints/gsm8k/qwen/global_step_20"
    )
    reason = (
        f"{MARK}Memory on the node (IP: 10.0.0.5, ID: {NODE}) where the task (actor ID: 63b8f3e7a2b1c74c0d4f1a6501000000, name=WorkerDict.__init__, pid={stage.workers[0]}, "
        "memory used=171.40GB) was running was 958.23GB / 1007.47GB (0.951124), which exceeds the memory usage threshold of 0.95. Ray killed this worker "
        "(ID: 5d6ee1f1b5ab0f0e7bb5) because it was the most recently scheduled task; to see more information about memory usage on this node, use `ray logs raylet.out -ip 10.0.0.5`. "
        "To see the logs of the worker, use `ray logs worker-5d6ee1f1b5ab0f0e7bb5*out -ip 10.0.0.5. Top 10 memory users:\nPID\tMEM(GB)\tCOMMAND\n"
        + "".join(
            f"{pid}\t{171.4 - n * 4.3:.2f}\tray::WorkerDict.actor_rollout_save_checkpoint\n"
            for n, pid in enumerate(stage.workers)
        )
        + "Refer to the documentation on how to address the out of memory issue: https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html. Consider provisioning more memory "
        "on this node or reducing task parallelism by requesting more CPUs per task. To adjust the kill threshold, set the environment variable `RAY_memory_usage_threshold` when starting Ray. "
        "To disable worker killing, set the environment variable `RAY_memory_monitor_refresh_ms` to zero."
    )
    told += (
        at_driver("driver")
        + runner(stage, "OutOfMemoryError")
        + frames("fit save")
        + f"{MARK}ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n{reason}\n{HYDRA}"
    )
    return told + (
        f"{MARK}\x1b[33m(raylet)\x1b[0m [2026-03-14 09:58:05,551 E 3711 3711] (raylet) node_manager.cc:3041: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to "
        f"other reasons at node (ID: {NODE}, IP: 10.0.0.5) over the last time period. To see more information about the Workers killed on this node, use `ray logs raylet.out -ip 10.0.0.5`\n"
    )


@log(
    "ray-unable-to-register",
    "ray-unable-to-register",
    phase="",
    made="The driver cannot register with a raylet that has ended already.",
    versions="verl=0.7.1 ray=2.48.0",
)
def unable() -> str:
    return (
        "2026-03-14 09:21:07,612\tINFO worker.py:1747 -- Connecting to existing Ray cluster at address: 10.0.0.5:6379...\n"
        f"{MARK}[2026-03-14 09:21:37,671 E 5120 5120] core_worker.cc:513: Failed to register worker to Raylet: IOError: [RayletClient] Unable to register worker with raylet. Failed to read data from "
        "the socket: End of file worker_id=01000000ffffffffffffffffffffffffffffffffffffffffffffffff\n"
    )


@log("ray-gcs-unreachable", "ray-gcs-unreachable", made="The head node's GCS goes away in step 55.", versions=SETS)
def gcs() -> str:
    stage = Stage(35, nodes=2, color=0)
    told = stage.until("loop", range(48, 55))
    told += "".join(
        f"{MARK}[2026-03-14 11:0{n}:01,044 W {stage.runner} 8123] (core_worker) gcs_rpc_client.h:151: Failed to connect to GCS at address 10.0.0.5:6379 within 5 seconds.\n"
        for n in range(4)
    )
    return told + (
        f"{MARK}[2026-03-14 11:04:22,981 C {stage.runner} 8123] gcs_rpc_client.h:641: Failed to connect to GCS within 60 seconds. GCS may have been killed. It's either GCS is terminated by `ray stop` or is killed "
        "unexpectedly. If it is killed unexpectedly, see the log file gcs_server.out. https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html#logging-directory-structure. The "
        "program will terminate.\n*** StackTrace Information ***\n/home/user/venv/lib/python3.11/site-packages/ray/_raylet.so(+0x14a2c3a) [0x7f0dd1b8cc3a] ray::operator<<()\n"
        "/home/user/venv/lib/python3.11/site-packages/ray/_raylet.so(_ZN3ray6RayLogD1Ev+0x479) [0x7f0dd1b8f2f9] ray::RayLog::~RayLog()\n"
    )


@log(
    "ray-worker-aborted-silently",
    "ray-worker-crashed",
    "ray-actor-died",
    "process-killed",
    made="A worker ends without a word of its own; only Ray tells of it.",
    versions=SETS,
)
def silent() -> str:
    stage = Stage(36)
    told = stage.until("loop", range(1, 5))
    return told + "".join(
        MARK + row + "\n" if "died" in row or "dead" in row else row + "\n"
        for row in died(stage, 4).rstrip("\n").split("\n")
    )


@log(
    "ray-runtime-env",
    "ray-runtime-env-failed",
    phase="config",
    made="A runtime environment asks pip for a package that does not exist.",
    versions="verl=0.8.0 ray=2.55.1",
)
def runtime_env() -> str:
    stage = Stage(37, verl="0.8.0")
    return (
        stage.ray()
        + "\x1b[33m(raylet)\x1b[0m [2026-03-14 09:21:31,907 E 3101 3101] (raylet) worker_pool.cc:618: [Eagerly] Couldn't create a runtime environment for job 01000000.\n"
        + at_driver("driver")
        + f"{MARK}ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.\nTraceback (most recent call last):\n"
        + frames(
            "ray/_private/runtime_env/agent/runtime_env_agent.py 391 _create_runtime_env_with_retry: runtime_env_context = await asyncio.wait_for(",
            "ray/_private/runtime_env/pip.py 303 _run: await self._install_pip_packages(",
            "ray/_private/runtime_env/utils.py 91 check_output_cmd: raise SubprocessCalledProcessError(",
        )
        + "ray._private.runtime_env.utils.SubprocessCalledProcessError: Run cmd[4] failed with the following details.\nCommand '['/tmp/ray/session_2026-03-14_09-21-04_112_3001/runtime_resources/pip/"
        "e3c1/virtualenv/bin/python', '-m', 'pip', 'install', '--disable-pip-version-check', '--no-cache-dir', '-r', '/tmp/ray/session_2026-03-14_09-21-04_112_3001/runtime_resources/pip/e3c1/requirements.txt']' "
        "returned non-zero exit status 1.\nLast 50 lines of stdout:\n    ERROR: Could not find a version that satisfies the requirement math-verify==9.9 (from versions: 0.1.0, 0.5.2, 0.8.0)\n"
        f"    ERROR: No matching distribution found for math-verify==9.9\n{HYDRA}"
    )
