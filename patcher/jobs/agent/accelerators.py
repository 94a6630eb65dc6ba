"""Would a training job find a GPU where it is about to be started? A login node of a cluster has none.

For a job that Slurm starts, a copy of this module in the job's folder answers that on the compute node; so it uses the
standard library alone. In doubt the answer is yes: a job is refused only where there is neither a device of a driver
nor a GPU that nvidia-smi lists, or where CUDA_VISIBLE_DEVICES hides all of them.
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
"""Device files of NVIDIA, of WSL, of AMD, of Ascend, of Gaudi and others, and of Intel and all that draw."""
RAY_CLUSTER = "/tmp/ray/ray_current_cluster"
"""Ray notes in this file that a Ray was started on this machine. `ray.init()` joins that, and its GPUs may be on other
machines."""
_TRAINS = re.compile(r"\bverl\.trainer\.\w+|-m\s+(?:verl|recipe)\.")
"""What a script that trains has in it: `python3 -m verl.trainer.main_ppo`."""
_ELSEWHERE = re.compile(r"\b(?:RAY_ADDRESS|ray\s+job\s+submit|sbatch|srun|kubectl|docker\s+run|podman\s+run|ssh)\b")
"""What a script has in it that may train on another machine, or in a container with its own devices."""
_NOT_ON_THIS_NODE = re.compile(r"\b(?:ray\s+job\s+submit|kubectl|ssh)\b")
"""The same for a script that Slurm runs on a compute node: a Ray or a step of srun that it starts is on such nodes."""
_HIDDEN = frozenset(("", "-1", "none", "nodevfiles"))
"""Values of CUDA_VISIBLE_DEVICES that hide every GPU, in lower case."""

Reason = Tuple[str, str]
"""("hidden", the value of CUDA_VISIBLE_DEVICES); or "login-node", "no-device" or "no-gres", with the machine's name."""


def why_no_gpu(script: str, environment: Mapping[str, str], gpus: list[dict[str, Any]]) -> Message | None:
    """Why a job of a script with this text would find no GPU; None where it may find one, needs none, or trains
    elsewhere.

    `gpus` are those that nvidia-smi lists, `environment` the job's variables.
    """
    reason = reason_without_gpu(script, environment, len(gpus) or None)
    return None if reason is None else in_words(reason)


def in_words(reason: Reason) -> Message:
    """The reason as a sentence."""
    from patcher.messages import phrase  # Not at the top: in the folder of a job there is no `patcher`.

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
    """As `why_no_gpu`. `listed`: how many GPUs nvidia-smi lists; None where it is missing or has failed."""
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
