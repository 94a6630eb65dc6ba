"""Would a training job find a GPU where it is about to be started? A login node of a cluster has none.

It is copied into the folder of a job that Slurm starts, and then asked on the compute node: the standard library alone.
Undecided counts as yes: what is refused here has neither a driver's device nor a GPU that nvidia-smi tells of.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import socket
from typing import TYPE_CHECKING, Any, Mapping, Tuple

if TYPE_CHECKING:
    from patcher.messages import Message

DEVICES = ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/kfd", "/dev/davinci[0-9]*", "/dev/accel*", "/dev/dri/renderD*")
"""Of NVIDIA, of WSL, of AMD, of Ascend, of Gaudi and others, of Intel and whatever else draws."""
RAY_CLUSTER = "/tmp/ray/ray_current_cluster"
"""Ray notes there that one was started on this machine; `ray.init()` joins it, and its GPUs may be elsewhere."""
_TRAINS = re.compile(r"\bverl\.trainer\.\w+|-m\s+(?:verl|recipe)\.")
_ELSEWHERE = re.compile(r"\b(?:RAY_ADDRESS|ray\s+job\s+submit|sbatch|srun|kubectl|docker\s+run|podman\s+run|ssh)\b")
_NOT_ON_THIS_NODE = re.compile(r"\b(?:ray\s+job\s+submit|kubectl|ssh)\b")
"""The same for a script that Slurm runs: it starts a Ray, or steps by srun, on nodes like this one."""
_HIDDEN = frozenset(("", "-1", "none", "nodevfiles"))
"""Values of CUDA_VISIBLE_DEVICES that hide every GPU, in lower case."""

Reason = Tuple[str, str]
"""hidden, with the value of CUDA_VISIBLE_DEVICES; else login-node, no-device or no-gres, with the machine."""


def why_no_gpu(script: str, environment: Mapping[str, str], gpus: list[dict[str, Any]]) -> Message | None:
    """Why a job of this script's text would find no GPU; None where it may find one, needs none, or starts elsewhere.

    `gpus` are those that nvidia-smi tells of, `environment` the job's variables.
    """
    reason = reason_without_gpu(script, environment, len(gpus) or None)
    return None if reason is None else in_words(reason)


def in_words(reason: Reason) -> Message:
    """The reason as a sentence."""
    from patcher.messages import phrase  # Where this is copied to there is no `patcher`, and no sentence is needed.

    kind, value = reason
    if kind == "hidden":
        return phrase("CUDA_VISIBLE_DEVICES={value!r} hides every GPU", value=value)
    if kind == "login-node":
        template = "{machine} has no GPU driver and a cluster's command to submit jobs: is it a login node?"
        return phrase(template, machine=value)
    if kind == "no-gres":
        return phrase("Slurm gave the job no GPU of {machine}: gres in the host's table asks for some", machine=value)
    return phrase("{machine} has no device of a GPU driver", machine=value)


def reason_without_gpu(script: str, environment: Mapping[str, str], listed: int | None) -> Reason | None:
    """The same as `why_no_gpu`. `listed`: how many GPUs nvidia-smi tells of, None where that is not known."""
    in_slurm = bool(environment.get("SLURM_JOB_ID"))
    if not _TRAINS.search(script) or (_NOT_ON_THIS_NODE if in_slurm else _ELSEWHERE).search(script):
        return None
    if environment.get("RAY_ADDRESS") or os.path.exists(RAY_CLUSTER):
        return None
    devices = [path for pattern in DEVICES for path in glob.glob(pattern)]
    others = [path for path in devices if not path.startswith("/dev/nvidia")]
    if listed or others or (devices and listed is None):
        chosen = environment.get("CUDA_VISIBLE_DEVICES")
        if chosen is None or chosen.strip().lower() not in _HIDDEN or others or "CUDA_VISIBLE_DEVICES" in script:
            return None
        return "hidden", chosen
    if in_slurm:
        return "no-gres" if devices else "no-device", socket.gethostname()
    if any(shutil.which(name, path=environment.get("PATH")) for name in ("sbatch", "bsub", "qsub")):
        return "login-node", socket.gethostname()
    return "no-device", socket.gethostname()
