"""The hook in a job's Python processes: on a signal that nothing else uses, each writes its stacks into a file.

This file is copied, as `sitecustomize.py`, into a folder of its own that comes first in the job's PYTHONPATH; Python
imports a module of that name at its start. Then it also runs the `sitecustomize` that it hides, if there is one.

Any Python may load it, of any version from 3.8 on, and a failure here would stop every program of the job: so it does
nothing where its variable is not set, and ignores all errors. It imports as little as possible for the same reason.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "UKY_PATCH_STACKS"
"""Holds the folder for the files with stacks: `HOST.PID.START`, one for each process."""
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "WG_PREFIX")
"""Variables with which the file begins: whoever reads it may not be allowed to read them from /proc."""
SIGNAL = 47
"""A real-time signal, of which Python, torch, Ray and vLLM use none. It ends a process that does not catch it, so the
file for a process has to be there before the signal is sent."""


def install() -> None:
    """Have this process, and each that is forked from it, write its stacks on `SIGNAL`.

    The file gets its name when the signal is caught, and is removed when the process ends.
    """
    import os

    folder = os.environ.get(VARIABLE)
    if not folder or not os.path.isdir("/proc/self"):
        return
    import atexit
    import contextlib
    import faulthandler

    kept: list[Any] = []

    def register() -> None:
        with open("/proc/self/stat", "rb") as stream:
            start = stream.read().rpartition(b")")[2].split()[19].decode("ascii")
        path = os.path.join(folder, f"{os.uname()[1]}.{os.getpid()}.{start}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        stacks = os.fdopen(os.open(path + ".new", flags, 0o600), "w")
        stacks.write(" ".join(f"{name}={os.environ[name]}" for name in RANK_VARIABLES if name in os.environ) + "\n")
        stacks.flush()
        faulthandler.register(SIGNAL, file=stacks, all_threads=True, chain=False)
        kept[:] = [stacks, path]
        os.rename(path + ".new", path)

    def again() -> None:
        try:
            register()
        except Exception:
            kept.clear()

    def remove() -> None:
        with contextlib.suppress(Exception):
            os.unlink(kept[1])

    register()
    os.register_at_fork(after_in_child=again)
    atexit.register(remove)


def chain(own: str) -> None:
    """Load the `sitecustomize` that would have been loaded without the folder `own` in the search path."""
    import importlib.machinery
    import importlib.util
    import os
    import sys

    others = [folder for folder in sys.path if os.path.realpath(folder or ".") != os.path.realpath(own)]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if found is None or found.loader is None:
        return
    module = importlib.util.module_from_spec(found)
    sys.modules["sitecustomize"] = module
    found.loader.exec_module(module)


if __name__ == "sitecustomize":
    import contextlib
    import os

    with contextlib.suppress(Exception):
        install()
    chain(os.path.dirname(os.path.abspath(__file__)))
