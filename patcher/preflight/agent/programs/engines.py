"""torch, on each GPU, and vLLM: one after another, as they need each other's imports."""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, PYTHON, Check, last_words

warnings.simplefilter("ignore")
VLLM = phrase(
    "install the vLLM release that is built for this torch: {python} -m pip install vllm==VERSION", python=PYTHON
)
REINSTALL = phrase("install a torch that is built for this machine's CUDA driver: see pytorch.org")


def about_gpus(check: Check, torch: Any) -> None:
    """Whether torch sees the machine's GPUs and computes on each."""
    wanted = ARGS.get("gpus", 0)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not wanted and not torch.cuda.is_available():
        check.warn(phrase("this machine has no GPU: vLLM and training need one"))
        return
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        check.fail(phrase("torch {version} is built without CUDA", version=torch.__version__), REINSTALL)
    if not torch.cuda.is_available():
        unavailable(check, torch)
    count = torch.cuda.device_count()
    for index in range(count):
        try:
            twice = torch.ones(16, device=f"cuda:{index}") * 2
            if float(twice.sum()) != 32.0:
                check.fail(phrase("GPU {index} computes wrongly", index=index), phrase("take this GPU out of service"))
        except RuntimeError as error:
            trouble(check, torch, index, error)
    names = ", ".join(sorted({torch.cuda.get_device_name(index) for index in range(count)}))
    told = phrase("{count} × {names}, a tensor computed on each", count=count, names=names)
    if count < wanted and visible is None:
        check.warn(phrase("torch sees {count} of {wanted} GPUs", count=count, wanted=wanted))
    else:
        check.ok(told)


def unavailable(check: Check, torch: Any) -> None:
    """Say why, in the driver's words where it has any."""
    try:
        torch.cuda.init()
        said = phrase("torch.cuda.is_available() is false")
    except (RuntimeError, AssertionError) as error:
        said = last_words(error)
        if "stub" in str(error):
            fix = phrase("take CUDA's stubs out of LD_LIBRARY_PATH: the driver's own libcuda.so.1 is needed")
            check.fail(said, fix)
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        check.fail(said, phrase("CUDA_VISIBLE_DEVICES is empty: unset it, or name GPUs"))
    check.fail(said, REINSTALL)


def trouble(check: Check, torch: Any, index: int, error: RuntimeError) -> None:
    said = str(error)
    if "no kernel image" in said:
        major, minor = torch.cuda.get_device_capability(index)
        built = " ".join(torch.cuda.get_arch_list())
        detail = phrase(
            "this torch has no kernels for GPU {index} (sm_{arch}), only for {built}",
            index=index,
            arch=f"{major}{minor}",
            built=built,
        )
        check.fail(detail, REINSTALL)
    if "out of memory" in said or "busy or unavailable" in said:
        detail = phrase("GPU {index} is taken: {said}", index=index, said=said.splitlines()[0])
        check.fail(detail, phrase("see who is on it with nvidia-smi, and end that or wait"))
    check.fail(phrase("GPU {index}: {said}", index=index, said=last_words(error)), REINSTALL)


def about_torch(check: Check, torch: Any) -> None:
    built = torch.version.cuda
    driver = ARGS.get("cuda")
    told = phrase("{version}, from {place}", version=torch.__version__, place=os.path.dirname(torch.__file__))
    if (
        built
        and driver
        and [int(part) for part in built.split(".")[:1]] > [int(part) for part in driver.split(".")[:1]]
    ):
        detail = phrase("built for CUDA {built}, and the driver goes up to {driver}", built=built, driver=driver)
        check.warn(detail, phrase("update the driver, or install a torch for CUDA {driver}", driver=driver))
    else:
        check.ok(told)


def about_vllm(check: Check, vllm: Any) -> None:
    """The version, and which of the VLLM_ variables it does not read."""
    version = getattr(vllm, "__version__", "?")
    known = set(getattr(importlib.import_module("vllm.envs"), "environment_variables", ()))
    names = sorted(name for name in ARGS.get("variables", ()) if name.startswith("VLLM_"))
    ignored = ", ".join(name for name in names if known and name not in known)
    if ignored:
        check.warn(
            phrase("{version}; it does not read {names}", version=version, names=ignored),
            phrase("leave them out of the run script: they do nothing"),
        )
    else:
        check.ok(phrase("{version}, from {place}", version=version, place=os.path.dirname(vllm.__file__)))


with Check("torch", fix=REINSTALL) as here:
    about_torch(here, importlib.import_module("torch"))
with Check("gpus", needed=False) as here:
    about_gpus(here, importlib.import_module("torch"))
with Check("vllm", fix=VLLM) as here:
    about_vllm(here, importlib.import_module("vllm"))
