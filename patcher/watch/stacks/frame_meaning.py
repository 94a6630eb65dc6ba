"""What a process does in a frame, and the phase of the run that the frame belongs to.

Paths of frames are shown from their package on: `/opt/env/lib/python3.11/site-packages/verl/trainer/main_ppo.py` is
shown as `verl/trainer/main_ppo.py`. Tables of patterns over `PATH:FUNCTION` say what a frame means. If the Python stack
of a process cannot be read, the kernel says what it waits for: `kernel_call` and `waits_for`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from patcher.i18n import NOTHING, Phrase, Phrases, listed, phrase
from patcher.logs.milestones import Phase
from patcher.watch.stacks.processes import Frame, Process

TELLING = 4
"""Frames that a place is shown with: they fit on a line or two."""

PACKAGES = frozenset(
    (
        *("accelerate", "debugpy", "deep_gemm", "filelock", "flashinfer", "huggingface_hub", "ray", "safetensors"),
        *("sglang", "torch", "torchdata", "transformers", "triton", "trl", "verl", "vllm", "wandb"),
    )
)
"""Packages that are recognised in any path; not `datasets`, as people name folders of their own so."""

_LIBRARY = re.compile(r"(?:^|.*/)lib(?:64)?/python3[.\d]*t?/(?P<rest>.*)$")
_NOISE = (
    *("ray/_private/client_mode_hook.py", "ray/_private/auto_init_hook.py", "ray/util/tracing/"),
    *("ray/_private/function_manager.py", "ray/_raylet", "torch/utils/_contextlib.py", "torch/_dynamo/eval_frame.py"),
    *("torch/distributed/c10d_logger.py", "torch/nn/modules/module.py", "torch/_ops.py", "hydra/"),
    *("verl/single_controller/base/decorator.py", "verl/utils/profiler/", "verl/utils/transferqueue_utils.py"),
    "ray/_private/workers/default_worker.py",
)
"""Files whose functions only pass a call on."""


def shown_frame(path: str, function: str, line: int, root: str = "") -> Frame:
    """A frame with its path shortened. `root`: the tree, whose files are shown from it on."""
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
    """A path in a checkout or in a folder on PYTHONPATH, from its package on; of any other path the last two parts.

    The outermost known name is the package; a package may contain a folder of the same name:
    `/src/verl/verl/single_controller/ray/base.py`. The name of a user, below `/home`, is no package.
    """
    parts = path.split("/")
    below = 3 if parts[1] in ("home", "Users") else 1
    name = next((part for part in parts[below:-1] if part in PACKAGES), None)
    if name is None:
        return "/".join(parts[-2:])
    return "/".join(parts[len(parts) - 1 - parts[::-1].index(name) :])


def telling_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The innermost frames that say where a process is, without those that only pass a call on.

    If the innermost frame is in Python's standard library, the call into the library comes first, as it says how the
    process waits.
    """
    own = [one for one in frames if not one.library and not one.path.startswith(_NOISE)]
    first = next(iter(frames), None)
    if not own:
        return tuple(frames[:TELLING])
    # `python -m` runs everything through runpy.py, so it says nothing of how a process waits.
    if first is not None and first.library and first.path != "runpy.py":
        return (outermost_call(frames), *own[: TELLING - 1])
    return tuple(own[:TELLING])


