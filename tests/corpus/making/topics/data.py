"""Data sets, models' files and checkpoints that cannot be read."""

from tests.corpus.making.scenes import scene


def script(name: str, text: str, head: str = "", **told: object) -> None:
    """A Python script in the runtime environment."""
    scene(name, command=f"{head}$PYTHON main.py", files={"main.py": text.lstrip()}, **told)


VERL = "from verl.utils.dataset.rl_dataset import RLHFDataset\n"
script("datasets-file-missing", """
import datasets
print("Using dataset class: RLHFDataset", flush=True)
datasets.load_dataset("parquet", data_files="/data/gsm8k_missing/train.parquet")["train"]
""", made="load_dataset of a parquet file that does not exist.", root=["data-file-missing"], phase="dataset",
       signs=[r"FileNotFoundError"], versions=["datasets"])  # fmt: skip
script("pandas-file-missing", """
import logging
import pandas as pd
logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s")
logging.info("正在加载数据: data/train.parquet")
frame = pd.read_parquet("data/train.parquet")
""", made="pandas reads a parquet file that does not exist; the logger speaks Chinese.", root=["data-file-missing"],
       signs=[r"FileNotFoundError"], versions=["pandas"])  # fmt: skip
script("datasets-parquet-cut", """
import datasets
print("Using dataset class: RLHFDataset", flush=True)
datasets.load_dataset("parquet", data_files="train.parquet")["train"]
""", head="head -c 900 $DATA > train.parquet; ", made="load_dataset of a parquet file that is cut short.", root=["data-file-unreadable"], phase="dataset",
       signs=[r"ArrowInvalid|Parquet magic bytes not found|DatasetGenerationError"], all_signs=True, versions=["datasets", "pyarrow"])  # fmt: skip
script("datasets-json-broken", """
import datasets
print(datasets.load_dataset("json", data_files="train.jsonl")["train"])
""", head="""printf '{"prompt": "a", "answer": "b"}\\n{"prompt": "c", "answer": \\n' > train.jsonl; """, made="load_dataset of a JSON file that is no JSON.",
       root=["data-file-unreadable"], signs=[r"JSON parse error|ArrowInvalid|DatasetGenerationError|JSONDecodeError"], all_signs=True, versions=["datasets"])  # fmt: skip
script("datasets-columns-differ", """
import datasets
print(datasets.load_dataset("json", data_files=["a.jsonl", "b.jsonl"])["train"])
""", head="""echo '{"prompt": "a"}' > a.jsonl; echo '{"prompt": "a", "reward_model": {"x": 1}}' > b.jsonl; """, made="Two files of one data set have other columns.",
       root=["data-columns-differ"], signs=[r"DatasetGenerationCastError|CastError|new columns"], all_signs=True, versions=["datasets"])  # fmt: skip
script("datasets-hub-unreachable", """
import datasets
print("Loading openai/gsm8k", flush=True)
print(datasets.load_dataset("openai/gsm8k", "main"))
""", made="load_dataset of the hub's gsm8k, without a network.", root=["hf-no-connection"],
       signs=[r"ConnectionError|Couldn't reach|Name resolution|name resolution|LocalEntryNotFound"], all_signs=True, versions=["datasets", "huggingface_hub"])  # fmt: skip
script("tokenizer-offline", """
from transformers import AutoTokenizer
AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
""", head="export HF_HUB_OFFLINE=1; ", made="A tokenizer of the hub that is not in the cache, with HF_HUB_OFFLINE=1.",
       root=["hf-offline-not-cached"], signs=[r"OSError|LocalEntryNotFoundError|OfflineModeIsEnabled"], all_signs=True, versions=["transformers", "huggingface_hub"])  # fmt: skip
script("model-no-network", """
from transformers import AutoModelForCausalLM
AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
""", made="A model of the hub, without a network.", root=["hf-no-connection"],
       signs=[r"OSError|couldn't connect|ConnectError|LocalEntryNotFoundError|name resolution"], all_signs=True, versions=["transformers", "huggingface_hub"])  # fmt: skip
script("snapshot-proxy-refused", """
from huggingface_hub import snapshot_download
snapshot_download("Qwen/Qwen2.5-0.5B-Instruct")
""", head="export HTTPS_PROXY=http://127.0.0.1:3128 HTTP_PROXY=http://127.0.0.1:3128; ", made="The proxy that the environment names does not listen.",
       root=["proxy-refused", "hf-no-connection"], signs=[r"Connection refused|ProxyError|LocalEntryNotFoundError|ConnectError"], all_signs=True, versions=["huggingface_hub"])  # fmt: skip
script("model-path-typo", """
import os
from transformers import AutoTokenizer
AutoTokenizer.from_pretrained("/mnt/models/qwen/Qwen2.5-0.5B")
""", made="A tokenizer from a folder that does not exist.", root=["model-path-wrong"], signs=[r"HFValidationError|Repo id must|OSError|Incorrect path_or_model_id"],
       all_signs=True, versions=["transformers"])  # fmt: skip
script("model-type-unknown", """
from transformers import AutoConfig
AutoConfig.from_pretrained("odd")
""", head="""cp -r $MODEL odd; sed -i 's/"model_type": "llama"/"model_type": "qwen9_moe"/' odd/config.json; """,
       made="A model of a type that this transformers does not know.", root=["transformers-model-unknown"],
       signs=[r"does not recognize this architecture|model type `qwen9_moe`"], all_signs=True, versions=["transformers"])  # fmt: skip
