"""The code that runs inside the training process. Its source is sent there, so it uses only the standard library, and
packages that the process has imported.

Objects are found among those that Python's garbage collector knows, so no name of the training script is needed.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

MARK = "uky-patch answers: "
STEPS = ("global_steps", "global_step", "current_step")
CLIPS = ("grad_clip", "max_grad_norm", "clip_grad", "max_norm")
MOST = 20
"""Rows that one answer has at most. Set by hand: a person reads them."""


def objects(module: str, name: str) -> list[Any]:
    """Live instances of a class, if its module is imported; nothing is imported for it."""
    kind = getattr(sys.modules.get(module), name, None)
    return [one for one in gc.get_objects() if isinstance(one, kind)] if kind is not None else []


def models() -> list[Any]:
    """Models: torch modules with parameters that are not part of another module."""
    found = objects("torch.nn", "Module")
    inner = {id(child) for one in found for child in one.children()}
    return [one for one in found if id(one) not in inner and any(True for _ in one.parameters())]


def trainers() -> Iterator[Any]:
    """Objects of classes with a name such as `RayPPOTrainer`."""
    for one in gc.get_objects():
        if "rainer" in type(one).__name__ and not isinstance(one, type) and hasattr(one, "__dict__"):
            yield one


def gradients(_: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model how many gradients there are, and which of them have NaN or infinity."""
    import torch

    rows = []
    for model in models():
        bad = []
        with_gradient = 0
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                continue
            with_gradient += 1
            grad = parameter.grad
            nan, inf = bool(torch.isnan(grad).any()), bool(torch.isinf(grad).any())
            if nan or inf:
                bad.append({"parameter": name, "nan": nan, "inf": inf})
        rows.append({"model": type(model).__name__, "gradients": with_gradient, "bad": len(bad), "first": bad[:MOST]})
    return rows


def threads(_: dict[str, Any]) -> list[dict[str, Any]]:
    """Each thread but this one, and the line that it is at."""
    known = {one.ident: one for one in threading.enumerate()}
    rows = []
    for ident, frame in sys._current_frames().items():
        if ident == threading.get_ident():
            continue
        one, code = known.get(ident), frame.f_code
        name = "main" if _is_main(frame) else one.name if one is not None else f"{ident}"
        where = f"{code.co_filename}:{frame.f_lineno} {code.co_name}"
        rows.append({"thread": name, "daemon": one is not None and one.daemon, "where": where})
    return rows


def loader(_: dict[str, Any]) -> list[dict[str, Any]]:
    """DataLoaders: batch size, workers, rows, and which workers are alive."""
    rows = []
    for one in objects("torch.utils.data", "DataLoader"):
        iterators = objects("torch.utils.data.dataloader", "_MultiProcessingDataLoaderIter")
        working = [worker for held in iterators if held._dataset is one.dataset for worker in held._workers]
        rows.append(
            {
                "batch": one.batch_size,
                "workers": one.num_workers,
                "prefetch": one.prefetch_factor,
                "pinned": one.pin_memory,
                "rows": _length(one.dataset),
                "running": [{"pid": worker.pid, "alive": worker.is_alive()} for worker in working],
            }
        )
    return rows


def ranks(_: dict[str, Any]) -> list[dict[str, Any]]:
    """Rank, world size and backend of this process."""
    row = {"host": os.uname().nodename, "pid": os.getpid(), "rank": os.environ.get("RANK")}
    row["world"] = os.environ.get("WORLD_SIZE")
    group = sys.modules.get("torch.distributed")
    row["initialised"] = bool(group is not None and group.is_available() and group.is_initialized())
    if group is not None and row["initialised"]:
        row.update(rank=group.get_rank(), world=group.get_world_size(), backend=group.get_backend())
    return [row]


def step(_: dict[str, Any]) -> list[dict[str, Any]]:
    """The step of each trainer."""
    return [
        {**ranks({})[0], "trainer": type(one).__name__, "step": int(getattr(one, name))}
        for one in trainers()
        for name in STEPS
        if isinstance(getattr(one, name, None), int)
    ]


def clip(_: dict[str, Any]) -> list[dict[str, Any]]:
    """The value that gradients are clipped at, from the trainer or its config."""
    found = [(one, getattr(one, "config", None)) for one in trainers()]
    return [
        {"of": type(one).__name__, "name": name, "value": _value(holder, name)}
        for one, config in found
        for holder in (one, config)
        for name in CLIPS
        if _value(holder, name) is not None
    ]


def rate(_: dict[str, Any]) -> list[dict[str, Any]]:
    """Learning rate and weight decay of each parameter group."""
    return [
        {"optimizer": type(one).__name__, "group": number, "rate": group["lr"], "decay": group.get("weight_decay", 0)}
        for one in objects("torch.optim", "Optimizer")
        for number, group in enumerate(one.param_groups)
    ]


