"""Processes left standing, cut where they stand: the last words say at what."""

from tests.corpus.making.scenes import scene
from tests.corpus.making.topics.distributed import TORCHRUN
from tests.corpus.making.topics.on_vllm import ASK, HELLO, serve
from tests.corpus.making.topics.programs import trainer

scene("split-slow-disk", made="A reader of the training data blocks in its first row; cut after 40 s.",
      command="$PYTHON main.py", files={"main.py": """import threading
import datasets
def rows():
    lock = threading.Lock(); lock.acquire(); lock.acquire()
    yield {"prompt": "a"}
print("Using dataset class: RLHFDataset", flush=True)
datasets.Dataset.from_generator(rows, cache_dir="cache")
"""}, verdict="stalled", phase="dataset", root=["generating-train-split"], signs=[r"Generating train split"], all_signs=True,
      versions=["datasets"], seconds=40)  # fmt: skip
scene("map-worker-stopped", made="A worker of datasets.map is stopped with SIGSTOP at its beginning; cut after 45 s.",
      command="$PYTHON main.py", files={"main.py": """import os, signal
import datasets
def tokenize(row):
    os.kill(os.getpid(), signal.SIGSTOP)
    return row
if __name__ == "__main__":
    print("dataset len: 7473", flush=True)
    datasets.Dataset.from_dict({"prompt": ["a"] * 7473}).filter(tokenize, num_proc=2, desc="Filtering prompts longer than 512 tokens")
"""}, verdict="stalled", phase="dataset", root=["data-loading-stuck", "progress-bar-still"], signs=[r"Filtering prompts longer"], all_signs=True,
      versions=["datasets"], seconds=45)  # fmt: skip
serve("vllm-engine-stopped-debug", head="export VLLM_LOGGING_LEVEL=DEBUG; $END SIGSTOP VLLM::EngineCore 'Waiting for 1 local' & ",
      made="The engine's process is stopped with SIGSTOP while it starts; cut after 100 s.", verdict="stalled", phase="rollout", root=["engine-core-waiting", "rollout-init"],
      signs=[r"Waiting for 1 local, 0 remote core engine proc"], all_signs=True, seconds=300, until="Waiting for 1 local, 0 remote", times=4)  # fmt: skip
serve("vllm-worker-stopped", head=ASK.format(ask=HELLO, after=f"$END SIGSTOP VLLM::Worker; {HELLO}"),
      made="The engine's worker is stopped with SIGSTOP in a request; cut after three minutes.", verdict="stalled", phase="rollout", root=["vllm-shm-broadcast-wait"],
      signs=[r"No available shared memory broadcast block found"], all_signs=True, seconds=400, until="No available shared memory broadcast block found")  # fmt: skip
scene("breakpoint-left", made="A breakpoint was left in the reward function; cut after 20 s.", command="sleep 100 | $PYTHON main.py",
      files={"main.py": """import torch
print("Using dataset class: RLHFDataset", flush=True)
def compute_score(solution, truth):
    breakpoint()
    return float(solution == truth)
print(compute_score("3", "3"))
"""}, verdict="stalled", root=["breakpoint-waits"], signs=[r"\(Pdb\)|> /.*main.py"], all_signs=True, seconds=20)  # fmt: skip
scene("ray-connect-waits", made="ray.init waits for a head at which nothing listens; cut after 4 s, before it says more.", command="$PYTHON main.py",
      files={"main.py": "import ray\nray.init(address='127.0.0.1:6399')\n"}, verdict="stalled", root=["ray-connect-stuck"],
      signs=[r"Connecting to existing Ray cluster at address"], versions=["ray"], seconds=6)  # fmt: skip
scene("process-group-waits-verl-words", made="A rank waits for a master that never listens, c10d tells of each attempt; cut after 40 s.",
      command="MASTER_ADDR=127.0.0.1 MASTER_PORT=29599 RANK=3 WORLD_SIZE=4 $PYTHON main.py",
      files={"main.py": """import logging
from datetime import timedelta
import torch.distributed as dist
logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(levelname)s] %(message)s")
logging.info("正在初始化进程组 rank=3 world_size=4")
dist.init_process_group("gloo", timeout=timedelta(seconds=12))
"""}, root=["c10d-connect-timeout", "c10d-store-timeout"], signs=[r"The client socket has timed out after|TCP client failed to connect"], all_signs=True, seconds=60)  # fmt: skip
scene("own-name-unresolvable", made="torchrun on a machine whose own name nobody resolves: the ranks never find the store; cut after some attempts.",
      command=f"umount /etc/hosts; {TORCHRUN} 2 train.py", files=trainer(), verdict="stalled", root=["process-group-init", "c10d-connect-timeout"],
      signs=[r"network addresses of \(node-1, \d+\) cannot be retrieved"], all_signs=True, until="cannot be retrieved", times=9)  # fmt: skip
