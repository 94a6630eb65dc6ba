"""Texts that guides to troubleshooting quote, put into surroundings of other programs: `python -m tests.corpus.making.documents`."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parents[1]
Ground = Callable[[Sequence[str], random.Random], list[str]]


@dataclass(frozen=True, slots=True)
class Quote:
    """What a document quotes, and what it is the sign of. `sign` is a part of the line that tells."""

    name: str
    texts: tuple[str, ...]
    sign: str
    root: tuple[str, ...]
    ground: Ground
    verdict: str = "failed"
    phase: str = ""


def script(texts: Sequence[str], chance: random.Random) -> list[str]:
    """A training script of its own, with an argument dump, a progress bar and plain prints."""
    batch = chance.choice((64, 128, 256))
    before = [
        f"Namespace(pretrain='/data/models/qwen2.5-7b', train_batch_size={batch}, rollout_batch_size=64,",
        "          n_samples_per_prompt=8, engine_mem_util=0.6, engine_tp_size=2, max_norm=1.0, bf16=True, fsdp=True)",
        "[INFO] world size 8, local rank 0",
        "[INFO] loading tokenizer from /data/models/qwen2.5-7b",
        f"Loading checkpoint shards: 100%|██████████| 4/4 [00:0{chance.randint(2, 9)}<00:00,  1.3s/it]",
        "[INFO] actor has 7615.6M parameters",
        "Episode [1/20]:   0%|          | 0/116 [00:00<?, ?it/s]",
    ]
    return [*before, *texts]


def ray(texts: Sequence[str], chance: random.Random) -> list[str]:
    """Workers of a Ray job on several nodes."""
    before = [
        f"2026-01-11 09:58:{chance.randint(10, 59)},112\tINFO worker.py:1918 -- Started a local Ray instance.",
        "(TaskRunner pid=133947) {'actor_rollout_ref': {'actor': {'grad_clip': 1.0, 'optim': {'lr': 1e-06}},",
        "(TaskRunner pid=133947)                        'rollout': {'gpu_memory_utilization': 0.5, 'n': 8}}}",
        "(TaskRunner pid=133947) Using dataset class: RLHFDataset",
        f"(TaskRunner pid=133947) dataset len: {chance.randint(900, 7500)}",
        "(WorkerDict pid=2210, ip=10.0.0.2) Model config after override: Qwen2Config {",
        '(WorkerDict pid=2210, ip=10.0.0.2)   "hidden_size": 3584,',
        "(WorkerDict pid=2210, ip=10.0.0.2) }",
    ]
    speaker = f"(WorkerDict pid={chance.randint(2000, 9000)}, ip=10.0.0.{chance.randint(2, 9)})"
    return [*before, *(f"{speaker} {text}" for text in texts)]


def logger(texts: Sequence[str], chance: random.Random) -> list[str]:
    """A logger with Chinese messages and a time before each line."""
    words = (
        "配置已加载",
        "正在加载 tokenizer",
        "数据集共 7473 条",
        "开始构建模型",
        "优化器已创建",
        "检查点目录：/data/ckpt",
    )
    second = chance.randint(0, 20)
    lines = [f"[2026-01-11 10:00:{second + number:02d}] root - {word}" for number, word in enumerate(words)]
    return [*lines, *(f"[2026-01-11 10:01:{second + number:02d}] root - {text}" for number, text in enumerate(texts))]


def torchrun(texts: Sequence[str], chance: random.Random) -> list[str]:
    """Several ranks under torchrun, each line with its rank before it."""
    lines = [
        "W0111 10:00:00.101000 8123 torch/distributed/run.py:793] *****************************************",
        "W0111 10:00:00.101000 8123 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each "
        "process to be 1 in default, to avoid your system being overloaded.",
    ]
    lines += [f"[rank{rank}]: building model on cuda:{rank}" for rank in range(4)]
    speaker = f"[rank{chance.randint(0, 3)}]: "
    return [*lines, *(speaker + text for text in texts)]


def build(texts: Sequence[str], chance: random.Random) -> list[str]:
    """The output of an installation."""
    lines = [
        "Processing /home/user/src/vllm",
        "  Preparing metadata (pyproject.toml): started",
        "  Preparing metadata (pyproject.toml): finished with status 'done'",
        "Building wheels for collected packages: vllm",
        "  Building wheel for vllm (pyproject.toml): started",
        "  Building wheel for vllm (pyproject.toml): still running...",
    ]
    return [*lines[: 4 + chance.randint(0, 2)], *texts]


TRACE = ("Traceback (most recent call last):", '  File "/home/user/rft/train.py", line 214, in <module>', "    main()")
GKD = (
    "[2026-01-11 10:00:00] root - GKD TRAINING START",
    "[2026-01-11 10:00:05] root - ✓ Configuration loaded",
    "[2026-01-11 10:00:10] root - Starting dataset generation...",
    "[2026-01-11 10:00:30] root - ✓ Dataset generation completed in 20.1s",
    "[2026-01-11 10:00:30] root - Creating ResourcePool...",
    "[2026-01-11 10:00:35] root - ✓ ResourcePool created in 5.2s",
    "[2026-01-11 10:00:35] root - Initializing Actor Worker...",
    "[2026-01-11 10:00:50] root - ✓ Actor Worker initialized in 15.1s",
    "[2026-01-11 10:00:50] root - Initializing Rollout Worker...",
    "[2026-01-11 10:01:20] root - ✓ Rollout Worker initialized in 30.5s",
    "[2026-01-11 10:01:20] root - Starting weight synchronization...",
    "[2026-01-11 10:01:25] root - ✓ Weight synchronization completed in 5.2s",
    "[2026-01-11 10:01:25] root - Starting training loop...",
)


def bare(texts: Sequence[str], chance: random.Random) -> list[str]:
    return list(texts)


def prefixed(texts: Sequence[str], chance: random.Random) -> list[str]:
    speaker = f"(TaskRunner pid={chance.randint(10000, 99999)}) "
    return [speaker + text for text in texts]


def crash(*last: str) -> tuple[str, ...]:
    return (*TRACE, *last)


QUOTES = (
    Quote(
        "gcc-under-a-script",
        crash(
            "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpx1/main.c', '-O3', '-shared', '-fPIC', '-o', '/tmp/tmpx1/cuda_utils.so', '-lcuda']' returned non-zero exit status 1."
        ),
        "CalledProcessError: Command '['/usr/bin/gcc'",
        ("triton-gcc-failed",),
        script,
    ),
    Quote(
        "linker-libcuda",
        ("/usr/bin/ld: cannot find -lcuda", "collect2: error: ld returned 1 exit status"),
        "cannot find -lcuda",
        ("libcuda-linker",),
        ray,
    ),
    Quote(
        "linker-libcuda-in-a-build",
        (
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
            "collect2: error: ld returned 1 exit status",
            *crash(
                "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '-lcuda']' returned non-zero exit status 1."
            ),
        ),
        "cannot find -lcuda",
        ("libcuda-linker",),
        torchrun,
    ),
    Quote(
        "backend-torch-sdpa",
        crash("ValueError: Backend TORCH_SDPA must be registered before use"),
        "Backend TORCH_SDPA must be registered",
        ("attention-backend-unregistered",),
        ray,
    ),
    Quote(
        "backend-torch-sdpa-logged",
        ("ERROR ValueError: Backend TORCH_SDPA must be registered before use",),
        "Backend TORCH_SDPA",
        ("attention-backend-unregistered",),
        logger,
    ),
    Quote(
        "log-requests-attribute",
        crash("AttributeError: 'AsyncEngineArgs' object has no attribute 'disable_log_requests'"),
        "disable_log_requests",
        ("vllm-disable-log-requests",),
        ray,
    ),
    Quote(
        "log-requests-torchrun",
        crash("AttributeError: 'AsyncEngineArgs' object has no attribute 'disable_log_requests'"),
        "disable_log_requests",
        ("vllm-disable-log-requests",),
        torchrun,
    ),
    Quote("oom-short", crash("RuntimeError: CUDA out of memory"), "CUDA out of memory", ("cuda-oom",), script),
    Quote(
        "oom-class-alone", crash("torch.cuda.OutOfMemoryError"), "torch.cuda.OutOfMemoryError", ("cuda-oom",), torchrun
    ),
    Quote(
        "oom-in-a-logger",
        ("发生错误: CUDA out of memory. Tried to allocate 2.00 GiB",),
        "CUDA out of memory",
        ("cuda-oom",),
        logger,
    ),
    Quote(
        "oom-in-a-worker",
        crash(
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 3 has a total capacity of 79.10 GiB of which 301.81 MiB is free."
        ),
        "CUDA out of memory",
        ("cuda-oom",),
        ray,
    ),
    Quote(
        "kv-cache-short",
        ("ERROR: Failed to allocate memory for KV cache",),
        "Failed to allocate memory for KV cache",
        ("kv-cache-allocation",),
        script,
    ),
    Quote(
        "kv-cache-raised",
        crash("RuntimeError: Failed to allocate memory for KV cache"),
        "Failed to allocate memory for KV cache",
        ("kv-cache-allocation",),
        ray,
    ),
    Quote(
        "worker-registration",
        ("ray.exceptions.RaySystemError: System error: Unable to register worker with raylet. Timed out",),
        "Unable to register worker",
        ("ray-unable-to-register",),
        script,
    ),
    Quote(
        "train-split-in-ray",
        ("  Generating train split: 0 examples [00:00, ? examples/s]",),
        "Generating train split",
        ("generating-train-split",),
        prefixed,
        "stalled",
        "dataset",
    ),
    Quote(
        "train-split-plain",
        ("Starting dataset generation...", "Generating train split: 0 examples [00:00, ? examples/s]"),
        "Generating train split",
        ("generating-train-split",),
        bare,
        "stalled",
        "dataset",
    ),
    Quote(
        "train-split-in-a-logger",
        ("Generating train split: 0 examples [00:00, ? examples/s]",),
        "Generating train split",
        ("generating-train-split",),
        logger,
        "stalled",
        "dataset",
    ),
    Quote("actor-init-last", GKD[:7], "Initializing Actor Worker", ("actor-init",), bare, "stalled", "actor"),
    Quote(
        "actor-init-in-ray",
        ("Creating ResourcePool...", "✓ ResourcePool created in 5.2s", "Initializing Actor Worker..."),
        "Initializing Actor Worker",
        ("actor-init",),
        prefixed,
        "stalled",
        "actor",
    ),
    Quote("rollout-init-last", GKD[:9], "Initializing Rollout Worker", ("rollout-init",), bare, "stalled", "rollout"),
    Quote(
        "rollout-init-in-ray",
        GKD[4:9],
        "Initializing Rollout Worker",
        ("rollout-init",),
        prefixed,
        "stalled",
        "rollout",
    ),
    Quote(
        "rollout-init-in-ray-workers",
        ("✓ Actor Worker initialized in 15.1s", "Initializing Rollout Worker..."),
        "Initializing Rollout Worker",
        ("rollout-init",),
        ray,
        "stalled",
        "rollout",
    ),
    Quote(
        "weight-sync-last",
        GKD[:11],
        "Starting weight synchronization",
        ("weight-sync-stuck",),
        bare,
        "stalled",
        "weight-sync",
    ),
    Quote(
        "weight-sync-waiting",
        (
            *GKD[:11],
            "[2026-01-11 10:01:20] root - [SYNC] Starting weight synchronization",
            "[2026-01-11 10:01:20] root - [SYNC] Syncing actor weights...",
            "[2026-01-11 10:01:22] root - [SYNC] ✓ Actor sync done in 1.9s",
            "[2026-01-11 10:01:22] root - [SYNC] Waiting for rollout weights (timeout=30s)...",
        ),
        "Waiting for rollout weights",
        ("weight-sync-stuck",),
        bare,
        "stalled",
        "weight-sync",
    ),
    Quote(
        "weight-sync-timed-out",
        (
            *GKD[:11],
            "[2026-01-11 10:01:52] root - [SYNC] ✗ Rollout sync TIMEOUT after 30s",
            *crash("ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready."),
        ),
        "TIMEOUT after",
        ("weight-sync-timeout",),
        bare,
        "failed",
        "weight-sync",
    ),
    Quote(
        "gkd-goes-on",
        (*GKD, "step:1 - actor/loss:0.21 - timing_s/step:10.2", "step:2 - actor/loss:0.20 - timing_s/step:10.1"),
        "",
        (),
        bare,
        "running",
        "loop",
    ),
    Quote(
        "gkd-in-ray-goes-on",
        (*GKD, "step:1 - actor/loss:0.21 - timing_s/step:10.2"),
        "",
        (),
        prefixed,
        "running",
        "loop",
    ),
    Quote(
        "nccl-timeout-short",
        crash("RuntimeError: NCCL timeout"),
        "RuntimeError: NCCL timeout",
        ("nccl-timeout",),
        script,
    ),
    Quote(
        "nccl-watchdog-short",
        ("[E ProcessGroupNCCL.cpp] Caught collective operation timeout",),
        "Caught collective operation timeout",
        ("nccl-timeout",),
        torchrun,
    ),
    Quote(
        "nccl-watchdog-in-a-logger",
        ("[E ProcessGroupNCCL.cpp] Caught collective operation timeout",),
        "Caught collective operation timeout",
        ("nccl-timeout",),
        logger,
    ),
    Quote(
        "process-group-last",
        ("Initializing process group",),
        "Initializing process group",
        ("process-group-init",),
        torchrun,
        "stalled",
    ),
    Quote(
        "process-group-in-a-logger",
        ("Initializing process group",),
        "Initializing process group",
        ("process-group-init",),
        logger,
        "stalled",
    ),
    Quote(
        "package-not-installed",
        crash("ModuleNotFoundError: No module named 'lightrft'"),
        "No module named 'lightrft'",
        ("package-not-installed",),
        bare,
    ),
    Quote(
        "package-verl-not-installed",
        (
            "/home/user/venv/bin/python: Error while finding module specification for 'verl.trainer.main_ppo' (ModuleNotFoundError: No module named 'verl')",
        ),
        "No module named 'verl'",
        ("package-not-installed",),
        bare,
    ),
    Quote(
        "kernel-image-short",
        crash("RuntimeError: CUDA error: no kernel image is available for execution"),
        "no kernel image is available",
        ("cuda-no-kernel-image",),
        script,
    ),
    Quote(
        "kernel-image-on-the-device",
        crash(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        ),
        "no kernel image is available",
        ("cuda-no-kernel-image",),
        ray,
    ),
    Quote(
        "wheel-of-vllm",
        (
            "  ERROR: Failed building wheel for vllm",
            "Failed to build vllm",
            "ERROR: Could not build wheels for vllm, which is required to install pyproject.toml-based projects",
        ),
        "Failed building wheel for vllm",
        ("vllm-wheel-build",),
        build,
    ),
    Quote(
        "engine-init-short",
        crash("RuntimeError: Failed to initialize vLLM engine"),
        "Failed to initialize vLLM engine",
        ("vllm-init-failed",),
        script,
    ),
    Quote(
        "engine-init-without-memory",
        ("Failed to initialize vLLM engine", *crash("RuntimeError: Cannot allocate memory")),
        "Cannot allocate memory",
        ("cannot-allocate-memory",),
        script,
    ),
    Quote(
        "engine-sleeps-already",
        crash("RuntimeError: Engine already sleeping"),
        "Engine already sleeping",
        ("engine-already-sleeping",),
        script,
    ),
    Quote(
        "engine-sleeps-already-logged",
        ("ERROR Engine already sleeping",),
        "Engine already sleeping",
        ("engine-already-sleeping",),
        logger,
    ),
    Quote(
        "no-rollouts-asserted",
        crash("AssertionError: num_rollouts_per_episodes should be > 0"),
        "num_rollouts_per_episodes",
        ("rollouts-per-episode-zero",),
        script,
    ),
    Quote(
        "no-rollouts-printed",
        ("num_rollouts_per_episodes = 0",),
        "num_rollouts_per_episodes = 0",
        ("rollouts-per-episode-zero",),
        script,
    ),
    Quote(
        "loss-nan",
        ("Episode [3/20]:  42%|████▏     | 49/116 [12:10<16:38, 14.9s/it]", "Loss: nan", "Gradient: nan"),
        "Loss: nan",
        ("loss-or-gradient-nan",),
        script,
        "running",
    ),
    Quote("loss-nan-in-a-logger", ("第 49 步 Loss: nan",), "Loss: nan", ("loss-or-gradient-nan",), logger, "running"),
    Quote(
        "checkpoint-not-found",
        crash("FileNotFoundError: Checkpoint not found"),
        "Checkpoint not found",
        ("checkpoint-missing",),
        script,
    ),
    Quote(
        "state-dict-short",
        crash("RuntimeError: Error loading state dict"),
        "Error loading state dict",
        ("checkpoint-mismatch",),
        ray,
    ),
    Quote(
        "quota",
        crash("OSError: [Errno 122] Disk quota exceeded: '/data/ckpt/global_step_40'"),
        "Disk quota exceeded",
        ("disk-quota-exceeded",),
        ray,
    ),
    Quote(
        "quota-short", crash("OSError: Disk quota exceeded"), "Disk quota exceeded", ("disk-quota-exceeded",), script
    ),
    Quote(
        "save-short",
        crash("RuntimeError: Cannot save checkpoint"),
        "Cannot save checkpoint",
        ("checkpoint-save-failed",),
        script,
    ),
    Quote(
        "threads-of-openblas",
        (
            "OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 64: Resource temporarily unavailable",
            "OpenBLAS blas_thread_init: ensure that your address space and process count limits are big enough (ulimit -a)",
        ),
        "pthread_create failed",
        ("pthread-create",),
        script,
    ),
)


def part_of(name: str) -> str:
    return "frozen" if zlib.crc32(name.encode()) % 4 == 0 else "tuning"


def main() -> None:
    for quote in QUOTES:
        name = f"quoted-{quote.name}"
        lines = quote.ground(quote.texts, random.Random(name))
        numbers = [number for number, line in enumerate(lines, 1) if quote.sign and quote.sign in line]
        assert bool(numbers) == bool(quote.root), name
        label = [
            f'verdict = "{quote.verdict}"',
            f'phase = "{quote.phase}"',
            "root = [" + ", ".join(f'"{one}"' for one in quote.root) + "]",
            f"lines = {numbers}",
            'origin = "document"',
            'made = "A text that a guide to troubleshooting quotes, in the surroundings of another program."',
        ]
        folder = CORPUS / part_of(name)
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / f"{name}.toml").write_text("\n".join(label) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
