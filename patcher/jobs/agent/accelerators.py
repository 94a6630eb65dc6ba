"""Would a training job find a GPU where it is about to be started? A login node of a cluster has none.

Undecided counts as yes: what is refused here has neither a driver's device nor a GPU that nvidia-smi tells of.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import socket
from typing import Any, Mapping

from patcher.messages import Message, phrase

DEVICES = ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/kfd", "/dev/davinci[0-9]*", "/dev/accel*", "/dev/dri/renderD*")
"""Of NVIDIA, of WSL, of AMD, of Ascend, of Gaudi and others, of Intel and whatever else draws."""
RAY_CLUSTER = "/tmp/ray/ray_current_cluster"
"""Ray notes there that one was started on this machine; `ray.init()` joins it, and its GPUs may be elsewhere."""
_TRAINS = re.compile(r"\bverl\.trainer\.\w+|-m\s+(?:verl|recipe)\.")
_ELSEWHERE = re.compile(r"\b(?:RAY_ADDRESS|ray\s+job\s+submit|sbatch|srun|kubectl|docker\s+run|podman\s+run|ssh)\b")
_HIDDEN = frozenset(("", "-1", "none", "nodevfiles"))
"""Values of CUDA_VISIBLE_DEVICES that hide every GPU, in lower case."""


def why_no_gpu(script: str, environment: Mapping[str, str], gpus: list[dict[str, Any]]) -> Message | None:
    """Why a job of this script's text would find no GPU; None where it may find one, needs none, or starts elsewhere.

    `gpus` are those that nvidia-smi tells of, `environment` the job's variables.
    """
    if not _TRAINS.search(script) or _ELSEWHERE.search(script):
        return None
    if environment.get("RAY_ADDRESS") or os.path.exists(RAY_CLUSTER):
        return None
    devices = [path for pattern in DEVICES for path in glob.glob(pattern)]
    if gpus or devices:
        chosen = environment.get("CUDA_VISIBLE_DEVICES")
        others = [path for path in devices if not path.startswith("/dev/nvidia")]
        if chosen is None or chosen.strip().lower() not in _HIDDEN or others or "CUDA_VISIBLE_DEVICES" in script:
            return None
        return phrase("CUDA_VISIBLE_DEVICES={value!r} hides every GPU", value=chosen)
    if any(shutil.which(name, path=environment.get("PATH")) for name in ("sbatch", "bsub", "qsub")):
        template = "{machine} has no GPU driver and a cluster's command to submit jobs: is it a login node?"
        return phrase(template, machine=socket.gethostname())
    return phrase("{machine} has no device of a GPU driver", machine=socket.gethostname())
