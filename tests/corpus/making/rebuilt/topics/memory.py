"""Out of GPU memory, at the places where verl and vLLM run out of it."""

from tests.corpus.making.rebuilt.failing import back, core, frames, from_server, others
from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage, said

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"


def oom(tried: str, gpu: int, free: str, mine: str, torch: str, apart: str) -> str:
    """torch's own words from 2.2 on."""
    return (
        f"{MARK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of 79.11 GiB of "
        f"which {free} is free. Including non-PyTorch memory, this process has {mine} memory in use. Of the allocated memory {torch} is "
        f"allocated by PyTorch, and {apart} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


@log(
    "oom-update-actor-first",
    "cuda-oom",
    made="The first update of the actor needs more memory than an 80 GB card has.",
    versions=SETS,
)
def update_actor() -> str:
    stage = Stage(11)
    error = oom("18.56 GiB", 3, "12.43 GiB", "66.66 GiB", "61.02 GiB", "3.11 GiB")
    told = stage.until("loop", dump=True)
    told += others(stage, "OutOfMemoryError", error, "actor_rollout_update_actor", "update", "backward", ranks=(3, 5))
    return told + back(
        stage, "OutOfMemoryError", error, "actor_rollout_update_actor", "fit update", "update", "backward"
    )


@log(
    "oom-log-prob",
    "cuda-oom-log-prob",
    "cuda-oom",
    made="The log-probs of the old policy do not fit into memory.",
    versions=SETS,
)
def log_prob() -> str:
    stage = Stage(12)
    error = oom("9.28 GiB", 0, "6.90 GiB", "72.20 GiB", "40.51 GiB", "30.02 GiB")
    return stage.until("loop") + back(
        stage, "OutOfMemoryError", error, "actor_rollout_compute_log_prob", "fit old", "log_prob", "forward"
    )


@log(
    "oom-ref",
    "cuda-oom-log-prob",
    "cuda-oom",
    made="The log-probs of the reference policy do not fit into memory, on one of two nodes.",
    versions=SETS,
)
def ref() -> str:
    stage = Stage(13, nodes=2, color=0)
    error = oom("4.64 GiB", 6, "1.17 GiB", "77.92 GiB", "71.80 GiB", "4.32 GiB")
    return stage.until("loop") + back(
        stage, "OutOfMemoryError", error, "ref_compute_ref_log_prob", "fit ref", "ref", "forward", rank=14
    )


@log(
    "oom-after-steps",
    "cuda-oom-after-steps",
    "cuda-oom",
    made="Memory suffices for 23 steps, until a batch comes with longer answers.",
    versions=SETS,
)
def after_steps() -> str:
    stage = Stage(14)
    error = oom("2.90 GiB", 7, "1.02 GiB", "78.07 GiB", "63.94 GiB", "11.87 GiB")
    told = stage.until("loop", range(1, 24), dump=True)
    told += others(stage, "OutOfMemoryError", error, "actor_rollout_update_actor", "update", "optimizer", ranks=(7,))
    return told + back(
        stage, "OutOfMemoryError", error, "actor_rollout_update_actor", "fit update", "update", "optimizer"
    )


@log(
    "oom-old-wording",
    "cuda-oom",
    made="The words of torch 2.0 for too little memory, in a plain script under torchrun.",
    phase="",
    versions="torch=2.0.1",
)
def old_wording() -> str:
    bars = "".join(
        f"\r{n * 4:3}%|{'█' * (n // 3):<10}| {n}/250 [0{n // 10}:{n % 10 * 6:02}<26:10,  6.41s/it, loss={1.9 - n / 90:.3f}]"
        for n in range(0, 31, 2)
    )
    frames_ = frames(
        "/home/user/sft/train.py 211 <module>: main()",
        "/home/user/sft/train.py 187 main: loss = model(**batch).loss",
        "torch/nn/modules/module.py 1501 _call_impl: return forward_call(*args, **kwargs)",
        "transformers/models/llama/modeling_llama.py 709 forward: shift_logits = logits[..., :-1, :].contiguous()",
    )
    return (
        "WARNING:torch.distributed.run:\n*****************************************\nSetting OMP_NUM_THREADS environment variable for each "
        "process to be 1 in default, to avoid your system being overloaded, please further tune the variable for optimal performance in your "
        "application as needed. \n*****************************************\n"
        "Loading checkpoint shards: 100%|██████████| 2/2 [00:09<00:00,  4.61s/it]\n"
        * 1
        + "trainable params: 6,738,415,616 || all params: 6,738,415,616 || trainable%: 100.0\n"
        + bars
        + f"\nTraceback (most recent call last):\n{frames_}{MARK}torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB (GPU 1; "
        "79.15 GiB total capacity; 74.80 GiB already allocated; 1.27 GiB free; 76.40 GiB reserved in total by PyTorch) If reserved memory is >> "
        "allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF\n"
        "\r 12%|█▏        | 31/250 [03:18<23:24,  6.41s/it, loss=1.556]\n"
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 41077 closing signal SIGTERM\n"
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1 (pid: 41078) of binary: /home/user/venv/bin/python\n"
        "Traceback (most recent call last):\n"
        + frames(
            "/home/user/venv/bin/torchrun 8 <module>: sys.exit(main())", "torch/distributed/run.py 794 main: run(args)"
        )
        + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\n"
        "train.py FAILED\n------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n"
        "------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-02-11_14:03:52\n"
        "  host      : node-1\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 41078)\n  error_file: <N/A>\n  traceback : To enable traceback see: "
        "https://pytorch.org/docs/stable/elastic/errors.html\n============================================================\n"
    )


@log(
    "kv-cache-too-small",
    "kv-cache-too-small-for-length",
    phase="rollout",
    made="The KV cache cannot hold one sequence of 32768 tokens.",
    versions=SETS,
)
def kv_too_small() -> str:
    stage = Stage(16)
    error = (
        f"{MARK}ValueError: To serve at least one request with the models's max seq len (32768), (7.00 GiB KV cache is needed, which is larger than "
        "the available KV cache memory (4.21 GiB). Based on the available memory, the estimated maximum model length is 19696. Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    )
    last = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    told = stage.until("actor") + stage.actor() + stage.engine(graphs=False) + core(stage, error, "core", "core caches")
    return told + from_server(stage, "RuntimeError", last, "init rollout", "launch_server", "launch")


@log(
    "free-memory-at-startup",
    "vllm-free-memory-at-startup",
    phase="rollout",
    made="Another process holds 60 GB of the card where the engine starts.",
    versions=SETS,
)
def free_memory() -> str:
    stage = Stage(17)
    error = (
        f"{MARK}ValueError: Free memory on device (17.84/79.11 GiB) on startup is less than desired GPU memory utilization (0.6, 47.47 GiB). "
        "Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    last = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    told = (
        stage.until("actor", dump=True)
        + stage.actor()
        + stage.engine(graphs=False)
        + core(stage, error, "core", "core device")
    )
    return told + from_server(stage, "RuntimeError", last, "init rollout", "launch_server", "launch")


@log(
    "warm-up-oom",
    "vllm-warm-up-oom",
    phase="",
    made="vLLM serve runs out of memory when it warms up its sampler with 1024 sequences.",
    versions="vllm=0.11.0 torch=2.8.0",
)
def warm_up() -> str:
    head = "\x1b[1;36m(EngineCore_DP0 pid=9043)\x1b[0;0m "
    rows = [
        "Traceback (most recent call last):",
        *frames("core", "core caches").rstrip("\n").split("\n")[:6],
        *frames(
            'vllm/v1/executor/abstract.py 75 initialize_from_config: self.collective_rpc("compile_or_warm_up_model")',
            "vllm/v1/worker/gpu_worker.py 413 compile_or_warm_up_model: self.model_runner._dummy_sampler_run(",
            "vllm/v1/worker/gpu_model_runner.py 3221 _dummy_sampler_run: raise RuntimeError(",
        )
        .rstrip("\n")
        .split("\n"),
        f"{MARK}RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or "
        "`gpu_memory_utilization` when initializing the engine.",
    ]
    server = Stage(18).engine().replace("\x1b[36m(vLLMHttpServer", "\x1b[1;36m(APIServer")
    told = server.replace("6 secs, took 0.51", "9 secs, took 2.13")
    told += "".join(
        f"{head}ERROR 03-14 09:24:15 [core.py:708] {row}\n" for row in ["EngineCore failed to start.", *rows]
    )
    told += f"{head}Process EngineCore_DP0:\n" + "".join(f"{head}{row}\n" for row in rows)
    told += "[rank0]:[W314 09:24:16.710266131 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called before program exit\n"
    return told + said(
        "APIServer pid=8812",
        f"Traceback (most recent call last):\n{frames('launch')}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}",
        color=36,
    )


@log(
    "wake-up-oom",
    "vllm-wake-up-oom",
    made="The engine cannot take its memory back after the first update, as the optimizer stays on the card.",
    versions=SETS,
)
def wake_up() -> str:
    stage = Stage(19)
    told = stage.until("loop", range(1, 2))
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        f"\x1b[1;36m(EngineCore_DP0 pid={stage.runner + 4312})\x1b[0;0m {MARK}CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62",
    )
    error = f"{MARK}RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"
    below = (
        "vllm/v1/engine/core.py 701 run_engine_core: engine_core.run_busy_loop()",
        'vllm/executor/executor_base.py 203 wake_up: self.collective_rpc("wake_up", kwargs=dict(tags=tags))',
        "vllm/v1/worker/gpu_worker.py 126 wake_up: allocator.wake_up(tags)",
        "vllm/device_allocator/cumem.py 250 wake_up: create_and_map(handle)",
        "vllm/device_allocator/cumem.py 81 create_and_map: python_create_and_map(*allocation_handle)",
    )
    told += core(stage, error, *below, headline="EngineCore encountered a fatal error.", line=710)
    last = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
    return told + from_server(
        stage,
        "EngineDeadError",
        last,
        "fit generate",
        "wake_up",
        'workers/rollout/vllm_rollout/vllm_async_server.py 624 wake_up: await self.engine.wake_up(tags=["kv_cache", "weights"])',
    )