def own_part(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames of a forked process without those of its parent."""
    for number, one in enumerate(frames):
        if one.path == "multiprocessing/process.py" and one.function.endswith("_bootstrap"):
            return tuple(frames[:number])
    return tuple(frames)


def frames_key(frames: Iterable[Frame]) -> tuple[str, ...]:
    """What processes in the same place have in common, whether py-spy or faulthandler took the stack: frames without
    lines."""
    return tuple(f"{one.path}:{one.function.rpartition('.')[2]}" for one in frames)


def outermost_call(frames: Sequence[Frame]) -> Frame:
    """The outermost of the innermost frames in Python's standard library: `queue.get` rather than its lock."""
    found = frames[0]
    for one in frames:
        if not one.library:
            break
        found = one
    return found


Act: TypeAlias = Literal["waits-peers", "waits-others", "waits-lock", "waits-input", "works"]
"""`waits-peers`: in a collective operation, or while a process group is formed; `waits-others`: for the answer of
another process; `waits-lock`, `waits-input`: for a lock, for data; `works`: it computes, compiles or loads."""
Entry: TypeAlias = tuple[str, Act, Phrase]

_COLLECTIVES = (
    "all_reduce|all_gather\\w*|reduce_scatter\\w*|_?reduce|_?broadcast\\w*|barrier|monitored_barrier|gather\\w*|scatter\\w*|"
    "all_to_all\\w*|isend|irecv|send|recv|batch_isend_irecv"
)
SPECIFIC: tuple[Entry, ...] = (
    (r"filelock/\S*:(acquire|_acquire)", "waits-lock", phrase("waits for a file lock")),
    (r"datasets/\S*:(download_and_prepare|_prepare_split\w*)", "works", phrase("prepares a data set")),
    (r"huggingface_hub/|transformers/utils/hub\.py:", "works", phrase("fetches files of a model or data set")),
    (
        r"torch/utils/cpp_extension\.py:|torch/utils/_cpp_extension|triton/(compiler|runtime|backends)/"
        r"|torch/_inductor/|torch/_dynamo/convert_frame|flashinfer/jit/|deep_gemm/jit",
        "works",
        phrase("compiles a kernel"),
    ),
    (
        r"torch/distributed/(distributed_c10d\.py:(init_process_group|_store_based_barrier|new_group|_new_\w+)|rendezvous\.py:)",
        "waits-peers",
        phrase("waits for the ranks to form a group"),
    ),
    (rf"torch/distributed/\S*:(\w+\.)?({_COLLECTIVES})$", "waits-peers", phrase("is in a collective operation")),
    (
        r"vllm/distributed/\S*:(\w+\.)?(barrier|all_\w+|broadcast\w*|send\w*|recv\w*)$",
        "waits-peers",
        phrase("is in a collective operation"),
    ),
    (r"verl/checkpoint_engine/|verl/utils/collective", "waits-peers", phrase("sends or receives weights")),
    (r"ray/util/collective/", "waits-peers", phrase("is in a collective operation")),
    (
        r"vllm/distributed/device_communicators/shm_broadcast\.py:",
        "waits-others",
        phrase("waits for another process of the engine"),
    ),
    (
        r"torch/utils/data/dataloader\.py:\S*(_try_get_data|_get_data|_next_data)",
        "waits-input",
        phrase("waits for data"),
    ),
    (r"ray/_private/worker\.py:\S*(get_objects|get|wait)$", "waits-others", phrase("waits for an answer of Ray")),
    (r"ray/util/placement_group|ray/_private/worker\.py:(init|connect)$", "waits-others", phrase("waits for Ray")),
    (
        r"(safetensors|transformers/(modeling_utils|core_model_loading)|vllm/model_executor/model_loader)",
        "works",
        phrase("loads weights"),
    ),
    (r"vllm/\S*:\S*(capture_model|_capture_cudagraphs|capture_graph)", "works", phrase("captures CUDA graphs")),
)
"""Of packages. They say what is done, whatever function of the standard library is called for it."""
GENERAL: tuple[Entry, ...] = (
    (r"(multiprocessing/)?queues?\.py:(\w+\.)?get$", "waits-input", phrase("waits at an empty queue")),
    (r"queue\.py:(\w+\.)?put$", "waits-others", phrase("waits at a full queue")),
    (
        r"multiprocessing/(connection|popen\w*)\.py:(\w+\.)?(recv|recv_bytes|poll|wait|_poll|_recv\w*)",
        "waits-others",
        phrase("waits for another process"),
    ),
    (
        r"subprocess\.py:\S*(wait|_wait|communicate|_communicate)$",
        "waits-others",
        phrase("waits for a program that it has started"),
    ),
    (r"multiprocessing/synchronize\.py:\S*(acquire|wait|__enter__)", "waits-lock", phrase("waits for a lock")),
    (
        r"threading\.py:\S*(acquire|wait|join|__enter__|_wait_for_tstate_lock)$",
        "waits-lock",
        phrase("waits for another thread"),
    ),
    (r"concurrent/futures/", "waits-others", phrase("waits for another thread")),
    (r"(selectors|asyncio/base_events|asyncio/runners)\.py:", "waits-others", phrase("waits for an event")),
    (r"(socket|ssl|http/client)\.py:", "waits-others", phrase("waits for the network")),
)
"""Of Python's standard library."""
IDLE: tuple[Entry, ...] = (
    (
        r"torch/utils/data/_utils/worker\.py:_worker_loop|torchdata/stateful_dataloader/worker\.py:_worker_loop",
        "waits-input",
        phrase("waits for the next batch to read"),
    ),
    (r"ray/_private/worker\.py:\S*main_loop$", "waits-others", phrase("has nothing to do")),
    (r"vllm/v1/engine/core\.py:\S*(run_busy_loop|_process_input_queue)", "waits-others", phrase("has nothing to do")),
)
"""Loops that wait for work. They count only if they call no other code of the job."""
PHASES: tuple[tuple[str, Phase], ...] = (
    (
        r"verl/\S*:\S*(update_weights|sync_rollout_weights|sync_weights|_update_weights\w*|send_weights|receive_weights)",
        "weight-sync",
    ),
    (r"verl/(checkpoint_engine|workers/sharding_manager)/", "weight-sync"),
    (r"vllm/\S*:\S*(execute_model|generate|step_with_batch_queue)$|verl/\S*:\S*generate_sequences", "loop"),
    (
        r"verl/workers/rollout/\S*:|verl/\S*:\S*(_build_rollout|init_agent_loop\w*|launch_server\w*|init_standalone|init_hybrid)",
        "rollout",
    ),
    (r"vllm/(v1/engine/core|engine|model_executor/model_loader|v1/executor|v1/worker|entrypoints)", "rollout"),
    (r"sglang/srt/(model_loader|managers|entrypoints)", "rollout"),
    (r"verl/\S*:\S*(init_model|_build_model\w*|init_workers)", "actor"),
    (
        r"verl/\S*:(\w+\.)?(fit|update_actor|update_policy|compute_log_prob|compute_values|update_critic|_validate)$",
        "loop",
    ),
    (
        r"verl/\S*:\S*(create_resource_pool|_init_resource_pools|get_placement_groups|_check_resource_available)",
        "resource-pool",
    ),
    (r"verl/utils/dataset/|verl/\S*:\S*(create_rl_dataset|_create_dataloader|create_rl_sampler)|datasets/", "dataset"),
    (r"verl/single_controller/ray/base\.py:\S*(_init_with_resource_pool|get_placement_groups)", "resource-pool"),
    (r"torch/utils/data/", "loop"),
    (r"verl/trainer/(main_\w+|constants\w*)\.py:|hydra/|ray/_private/worker\.py:(init|connect)$", "config"),
)


@dataclass(frozen=True, slots=True)
class FrameMeaning:
    """What a process does, as a kind and in words."""

    act: Act
    meaning: Phrase


_SPECIFIC, _GENERAL, _IDLE = (
    tuple((re.compile(pattern), act, meaning) for pattern, act, meaning in table) for table in (SPECIFIC, GENERAL, IDLE)
)
_PHASES = tuple((re.compile(pattern), phase) for pattern, phase in PHASES)
_NEAR = 12
"""Innermost frames that say what a process does; outer ones say what for. Set by hand."""


def meaning_of(frames: Sequence[Frame]) -> FrameMeaning | None:
    """The meaning of the innermost frame with a known one, packages before the standard library; None where no frame
    has one."""
    if (found := idle(frames)) is not None:
        return found
    if any(frame.path.startswith("importlib") for frame in frames[:_NEAR]):
        return FrameMeaning("works", phrase("imports modules"))
    call = [outermost_call(frames)] if frames else []
    # `queue.Queue.get` waits in `threading.Condition.wait`: the outer call says more, so it is looked up first.
    for table, looked in ((_SPECIFIC, frames[:_NEAR]), (_GENERAL, (*call, *frames[:_NEAR]))):
        for frame in looked:
            if (found := _found(table, frame)) is not None:
                return found
    return None


def idle(frames: Sequence[Frame]) -> FrameMeaning | None:
    """What an idle process waits for; None if it has called code of the job."""
    own = next((frame for frame in frames if not frame.library), None)
    return None if own is None else _found(_IDLE, own)


def phase_of_frames(frames: Sequence[Frame]) -> Phase | None:
    """The phase of the innermost frame that belongs to one; None where none does."""
    for frame in frames:
        for pattern, phase in _PHASES:
            if any(pattern.search(text) for text in frame.texts):
                return phase
    return None


def phase_of_processes(processes: Sequence[Process]) -> Phase | None:
    """The phase of the ranks; without one, that of the engines, then of the driver."""
    for role in ("rank", "engine", "loader", "driver"):
        for process in processes:
            if process.role == role and process.main is not None and (found := phase_of_frames(process.main.frames)):
                return found
    return None


def _found(table: Sequence[tuple[re.Pattern[str], Act, Phrase]], frame: Frame) -> FrameMeaning | None:
    for pattern, act, meaning in table:
        if any(pattern.search(text) for text in frame.texts):
            return FrameMeaning(act, meaning)
    return None


_CALLS: Mapping[str, Phrase] = {
    "futex": phrase("waits for a lock or another thread"),
    "wait": phrase("waits for a process that it has started"),
    "nanosleep": phrase("sleeps"),
    "poll": phrase("waits for an event"),
    "epoll": phrase("waits for an event"),
    "select": phrase("waits for an event"),
    "sigsuspend": phrase("waits for a signal"),
    "flock": phrase("waits for a file lock"),
    "fcntl": phrase("waits for a file lock"),
    "semop": phrase("waits for a lock"),
    "accept": phrase("waits for somebody to connect"),
    "fsync": phrase("waits for a disk"),
}
_CHANNELS: tuple[tuple[str, str], ...] = (
    ("futex", "futex"),
    ("pipe_read", "read"),
    ("pipe_write", "write"),
    ("pipe_wait", "read"),
    ("do_wait", "wait"),
    ("nanosleep", "nanosleep"),
    ("ep_poll", "epoll"),
    ("poll_schedule", "poll"),
    ("do_sys_poll", "poll"),
    ("do_poll", "poll"),
    ("do_select", "select"),
    ("sigsuspend", "sigsuspend"),
    ("flock", "flock"),
    ("locks_lock", "flock"),
    ("posix_lock", "fcntl"),
    ("fcntl_setlk", "fcntl"),
    ("inet_csk_accept", "accept"),
    ("sk_wait_data", "recvfrom"),
    ("wait_woken", "recvfrom"),
    ("unix_stream_read", "recvfrom"),
    ("inet_stream_connect", "connect"),
    ("inet_wait_for_connect", "connect"),
    ("folio_wait", "disk"),
    ("io_schedule", "disk"),
    ("nfs", "disk"),
    ("rpc_wait", "disk"),
    ("fuse", "disk"),
    ("nvidia", "gpu"),
    ("uvm_", "gpu"),
)
"""Parts of the names of kernel functions (`wchan`, kernel stack), and the system call that waits there."""


def kernel_call(process: Process) -> str | None:
    """The system call in which the main thread waits, or `disk` or `gpu`; None where it is not known."""
    if process.waits.get("call"):
        return str(process.waits["call"])
    for place in (str(process.waits.get("wchan") or ""), *process.kernel):
        for part, name in _CHANNELS:
            if part in place:
                return name
    return None


def waits_for(process: Process) -> Phrase | Phrases:
    """What a process waits for according to the kernel, in words; empty where it may not be read."""
    if process.stopped:
        return phrase("is stopped by a signal")
    if process.state == "D":
        return phrase("waits for a disk or a device")
    if process.state == "R":
        return phrase("is on a processor")
    name = kernel_call(process)
    file = str(process.waits.get("file") or "")
    if file.startswith("pipe:"):
        return _pipe(process, str(name))
    if file.startswith("socket:"):
        return _socket(process)
    if name in ("read", "readv", "pread", "disk") and file:
        return phrase("reads {file}", file=file)
    return {
        "read": phrase("waits for another process"),
        "write": phrase("waits for another process"),
        "recvfrom": phrase("waits for the network or another process"),
        "recvmsg": phrase("waits for the network or another process"),
        "connect": phrase("connects"),
        "disk": phrase("waits for a disk or a device"),
        "gpu": phrase("waits for the GPU"),
        **_CALLS,
    }.get(name or "", NOTHING)


def _pipe(process: Process, name: str) -> Phrase:
    ends: list[list[Any]] = list(process.waits.get("ends") or [])
    others = sorted({str(pid) for pid, writes in ends if writes == name.startswith("read")})
    if not others:
        return phrase("waits at a pipe")
    if name.startswith("write"):
        return phrase("waits at a full pipe that process {pids} reads", pids=", ".join(others[:4]))
    return phrase("waits at an empty pipe that process {pids} writes", pids=", ".join(others[:4]))


def _socket(process: Process) -> Phrase:
    peer = process.waits.get("peer")
    if peer is None:
        return phrase("waits for another process")
    return phrase("waits for {peer} ({state})", peer=peer["peer"], state=listed(peer["state"]))
