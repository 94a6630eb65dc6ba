"""Paths of frames as they are shown, and the frames that tell where a process is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from patcher.watch.stacks.model import Frame

TELLING = 4
"""Frames that a place is shown with."""

PACKAGES = frozenset(
    (
        *("accelerate", "debugpy", "deep_gemm", "filelock", "flashinfer", "huggingface_hub", "ray", "safetensors"),
        *("sglang", "torch", "torchdata", "transformers", "triton", "trl", "verl", "vllm", "wandb"),
    )
)
"""Packages that frames are told by, known wherever they lie; not `datasets`, as folders of people's own are called."""

_LIBRARY = re.compile(r"(?:^|.*/)lib(?:64)?/python3[.\d]*t?/(?P<rest>.*)$")
_NOISE = (
    *("ray/_private/client_mode_hook.py", "ray/_private/auto_init_hook.py", "ray/util/tracing/"),
    *("ray/_private/function_manager.py", "ray/_raylet", "torch/utils/_contextlib.py", "torch/_dynamo/eval_frame.py"),
    *("torch/distributed/c10d_logger.py", "torch/nn/modules/module.py", "torch/_ops.py", "hydra/"),
    *("verl/single_controller/base/decorator.py", "verl/utils/profiler/", "verl/utils/transferqueue_utils.py"),
    "ray/_private/workers/default_worker.py",
)
"""What only passes a call on."""


def frame(path: str, function: str, line: int, root: str = "") -> Frame:
    """A frame with its path cut to what tells."""
    _, found, tail = path.rpartition("-packages/")
    if found:
        return Frame(tail, function, line)
    if path.startswith("<frozen "):
        return Frame(path[8:-1], function, line, library=True)
    if library := _LIBRARY.match(path):
        return Frame(library["rest"], function, line, library=True)
    if root and path.startswith(root.rstrip("/") + "/"):
        path = path[len(root.rstrip("/")) + 1 :]
    elif path.startswith("/"):
        path = _of_package(path)
    return Frame(path, function, line)


def _of_package(path: str) -> str:
    """A path in a checkout or a folder on PYTHONPATH from its package on; of any other path the last two parts.

    The package is the outermost name that is one's, and what is inside of it may be called like another:
    `/src/verl/verl/single_controller/ray/base.py`. The name of a user, below `/home`, is none.
    """
    parts = path.split("/")
    below = 3 if parts[1] in ("home", "Users") else 1
    name = next((part for part in parts[below:-1] if part in PACKAGES), None)
    if name is None:
        return "/".join(parts[-2:])
    return "/".join(parts[len(parts) - 1 - parts[::-1].index(name) :])


def telling(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The innermost frames that say where a process is: what only waits or passes on is folded into its caller.

    The innermost frame of Python's library is kept in front, for it says how it waits.
    """
    own = [one for one in frames if not one.library and not _noise(one)]
    first = next(iter(frames), None)
    if not own:
        return tuple(frames[:TELLING])
    if first is not None and first.library and first.path != "runpy.py":
        return (outermost_call(frames), *own[: TELLING - 1])
    return tuple(own[:TELLING])


def own_part(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames of a forked process without those of its parent, at which it was forked."""
    for number, one in enumerate(frames):
        if one.path == "multiprocessing/process.py" and one.function.endswith("_bootstrap"):
            return tuple(frames[:number])
    return tuple(frames)


def key(frames: Iterable[Frame]) -> tuple[str, ...]:
    """What is the same for processes that stand in the same place, by whichever account."""
    return tuple(f"{one.path}:{one.function.rpartition('.')[2]}" for one in frames)


def outermost_call(frames: Sequence[Frame]) -> Frame:
    """The call into Python's library from which the innermost frame comes: queue.get rather than its lock."""
    found = frames[0]
    for one in frames:
        if not one.library:
            break
        found = one
    return found


def _noise(one: Frame) -> bool:
    return one.path.startswith(_NOISE)
