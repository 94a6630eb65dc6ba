"""Failures of the hardware, the disk, the data and the batch system while a run works."""

from tests.corpus.making.rebuilt.failing import HYDRA, OVERRIDES, back, core, frames, from_server, others, runner
from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage, said
from tests.corpus.making.rebuilt.topics.between_ranks import ABORTED, died

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"
ASYNC = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing "
    "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


@log(
    "disk-quota-checkpoint",
    "disk-quota-exceeded",
    made="The quota of the user's folder is used up while step 40 is saved.",
    versions=SETS,
)
def quota() -> str:
    stage = Stage(51)
    error = f"{MARK}OSError: [Errno 122] Disk quota exceeded"
    told = stage.until("loop", range(35, 41), dump=True) + stage.run(
        "local_global_step_folder: checkpoints/verl_examples/gsm8k/global_step_40"
    )
    told += stage.at(
        0,
        "INFO:2026-03-14 10:14:02,117:[Rank 0] Saved model to /home/user/verl/checkpoints/verl_examples/gsm8k/global_step_40/actor/model_world_size_8_rank_0.pt",
    )
    text = back(stage, "OSError", error, "actor_rollout_save_checkpoint", "fit save", "save")
    return told + text.replace(
        error,
        f"{error}\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n{frames('save')}RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 4160749568 vs 4160749456",
    )


@log(
    "hf-offline",
    "hf-offline-not-cached",
    phase="config",
    made="HF_HUB_OFFLINE is set, and the model is not in the cache.",
    versions="verl=0.7.1 transformers=4.57.6 huggingface-hub=0.36.0",
)
def offline() -> str:
    stage = Stage(52, model="Qwen/Qwen2.5-7B-Instruct")
    error = (
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck your internet connection or see how to run the library in offline mode at "
        "'https://huggingface.co/docs/transformers/installation#offline-mode'."
    )
    told = stage.until("dataset", dump=True)
    below = frames(
        "trainer/main_ppo.py 301 run: tokenizer = hf_tokenizer(local_path, trust_remote_code=trust_remote_code)",
        "utils/tokenizer.py 68 hf_tokenizer: tokenizer = AutoTokenizer.from_pretrained(name_or_path, **kwargs)",
        "transformers/models/auto/tokenization_auto.py 1109 from_pretrained: tokenizer_config = get_tokenizer_config(pretrained_model_name_or_path, **kwargs)",
        "transformers/utils/hub.py 322 cached_file: file = cached_files(path_or_repo_id=path_or_repo_id, filenames=[filename], **kwargs)",
        "transformers/utils/hub.py 553 cached_files: raise OSError(",
    )
    first = "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to False."
    return told + (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, 'OSError')}"
        f"{MARK}{first}\n\nThe above exception was the direct cause of the following exception:\n\n\x1b[36mray::TaskRunner.run()\x1b[39m (pid={stage.runner}, ip=10.0.0.5)\n{below}{MARK}{error}\n{HYDRA}"
    )


@log(
    "illegal-memory-access",
    "cuda-illegal-memory-access",
    made="A kernel of the engine touches foreign memory in step 12; the watchdog of its process says so too.",
    versions=SETS,
)
def illegal() -> str:
    stage = Stage(53)
    error = f"{MARK}torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n{ASYNC}"
    told = stage.until("loop", range(1, 12))
    told += core(stage, error.rstrip("\n"), "core loop", headline="EngineCore encountered a fatal error.", line=710)
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        (
            "[rank0]:[E314 09:41:20.118402771 ProcessGroupNCCL.cpp:2068] [PG ID 2 PG GUID 3 Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n"
            f"{ASYNC}\nException raised from c10_cuda_check_implementation at /pytorch/c10/cuda/CUDAException.cpp:42 (most recent call first):\n{ABORTED}"
        ),
    )
    last = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        "\n".join(
            f"ERROR 03-14 09:41:20 [async_llm.py:480] {row}"
            for row in [
                "AsyncLLM output_handler failed.",
                "Traceback (most recent call last):",
                *frames("serve").rstrip("\n").split("\n")[6:],
                last,
            ]
        ),
    )
    return told + from_server(stage, "EngineDeadError", last, "fit generate", "generate", "serve")


