"""Failures of smaller scope: names that shadow, groups made twice, wrong signals, broken files."""

from tests.corpus.making.scenes import scene
from tests.corpus.making.topics.distributed import TORCHRUN
from tests.corpus.making.topics.on_ray import HEAD, driver
from tests.corpus.making.topics.on_verl import verl
from tests.corpus.making.topics.programs import trainer


def script(name: str, text: str, head: str = "", **told: object) -> None:
    """A Python script in the runtime environment."""
    scene(name, command=f"{head}$PYTHON main.py", files={"main.py": text.lstrip()}, **{"versions": [], **told})


script("module-shadowed", "import ray\nray.init(num_cpus=1)\n", head="echo 'import json' > ray.py; ", made="A file ray.py of the user's stands before Ray.",
       root=["module-shadowed", "circular-import"], signs=[r"module 'ray' has no attribute 'init'"])  # fmt: skip
script("circular-import", "import rewards\n", head="echo 'from scores import score' > rewards.py; echo 'from rewards import table; score = 1' > scores.py; ",
       made="Two modules of a fork import each other.", root=["circular-import"], signs=[r"partially initialized module|circular import"])  # fmt: skip
script("bytecode-broken", "import helper\n", head="""echo 'x = 1' > helper.py; $PYTHON -m compileall -q helper.py; f=$(ls __pycache__/*.pyc); head -c 20 $f > t; mv t $f; """,
       made="A compiled module is cut short, as after a full disk.", root=["bytecode-broken"], signs=[r"EOFError: marshal data too short|bad marshal|ValueError"])  # fmt: skip
script("fork-no-memory", """import subprocess
print("Starting the reward server", flush=True)
held = bytearray(800 << 20)
import resource
resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))
import os
os.fork()
import mmap
mmap.mmap(-1, 2 << 30)
""", made="Under a limit of address space more memory is asked of the system.", root=["cannot-allocate-memory"], signs=[r"Cannot allocate memory"])  # fmt: skip
scene("native-abort", made="A C++ library throws an exception that nobody catches.", command="g++ -shared -fPIC -o libthrow.so throw.cpp && bash run.sh",
      files={"throw.cpp": '#include <stdexcept>\nextern "C" void go() { throw std::runtime_error("ring buffer overrun"); }\nextern "C" void quiet() noexcept { go(); }\n',
             "main.py": "import ctypes\nprint('Initializing sampler', flush=True)\nctypes.CDLL('./libthrow.so').quiet()\n", "run.sh": "$PYTHON main.py\nexit $?\n"},
      root=["native-abort"], signs=[r"terminate called|what\(\)|Aborted|ring buffer"], all_signs=True, versions=[])  # fmt: skip
scene("rendezvous-fails", made="torchrun for two nodes, of which the second never comes; it waits 8 s.",
      command="$PYTHON -m torch.distributed.run --nnodes 2 --nproc_per_node 1 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29611 --rdzv-conf join_timeout=8 train.py",
      files=trainer(), root=["rendezvous-failed"], signs=[r"RendezvousTimeoutError|RendezvousClosedError|RendezvousConnectionError"], all_signs=True, seconds=60)  # fmt: skip
scene("monitored-barrier", made="Rank 1 does not come to a monitored barrier within 5 s.", command=f"{TORCHRUN} 2 train.py",
      files=trainer("    if step == 2:\n        from datetime import timedelta\n        if rank == 1: time.sleep(25)\n        dist.monitored_barrier(timeout=timedelta(seconds=5))\n    return loss"),
      root=["monitored-barrier"], phase="loop", signs=[r"monitoredBarrier"], all_signs=True, seconds=80)  # fmt: skip
scene("process-group-twice", made="The default process group is made twice.", command=f"{TORCHRUN} 1 main.py",
      files={"main.py": "import torch.distributed as dist\ndist.init_process_group('gloo')\ndist.init_process_group('gloo')\n"}, root=["process-group-twice"],
      signs=[r"initialize the default process group twice"], all_signs=True)  # fmt: skip
scene("process-group-missing", made="A collective without a process group.", command="$PYTHON main.py",
      files={"main.py": "import torch, torch.distributed as dist\nprint('weight sync', flush=True)\ndist.broadcast(torch.ones(2), 0)\n"}, root=["process-group-missing"],
      signs=[r"Default process group has not been initialized"])  # fmt: skip
scene("ray-actor-name-taken", made="Two actors are given the same name.", command="$PYTHON main.py",
      files=driver("@ray.remote\nclass A: pass\na = A.options(name='register_center').remote()\nb = A.options(name='register_center').remote()\n"),
      root=["ray-actor-name-taken"], signs=[r"already exists|has already been taken|already taken"], versions=["ray"])  # fmt: skip
scene("ray-actor-missing", made="An actor is asked for by a name that none has.", command="$PYTHON main.py",
      files=driver("ray.get_actor('vllm_server_0_0')\n"), root=["ray-actor-missing"], signs=[r"Failed to look up actor"], versions=["ray"])  # fmt: skip
scene("ray-init-twice", made="ray.init is called twice.", command="$PYTHON main.py", files=driver("ray.init(num_cpus=1)\n"), root=["ray-init-twice"],
      signs=[r"Maybe you called ray.init twice by accident"], versions=["ray"])  # fmt: skip