script("model-weights-missing", """
from transformers import AutoModelForCausalLM
AutoModelForCausalLM.from_pretrained("bare")
""", head="cp -r $MODEL bare; rm bare/model.safetensors; ", made="A model's folder without weights.", root=["model-files-incomplete"],
       signs=[r"no file named"], all_signs=True, versions=["transformers"])  # fmt: skip
script("safetensors-cut", """
from safetensors.torch import load_file
print("Loading actor weights", flush=True)
load_file("model.safetensors")
""", head="head -c 5000 $MODEL/model.safetensors > model.safetensors; ", made="A safetensors file that is cut short.", root=["safetensors-corrupt"],
       signs=[r"SafetensorError"], versions=["safetensors"])  # fmt: skip
script("checkpoint-zip-cut", """
import torch
torch.save({"step": 40, "w": torch.zeros(10000)}, "model_world_size_1_rank_0.pt")
data = open("model_world_size_1_rank_0.pt", "rb").read()
open("model_world_size_1_rank_0.pt", "wb").write(data[: len(data) // 2])
print("[Rank 0] Loading from model_world_size_1_rank_0.pt", flush=True)
torch.load("model_world_size_1_rank_0.pt")
""", made="A checkpoint that is cut short, as after a full disk.", root=["checkpoint-corrupt"],
       signs=[r"PytorchStreamReader failed|failed finding central directory|OSError: .Errno 22"], all_signs=True)  # fmt: skip
script("checkpoint-weights-only", """
import torch
class Config: pass
torch.save({"config": Config(), "w": torch.zeros(3)}, "extra_state_world_size_1_rank_0.pt")
print("Loading extra_state_world_size_1_rank_0.pt", flush=True)
torch.load("extra_state_world_size_1_rank_0.pt")
""", made="A checkpoint that holds an object of a class of its own, read with weights_only.", root=["checkpoint-weights-only"],
       signs=[r"Weights only load failed|WeightsUnpickler error|UnpicklingError"], all_signs=True)  # fmt: skip
script("checkpoint-other-shape", """
import torch
from torch import nn
torch.save(nn.Linear(8, 4).state_dict(), "model.pt")
print("Load from checkpoint folder: ckpt/global_step_40", flush=True)
nn.Linear(8, 6).load_state_dict(torch.load("model.pt"))
""", made="A state dict of another shape.", root=["checkpoint-mismatch"], signs=[r"Error\(s\) in loading state_dict|size mismatch for"], all_signs=True)  # fmt: skip
script("checkpoint-other-keys", """
import torch
from torch import nn
torch.save({f"module.{name}": value for name, value in nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).state_dict().items()}, "model.pt")
nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).load_state_dict(torch.load("model.pt"))
""", made="A state dict whose keys begin with module.", root=["checkpoint-mismatch"],
       signs=[r"Error\(s\) in loading state_dict|Missing key\(s\)|Unexpected key\(s\)"], all_signs=True)  # fmt: skip
script("checkpoint-missing-file", """
import torch
print("Resuming from ckpt/global_step_120", flush=True)
torch.load("ckpt/global_step_120/actor/model_world_size_8_rank_3.pt")
""", made="A checkpoint of which one rank's file is missing.", root=["checkpoint-missing", "checkpoint-world-size"], signs=[r"FileNotFoundError"])  # fmt: skip
script("checkpoint-of-a-gpu", """
import torch
import torch.serialization as s
w = torch.zeros(3)
original = s.location_tag
s.location_tag = lambda storage: "cuda:1"
torch.save({"w": w}, "optim.pt")
s.location_tag = original
print("Loading optim.pt", flush=True)
torch.load("optim.pt")
""", made="A checkpoint saved from a GPU is loaded where there is none.", root=["checkpoint-on-absent-device", "cuda-no-device"],
       signs=[r"Attempting to deserialize object on"])  # fmt: skip
script("prompt-too-long", VERL + """
from omegaconf import OmegaConf
from transformers import AutoTokenizer
import os
config = OmegaConf.create({"max_prompt_length": 8, "truncation": "error", "filter_overlong_prompts": False, "cache_dir": "cache"})
data = RLHFDataset(os.environ["DATA"], AutoTokenizer.from_pretrained(os.environ["MODEL"]), config)
print(len(data), data[0])
""", head="export PYTHONPATH=$TREES/verl-0.6.1-patched; ", made="verl's data set with truncation=error and a prompt beyond the longest.",
       root=["prompt-too-long"], phase="dataset", signs=[r"is larger than max_length"], versions=["verl==0.6.1"])  # fmt: skip
script("chat-template-missing", """
import os
from transformers import AutoTokenizer
words = AutoTokenizer.from_pretrained("bare")
print(words.apply_chat_template([{"role": "user", "content": "hi"}]))
""", head="cp -r $MODEL bare; rm bare/chat_template.jinja; ", made="A base model's tokenizer without a chat template.", root=["chat-template-missing"],
       signs=[r"chat_template is not set"], versions=["transformers"])  # fmt: skip
script("text-encoding", """
import json
with open("train.jsonl", encoding="utf-8") as lines:
    print(len([json.loads(line) for line in lines]))
""", head="printf '{\"prompt\": \"\\xd6\\xd0\\xce\\xc4\"}\\n' > train.jsonl; ", made="A data file in GBK is read as UTF-8.", root=["text-encoding"],
       signs=[r"UnicodeDecodeError"], versions=[])  # fmt: skip
script("wandb-not-installed", """
print("Initializing tracker: wandb", flush=True)
import wandb
""", made="The wandb logger is asked for and wandb is not installed.", root=["tracker-missing", "module-missing"], signs=[r"No module named 'wandb'"], versions=[])  # fmt: skip