@log(
    "gpu-fell-off-the-bus",
    "gpu-hardware-failed",
    made="A card falls off the bus in step 77; the kernel's log stands in between.",
    versions=SETS,
)
def bus() -> str:
    stage = Stage(54)
    told = stage.until("loop", range(70, 77))
    told += (
        f"{MARK}[1204412.551203] NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        f"{MARK}[1204412.551209] NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus.\n"
    )
    error = f"torch.AcceleratorError: CUDA error: unspecified launch failure\n{ASYNC}"
    return told + back(
        stage, "AcceleratorError", error, "actor_rollout_update_actor", "fit update", "update", "backward"
    )


@log(
    "ecc-uncorrectable",
    "gpu-hardware-failed",
    made="A card reports an uncorrectable memory error in step 3.",
    versions=SETS,
)
def ecc() -> str:
    stage = Stage(55, color=0)
    error = f"{MARK}torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n{ASYNC}"
    told = stage.until("loop", range(1, 3), dump=True) + others(
        stage, "AcceleratorError", error, "actor_rollout_update_actor", "update", "optimizer", ranks=(6,)
    )
    return told + died(stage, 6)


@log(
    "cublas", "cublas-failed", made="cuBLAS cannot be set up for the first log-prob.", versions="verl=0.7.1 torch=2.6.0"
)
def cublas() -> str:
    stage = Stage(56)
    error = f"{MARK}RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, opb, m, n, k, alpha_ptr, a, CUDA_R_16BF, lda, b, CUDA_R_16BF, ldb, beta_ptr, c, CUDA_R_16BF, ldc, compute_type, CUBLAS_GEMM_DEFAULT_TENSOR_OP)`"
    return stage.until("loop") + back(
        stage, "RuntimeError", error, "actor_rollout_compute_log_prob", "fit old", "log_prob", "forward"
    )


@log(
    "image-tokens",
    "image-tokens-mismatch",
    made="A picture's tokens were cut off with the prompt.",
    versions="verl=0.7.1 transformers=4.57.6",
)
def image() -> str:
    stage = Stage(57, model="/data/models/Qwen2.5-VL-7B-Instruct")
    error = f"{MARK}ValueError: Image features and image tokens do not match: tokens: 1012, features 1224"
    below = (
        "log_prob",
        "workers/actor/dp_actor.py 244 _forward_micro_batch: output = self.actor_module(",
        "models/transformers/qwen2_vl.py 351 _get_input_embeds: raise ValueError(",
    )
    return stage.until("loop", range(1, 3)) + back(
        stage, "ValueError", error, "actor_rollout_compute_log_prob", "fit old", *below
    )


