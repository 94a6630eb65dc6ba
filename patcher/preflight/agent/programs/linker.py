"""Whether Triton can build here: a compiler, Python's headers, and libcuda where its release looks for it."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile

from patcher.messages import Message, phrase
from patcher.preflight.agent.check_report import ARGS, Check

LOADED = (3, 6)
"""From this release on Triton links libcuda.so.1, the driver's own; before, libcuda.so, which may be a stub."""
SOURCE = "#include <Python.h>\nint cuInit(unsigned);\nint go(void) { return cuInit(0); }\n"


def release() -> tuple[int, ...] | None:
    for name in ("triton", "pytorch-triton"):
        try:
            return tuple(int(part) for part in re.findall(r"\d+", metadata.version(name))[:2])
        except metadata.PackageNotFoundError:
            continue
    return None


def folders() -> list[str]:
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


def build(compiler: str, places: list[str], library: str) -> str:
    """What the linker says against a module like Triton's; empty where it is content."""
    with tempfile.TemporaryDirectory(dir=ARGS["scratch"]) as folder:
        source = os.path.join(folder, "main.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        include = sysconfig.get_paths()["include"]
        command = [compiler, source, "-shared", "-fPIC", "-o", os.path.join(folder, "main.so"), f"-I{include}"]
        command += [f"-L{place}" for place in places] + [library]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
        return "" if done.returncode == 0 else (lines or done.stderr.splitlines() or [str(done.returncode)])[0].strip()


def fix_of(said: str, triton: tuple[int, ...]) -> Message:
    if "Python.h" in said:
        return phrase("install Python's headers: apt-get install python3-dev, or conda's python")
    if triton < LOADED:
        return phrase("export TRITON_LIBCUDA_PATH=FOLDER with a libcuda.so in it: /usr/local/cuda/lib64/stubs will do")
    return phrase("export TRITON_LIBCUDA_PATH=FOLDER with the driver's own libcuda.so.1 in it; a stub does not do")


with Check("triton", needed=False) as here:
    triton = release()
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
        library = "-lcuda" if triton < LOADED else "-l:libcuda.so.1"
        said = build(compiler, folders(), library)
        version = ".".join(map(str, triton))
        if said:
            told = phrase("Triton {version} cannot link {library}: {said}", version=version, library=library, said=said)
            here.fail(told, fix_of(said, triton))
        here.ok(phrase("Triton {version} links {library}", version=version, library=library))
