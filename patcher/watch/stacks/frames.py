"""Frames that tell what a process does, and those that belong to a phase."""

from __future__ import annotations

from typing import Literal, TypeAlias

from patcher.i18n import Phrase, phrase
from patcher.logs.milestones import Phase

Act: TypeAlias = Literal["waits-peers", "waits-others", "waits-lock", "waits-input", "works"]
"""`waits-peers`: in a collective or for the group to form; `waits-others`: for another process's answer;
`waits-lock`, `waits-input`: for a lock, for data; `works`: it computes, compiles, loads."""
Entry: TypeAlias = tuple[str, Act, Phrase]

_COLLECTIVES = (
    "all_reduce|all_gather\\w*|reduce_scatter\\w*|_?reduce|_?broadcast\\w*|barrier|monitored_barrier|gather\\w*|scatter\\w*|"
    "all_to_all\\w*|isend|irecv|send|recv|batch_isend_irecv"
)
SPECIFIC: tuple[Entry, ...] = (
    (r"filelock/\S*:(acquire|_acquire)", "waits-lock", phrase("waits for a file lock")),
    (r"datasets/\S*:(download_and_prepare|_prepare_split\w*)", "works", phrase("prepares a data set")),
    (r"huggingface_hub/|transformers/utils/hub\.py:", "works", phrase("fetches files of a model or data set")),
    (r"torch/utils/cpp_extension\.py:|torch/utils/_cpp_extension", "works", phrase("compiles a kernel")),
    (r"triton/(compiler|runtime|backends)/", "works", phrase("compiles a kernel")),
    (
        r"torch/_inductor/|torch/_dynamo/convert_frame|flashinfer/jit/|deep_gemm/jit",
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
"""Of packages: they say what is done, whatever Python's library does for it further in."""
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
"""Of Python's library."""
IDLE: tuple[Entry, ...] = (
    (
        r"torch/utils/data/_utils/worker\.py:_worker_loop|torchdata/stateful_dataloader/worker\.py:_worker_loop",
        "waits-input",
        phrase("waits for the next batch to read"),
    ),
    (r"ray/_private/worker\.py:\S*main_loop$", "waits-others", phrase("has nothing to do")),
    (r"vllm/v1/engine/core\.py:\S*(run_busy_loop|_process_input_queue)", "waits-others", phrase("has nothing to do")),
)
"""Loops that wait for work: they tell only where nothing of the job's own is called from them."""
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