@log(
    "nan-ends-the-run",
    "nan-ended-run",
    "loss-or-gradient-nan",
    made="The gradient is not finite from step 14 on; in step 16 sampling fails on it.",
    versions="verl=0.7.1 torch=2.8.0",
)
def nan() -> str:
    stage = Stage(58)
    told = stage.until("loop", range(1, 14))
    for number in (14, 15):
        told += stage.at(2, f"{MARK}WARN: rank 2 grad_norm is not finite: nan") + stage.at(
            5, f"{MARK}WARN: rank 5 grad_norm is not finite: nan", again=6
        )
        told += stage.run(
            MARK
            + stage.step(number, actor__grad_norm="nan", actor__pg_loss="nan", actor__entropy="nan")
            + f"\n\r{stage.progress(number)}"
        )
    error = f"{MARK}RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"
    pid = stage.runner + 4100
    where = f"(pid={pid}, ip=10.0.0.5, actor_id=c3d1ab0176be2aa4f8e2bc0f01000000, repr=<verl.workers.rollout.hf_rollout.HFRollout object at 0x7ee15c0bfd90>)"
    return told + (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, 'RuntimeError')}{frames('fit generate')}ray.exceptions.RayTaskError(RuntimeError): \x1b[36mray::WorkerDict.generate_sequences()\x1b[39m {where}\n"
        + frames(
            "transformers/generation/utils.py 2564 generate: result = decoding_method(",
            "transformers/generation/utils.py 2829 _sample: next_tokens = torch.multinomial(probs, num_samples=1).squeeze(1)",
        )
        + f"{error}\n{HYDRA}"
    )


@log("preempted-by-slurm", "job-preempted", made="Slurm preempts the job in step 9.", versions="verl=0.7.1")
def slurm() -> str:
    stage = Stage(59, nodes=2)
    told = stage.until("loop", range(1, 9), dump=True)
    return told + (
        f"{MARK}slurmstepd: error: *** JOB 481223 ON node-1 CANCELLED AT 2026-03-14T11:32:07 DUE TO PREEMPTION ***\n"
        "\x1b[33m(raylet)\x1b[0m [2026-03-14 11:32:07,912 I 3101 3101] (raylet) main.cc:454: Raylet received SIGTERM, shutting down...\n"
        "srun: Job step aborted: Waiting up to 92 seconds for job step to finish.\nslurmstepd: error: *** STEP 481223.0 ON node-1 CANCELLED AT 2026-03-14T11:32:07 DUE TO PREEMPTION ***\n"
        "srun: error: node-2: task 1: Terminated\nsrun: error: node-1: task 0: Terminated\n"
    )


@log(
    "shm-bus-error",
    "shm-bus-error",
    phase="",
    made="A container has 64 MB of shared memory, and a data loader's worker dies of it.",
    versions="torch=2.6.0",
)
def shm() -> str:
    return (
        "2026-03-02 15:01:12 | INFO | 加载数据集 /data/vqa/train.jsonl，共 118287 条\n2026-03-02 15:01:19 | INFO | 模型参数量 8.29B，可训练 8.29B\n2026-03-02 15:02:40 | INFO | 开始训练，总步数 9240\n"
        f"{MARK}ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
        * 1
        + "Traceback (most recent call last):\n"
        + frames(
            "torch/utils/data/dataloader.py 1251 _try_get_data: data = self._data_queue.get(timeout=timeout)",
            "/usr/lib/python3.11/multiprocessing/connection.py 947 wait: ready = selector.select(timeout)",
            "torch/utils/data/_utils/signal_handling.py 73 handler: _error_if_any_worker_fails()",
        )
        + "RuntimeError: DataLoader worker (pid 7781) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"
        "\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
        + frames("/home/user/vqa/train.py 144 <module>: main()")
        + "RuntimeError: DataLoader worker (pid(s) 7781) exited unexpectedly\n"
    )


@log(
    "hydra-missing-value",
    "hydra-missing-value",
    phase="",
    made="A mandatory value of a user's own config is not given.",
    versions="hydra-core=1.3.2 omegaconf=2.3.0",
)
def missing() -> str:
    return (
        "+ python3 -m recipe.search.main_search --config-name=search trainer.nnodes=2\n"
        "Error executing job with overrides: ['trainer.nnodes=2']\nTraceback (most recent call last):\n"
        + frames(
            "/home/user/verl/recipe/search/main_search.py 41 main: index = build_index(config.retriever.index_path)"
        )
        + f"{MARK}omegaconf.errors.MissingMandatoryValue: Missing mandatory value: retriever.index_path\n    full_key: retriever.index_path\n    object_type=dict\n{HYDRA}"
    )


@log(
    "segfault-worker",
    "segmentation-fault",
    made="A worker of the actor crashes in native code in step 2.",
    versions=SETS,
)
def segfault() -> str:
    stage = Stage(62)
    told = stage.until("loop", range(1, 2))
    told += stage.at(
        3,
        f"{MARK}*** SIGSEGV received at time=1773481562 on cpu 73 ***\nPC: @     0x7f2c9c1be2b4  (unknown)  flash_attn::mha_varlen_bwd()\n    @     0x7f3fb4e42520       4048  (unknown)\n"
        "    @     0x7f2c9c1c0a11        992  (unknown)\n[2026-03-14 09:46:02,554 E 9123 9123] logging.cc:474: *** SIGSEGV received at time=1773481562 on cpu 73 ***\n"
        f"{MARK}Fatal Python error: Segmentation fault\n\n\nStack (most recent call first):\n"
        + frames("backward", "update"),
    )
    return told + died(stage, 3)
