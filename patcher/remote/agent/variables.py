"""Which environment variables a report may show: a closed list. Of all others only their number is shown.

A list of what is allowed, not of what is secret: a variable that nobody has thought of is not shown.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from patcher.remote.agent.environs import decode_environ
from patcher.secrets.names import may_be_secret

_PREFIXES = (
    "CUDA_",
    "CUDNN_",
    "DATASETS_",
    "FLASHINFER_",
    "FLASH_ATTENTION_",
    "GLOO_",
    "HF_",
    "HYDRA_",
    "MKL_",
    "NCCL_",
    "NUMEXPR_",
    "NVIDIA_",
    "NVTE_",
    "OMPI_COMM_WORLD_",
    "OMP_",
    "OPENBLAS_",
    "PYTHON",
    "PYTORCH_",
    "RAY_",
    "SGLANG_",
    "SGL_",
    "TOKENIZERS_",
    "TORCH",
    "TRANSFORMERS_",
    "TRITON_",
    "UCX_",
    "VERL_",
    "VLLM_",
    "XLA_",
)
_NAMES = (
    "CC",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "CXX",
    "GROUP_RANK",
    "KMP_AFFINITY",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LIBRARY_PATH",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NNODES",
    "NODE_RANK",
    "PATH",
    "RANK",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "TMPDIR",
    "TZ",
    "UKY_PATCH_JOB",
    "VIRTUAL_ENV",
    "WANDB_MODE",
    "WORLD_SIZE",
)
_SLURM = re.compile(
    r"SLURM_(?:JOB_ID|JOBID|ARRAY_\w+|N(?:NODES|PROCS|TASKS)(?:_PER_\w+)?|JOB_(?:NUM_NODES|GPUS|CPUS_PER_NODE)"
    r"|TASKS_PER_NODE|CPUS_\w+|GPUS\w*|GRES|MEM_\w+|NODEID|PROCID|LOCALID|GTIDS|DISTRIBUTION|CPU_BIND\w*)"
)
_CARRIERS = re.compile("JSON|RUNTIME_ENV|SERIALIZED|CONFIG_CONTENT|CMDLINE")
"""Parts of the names of variables whose value holds other variables, or arguments: `RAY_JOB_CONFIG_JSON_ENV_VAR`."""
LONGEST = 4000
"""Characters of a value that are shown. A guess: room for a long PATH."""


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may be shown, by name, in order; a long value is cut."""
    found = {}
    for name in sorted(environment):
        value = environment[name]
        if listed(name):
            found[name] = value if len(value) <= LONGEST else value[:LONGEST] + " …"
    return found


def listed(name: str) -> bool:
    """Whether a variable of this name may be shown."""
    if may_be_secret(name) or _CARRIERS.search(name):
        return False
    return name in _NAMES or name.startswith(_PREFIXES) or bool(_SLURM.fullmatch(name))


def report_of(environment: Mapping[str, str], whose: str, pids: list[int]) -> dict[str, Any]:
    """One environment: `whose` it is, its processes, what may be shown, and how many others there are."""
    found = shown(environment)
    return {"whose": whose, "pids": pids, "variables": found, "others": len(environment) - len(found)}


def of_process(pid: int) -> dict[str, str]:
    """The variables that a process was started with, ready to be shown; empty where they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return decode_environ(stream.read(), "replace")
    except OSError:
        return {}
