"""Runs in which nothing is wrong, though much is printed that looks so."""

from pathlib import Path

from tests.corpus.making.scenes import scene
from tests.corpus.making.topics.distributed import TORCHRUN
from tests.corpus.making.topics.programs import trainer

TESTS = Path(__file__).parents[3]
GPU = "two GRPO steps of a tiny model on one H200"

for release in ("0.6.1", "0.7.0", "0.8.0"):
    stack = (f"verl=={release}", "vllm==0.20.2", "torch==2.11.0+cu130", "ray==2.55.1")
    scene(f"verl-gpu-{release.replace('.', '')}-ok", made=f"verl {release}, {GPU}.", command=f"cat {TESTS}/jobs/logs/verl-{release}.log",
          verdict="ok", phase="loop", versions=stack)  # fmt: skip
    scene(f"verl-gpu-{release.replace('.', '')}-running", made=f"verl {release}, {GPU}, cut after the first step.",
          command=f"sed '/step:1 - /q' {TESTS}/jobs/logs/verl-{release}.log", verdict="running", phase="loop", versions=stack)  # fmt: skip
scene("verl-gpu-ok-no-colours", made=f"verl 0.8.0, {GPU}, with the colours taken out and a time before each line, as a job system writes it.",
      command=f"sed -e 's/\\x1b\\[[0-9;]*m//g' -e 's/^/2026-11-20T21:03:36.120Z stdout F /' {TESTS}/jobs/logs/verl-0.8.0.log", verdict="ok", phase="loop",
      versions=("verl==0.8.0", "vllm==0.20.2"))  # fmt: skip
scene("verl-gpu-raw-prompt", made="verl 0.6.1 on one H200 without data.return_raw_chat: the agent loop finds no raw prompt.",
      command=f"cat {TESTS}/jobs/logs/verl-0.6.1-failed.log", root=["raw-prompt-missing"], phase="loop", signs=[r"KeyError: 'raw_prompt'"], all_signs=True,
      versions=("verl==0.6.1", "vllm==0.20.2", "ray==2.55.1"))  # fmt: skip
scene("elastic-restart-ok", made="torchrun restarts the worker after it failed once; the second attempt trains to the end.",
      command=f"{TORCHRUN} 1 --max-restarts 1 train.py --steps 10",
      files=trainer("    if step == 2 and not os.path.exists('once'):\n        open('once', 'w').close(); raise RuntimeError('CUDA error: an illegal memory access was encountered')\n    return loss"),
      verdict="ok", phase="loop")  # fmt: skip
scene("trainer-handled-errors-ok", made="A training whose reward function fails now and then; each traceback is logged and the sample counts 0.",
      command="$PYTHON train.py --steps 12",
      files=trainer("    if step % 3 == 0:\n        import logging\n        try: int('3 apples')\n        except ValueError: logging.exception('Error in reward function, sample %d skipped', step)\n    return loss"),
      verdict="ok", phase="loop")  # fmt: skip
scene("trainer-retries-ok", made="A training that writes to a busy service: connection errors and time-outs are warned of and tried again.",
      command="$PYTHON train.py --steps 10",
      files=trainer("    import logging\n    if step in (3, 4):\n        logging.warning('ConnectionError: reward server at 10.0.0.9:8000 timed out (attempt %d of 5), retrying', step)\n    if step == 6:\n        logging.warning('wandb: Network error (ConnectTimeout), entering retry loop.')\n    return loss"),
      verdict="ok", phase="loop")  # fmt: skip
scene("trainer-oom-skipped-ok", made="A training that catches an out-of-memory error of one batch, says so and goes on with the next.",
      command="$PYTHON train.py --steps 10",
      files=trainer("    import logging\n    if step == 4:\n        try: raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')\n        except torch.OutOfMemoryError as error: logging.warning('skipping a batch: %s', error)\n    return loss"),
      verdict="ok", phase="loop")  # fmt: skip