def memory(_: dict[str, Any]) -> list[dict[str, Any]]:
    """Resident memory; and for each GPU the memory allocated, reserved and free. In GB."""
    with open("/proc/self/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    rows: list[dict[str, Any]] = [{"of": "process", "allocated_gb": round(resident / 1e6, 3)}]
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return rows
    for index in range(cuda.device_count()):
        free, total = cuda.mem_get_info(index)
        row = {"of": f"GPU {index}", "allocated_gb": cuda.memory_allocated(index) / 1e9}
        row.update(peak_gb=cuda.max_memory_allocated(index) / 1e9, reserved_gb=cuda.memory_reserved(index) / 1e9)
        row.update(free_gb=free / 1e9, total_gb=total / 1e9)
        rows.append({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
    return rows


def checkpoint(args: dict[str, Any]) -> list[dict[str, Any]]:
    """The keys of a checkpoint file and what they hold. No code in the file is run (`weights_only`)."""
    import torch

    held = torch.load(args["file"], map_location="cpu", weights_only=True, mmap=True)
    if not isinstance(held, dict):
        return [{"key": "", "holds": type(held).__name__}]
    return [{"key": str(key), "holds": _described(value)} for key, value in list(held.items())[:200]]


def write_clip(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Clip the gradients of each model once."""
    import torch

    rows = []
    for model in models():
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args["norm"])
        rows.append({"model": type(model).__name__, "norm_before": float(norm)})
    return rows


def write_empty_cache(_: dict[str, Any]) -> list[dict[str, Any]]:
    """Collect garbage and release cached GPU memory."""
    before = memory({})
    gc.collect()
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.empty_cache()
    return [{"when": "before", **row} for row in before] + [{"when": "after", **row} for row in memory({})]


def write_checkpoint(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Save models and optimizers to a new file, completely or not at all. Refused where a model is sharded over
    ranks."""
    import torch

    file = args["file"]
    if os.path.exists(file):
        raise FileExistsError(file)
    held = [one for one in models() if not _is_part_of_a_shard(one)]
    if not held or len(held) != len(models()):
        raise RuntimeError("the model is spread over the ranks: saving it needs all of them at once")
    state = {
        "step": max((row["step"] for row in step({})), default=None),
        "models": [one.state_dict() for one in held],
        "optimizers": [one.state_dict() for one in objects("torch.optim", "Optimizer")],
    }
    beside = f"{file}.{os.getpid()}.part"
    try:
        torch.save(state, beside)
        os.link(beside, file)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    return [{"file": file, "bytes": os.path.getsize(file)}]


def write_rate(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Multiply the learning rate of every parameter group."""
    before = rate({})
    for one in objects("torch.optim", "Optimizer"):
        for group in one.param_groups:
            group["lr"] *= args["factor"]
    return [{**row, "before": old["rate"]} for row, old in zip(rate({}), before, strict=True)]


def write_all_reduce(_: dict[str, Any]) -> list[dict[str, Any]]:
    """Sum the steps of all ranks. It hangs unless every rank takes part."""
    import torch
    import torch.distributed as group

    where = "cuda" if group.get_backend() == "nccl" else "cpu"
    own = max((row["step"] for row in step({})), default=0)
    total = torch.tensor([own], device=where)
    group.all_reduce(total)
    return [{"rank": group.get_rank(), "step": own, "sum": int(total.item())}]


def _is_part_of_a_shard(model: Any) -> bool:
    names = {type(one).__name__ for one in model.modules()} | {type(one).__name__ for one in model.parameters()}
    return any(
        name.startswith("FSDP") or name in ("FullyShardedDataParallel", "DTensor", "FlatParameter") for name in names
    )


def _is_main(frame: Any) -> bool:
    """Whether it is the thread of the script. `threading` takes the thread that imported it first for the main one."""
    while frame.f_back is not None:
        frame = frame.f_back
    return bool(frame.f_globals.get("__name__") == "__main__")


def _value(holder: Any, name: str) -> Any:
    try:
        value = holder.get(name) if hasattr(holder, "get") else getattr(holder, name, None)
    except Exception:
        return None
    return value if isinstance(value, (int, float)) else None


def _described(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{type(value).__name__}{tuple(value.shape)}"
    return f"{type(value).__name__}({len(value)})" if hasattr(value, "__len__") else repr(value)[:80]


def _length(data: Any) -> Any:
    try:
        return len(data)
    except TypeError:
        return None


ANSWERS: dict[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "gradients": gradients,
    "threads": threads,
    "loader": loader,
    "ranks": ranks,
    "step": step,
    "clip": clip,
    "rate": rate,
    "memory": memory,
    "checkpoint": checkpoint,
    "write-clip": write_clip,
    "write-empty-cache": write_empty_cache,
    "write-checkpoint": write_checkpoint,
    "write-rate": write_rate,
    "write-all-reduce": write_all_reduce,
}


def answer(name: str, args: dict[str, Any]) -> None:
    """Print one line with the rows, or the error."""
    try:
        reply: dict[str, Any] = {"rows": ANSWERS[name](args)}
    except BaseException as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(MARK + json.dumps(reply, default=str))