scene("ray-not-initialised", made="ray.init with a client address that nobody serves.", command="$PYTHON main.py", files={"main.py": HEAD + "ray.init('ray://127.0.0.1:10001')\n"},
      root=["ray-gcs-unreachable", "ray-not-started"], signs=[r"ConnectionError|ray client connection timeout|ModuleNotFoundError"], versions=["ray"], seconds=90)  # fmt: skip
scene("ray-auth-token", made="A driver without the token of a cluster that was started with one.", command="""ray start --head --port 6383 --num-cpus 1 --include-dashboard=false
RAY_AUTH_MODE=disabled $PYTHON -c "import ray; ray.init(address='127.0.0.1:6383')" """, root=["unknown", "ray-gcs-unreachable"],
      signs=[r"AuthenticationError|InvalidAuthToken"], all_signs=True, versions=["ray"])  # fmt: skip
scene("ray-version-mismatch", made="A driver of Ray 2.55.1 joins a cluster of 2.60.0.",
      command="""export RAY_AUTH_MODE=disabled; ray start --head --port 6384 --num-cpus 1 --include-dashboard=false
PYTHONPATH=$OVERLAYS/ray-2.55.1 $PYTHON -c "import ray; print(ray.__version__); ray.init(address='127.0.0.1:6384')" """, root=["ray-version-mismatch"],
      signs=[r"Version mismatch"], versions=["ray", "ray==2.55.1"])  # fmt: skip
scene("inductor-cache-denied", made="A user compiles with a cache folder that is another's.",
      command="""mkdir c; chmod 755 c . ; HOME=/tmp TORCHINDUCTOR_CACHE_DIR=$PWD/c setpriv --reuid 65531 --clear-groups $PYTHON main.py""",
      files={"main.py": "import torch\nprint(torch.compile(lambda x: x.sin() + 1)(torch.ones(9)))\n"}, root=["cache-not-writable", "no-permission"],
      signs=[r"PermissionError|Permission denied"], all_signs=True)  # fmt: skip
script("type-error-own", "def compute_score(solution_str, ground_truth):\n    return 1.0\n\nprint('scoring', flush=True)\ncompute_score(data_source='gsm8k', solution_str='3', ground_truth='3', extra_info=None)\n",
       made="A reward function of a fork does not take the arguments that verl gives.", root=["unknown", "reward-function-broken", "reward-function-raised"],
       signs=[r"TypeError: compute_score"])  # fmt: skip
script("assertion-own", "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('checking batches')\nrows = [1, 2, 3]\nassert len(rows) % 2 == 0, 'rows must come in pairs'\n",
       made="An assertion of a fork's own fails.", root=["unknown"], signs=[r"AssertionError: rows must come in pairs"])  # fmt: skip
script("chained-own", """class CurriculumError(Exception): pass
def pick(level):
    try: return {"easy": 1}[level]
    except KeyError as error: raise CurriculumError(f"no such level: {level}") from error
print("curriculum: hard", flush=True)
pick("hard")
""", made="An error of a fork's own, raised from a KeyError.", root=["unknown"], signs=[r"CurriculumError: no such level|^KeyError: 'hard'"], all_signs=True)  # fmt: skip
scene("wandb-protobuf", made="wandb 0.23 with a protobuf that is too new for it.", command="PYTHONPATH=$OVERLAYS/wandb-0.23.0 $PYTHON main.py",
      files={"main.py": "import wandb\nprint('tracking with wandb', flush=True)\nwandb.init(project='verl_examples')\n"}, root=["package-version-mismatch", "unknown"],
      signs=[r"Failed to import protobufs for protobuf version"], versions=["wandb==0.23.0", "protobuf"])  # fmt: skip
scene("wandb-no-key", made="wandb.init without a key and without a terminal.", command="PYTHONPATH=$OVERLAYS/wandb-0.31.0 WANDB_DIR=$PWD $PYTHON main.py",
      files={"main.py": "import wandb\nprint('tracking with wandb', flush=True)\nwandb.init(project='verl_examples')\n"}, root=["wandb-not-logged-in"],
      signs=[r"No API key configured|api_key not configured"], all_signs=True, versions=["wandb==0.31.0"], seconds=60)  # fmt: skip
verl("verl-reward-file-missing", "verl-0.7.1-patched", "custom_reward_function.path=/home/user/rewards/mcq.py custom_reward_function.name=compute_score",
     made="The file of the reward function does not exist.", root=["reward-function-not-found", "data-file-missing"], signs=[r"FileNotFoundError|not found"], all_signs=True)  # fmt: skip
verl("verl-logger-unknown", "verl-0.8.0-patched", "'trainer.logger=[console,wandbb]'", made="The name of a logger is misspelt.",
     root=["config-value-unknown", "unknown", "ray-too-few-gpus"], signs=[r"wandbb.*not supported|is not supported|Total available GPUs"], all_signs=True)  # fmt: skip
verl("verl-missing-value", "verl-0.9.0", "'data.train_batch_size=???'", made="A value of the configuration is left open.", root=["hydra-missing-value"], phase="config",
     signs=[r"Missing mandatory value"], all_signs=True)  # fmt: skip
verl("verl-rollout-unknown", "verl-0.7.0-patched", "actor_rollout_ref.rollout.name=vlllm", made="The name of the rollout engine is misspelt.",
     root=["config-value-unknown", "unknown"], signs=[r"vlllm"], all_signs=True)  # fmt: skip