scene("trainer-checkpoints-ok", made="A training that saves a checkpoint at each step.", command="mkdir ckpt; $PYTHON train.py --steps 6 --save ckpt; ls -la ckpt",
      files=trainer(), verdict="ok", phase="loop")  # fmt: skip
scene("trainer-running", made="A training of two ranks, cut in its loop.", command=f"{TORCHRUN} 2 train.py --steps 900 --pause 0.5", files=trainer(),
      verdict="running", phase="loop", until="step:9 - ")  # fmt: skip
scene("trainer-chinese-ok", made="A training whose logger speaks Chinese.", command="$PYTHON train.py --steps 8",
      files=trainer("    import logging\n    logging.info('第 %d 步：奖励计算完成，错误样本 0 个，显存占用正常', step)\n    return loss"), verdict="ok", phase="loop")  # fmt: skip
scene("trainer-set-x-ok", made="A run script that shows each command and its environment, with words of failures in names and values.",
      command="bash -x run.sh", files={**trainer(), "run.sh": """export NCCL_TIMEOUT=1800 TORCH_NCCL_ASYNC_ERROR_HANDLING=1 RAISE_ON_ERROR=false
export VLLM_ENGINE_ITERATION_TIMEOUT_S=60 HYDRA_FULL_ERROR=1
cat config.yaml
env | sort | grep -E 'NCCL|VLLM|HYDRA|ERROR'
$PYTHON train.py --steps 5
""", "config.yaml": """trainer:
  on_error: continue
  oom_retry: 3
  nan_guard: {skip_nan_loss: true, max_nan: 5}
  error_log: /data/logs/error.log
  checkpoint: {strict: false, ignore_missing_keys: true}
  timeout: {nccl: 1800, ray_get_timeout_error: 600}
"""}, verdict="ok", phase="loop")  # fmt: skip
scene("dataloader-ok", made="A DataLoader with workers reads its data twice, warned of too many workers.", command="$PYTHON load.py", files={"load.py": """
import torch
from torch.utils.data import DataLoader, Dataset
class Prompts(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.zeros(8)
if __name__ == "__main__":
    print("Using dataset class: Prompts", flush=True)
    for epoch in range(2):
        for n, batch in enumerate(DataLoader(Prompts(), batch_size=8, num_workers=6)):
            print("epoch", epoch, "batch", n, tuple(batch.shape), flush=True)
"""}, verdict="running", phase="dataset")  # fmt: skip
scene("datasets-map-ok", made="datasets reads, maps and filters a data set.", command="$PYTHON main.py", files={"main.py": """import os
import datasets
print("Using dataset class: RLHFDataset", flush=True)
data = datasets.load_dataset("parquet", data_files=os.environ["DATA"], cache_dir="cache")["train"]
data = data.map(lambda row: {"length": len(str(row["prompt"]))}).filter(lambda row: row["length"] > 0, desc="Filtering prompts longer than 512 tokens", num_proc=2)
print("filter dataset len:", len(data), flush=True)
"""}, verdict="running", phase="dataset", versions=["datasets"])  # fmt: skip
scene("model-load-ok", made="transformers loads a model and warns of weights that are newly made.", command="$PYTHON main.py", files={"main.py": """import os, torch
from transformers import AutoModelForCausalLM, AutoModelForTokenClassification
AutoModelForCausalLM.from_pretrained(os.environ["MODEL"], torch_dtype=torch.bfloat16)
AutoModelForTokenClassification.from_pretrained(os.environ["MODEL"], num_labels=1)
print("critic loaded", flush=True)
"""}, verdict="running", versions=["transformers"])  # fmt: skip
scene("ray-cli-ok", made="A Ray head is started, asked for its state and stopped.", command="export RAY_AUTH_MODE=disabled; ray start --head --port 6382 --num-cpus 2 --include-dashboard=false; ray status; $PYTHON -c \"import ray; ray.init(address='127.0.0.1:6382'); print(ray.cluster_resources())\"; ray stop",
      verdict="running", versions=["ray"])  # fmt: skip
