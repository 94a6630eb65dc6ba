"""Runs and programs that came to a good end, some of them noisily."""

from tests.corpus.making.rebuilt.failing import frames
from tests.corpus.making.rebuilt.keeping import log
from tests.corpus.making.rebuilt.stage import Stage, said

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"


def finished(stage: Stage) -> str:
    """The last step, the last validation, and the end of the bar."""
    stage_end = stage.total
    return stage.steps(range(stage_end - 3, stage_end + 1), "") + stage.run(
        "(\"Final validation metrics: {'val-core/openai/gsm8k/reward/mean@1': 0.8961, 'val-aux/num_turns/min': 2, \"\n \"'val-aux/num_turns/max': 2, 'val-aux/num_turns/mean': 2.0}\")"
    )


@log(
    "well-finished-noisily",
    verdict="ok",
    made="A run has finished; its processes are noisy as they end.",
    versions=SETS,
)
def noisy() -> str:
    stage = Stage(108)
    told = stage.until("loop", ()) + finished(stage)
    told += stage.at(
        0,
        "/home/user/venv/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '",
        again=7,
    )
    told += stage.at(
        0,
        "[rank0]:[W314 19:02:16.710266131 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more info, please see "
        "https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())",
    )
    return told + (
        "Exception ignored in: <function WeakValueDictionary.__init__.<locals>.remove at 0x7f1a5c2b9d00>\nTraceback (most recent call last):\n"
        + frames("/usr/lib/python3.11/weakref.py 105 remove: self = selfref()")
        + "TypeError: 'NoneType' object is not callable\n"
        "\x1b[33m(raylet)\x1b[0m [2026-03-14 19:02:20,551 I 3711 3711] (raylet) main.cc:454: Raylet received SIGTERM, shutting down...\n"
        "wandb: \nwandb: Run history:\nwandb: critic/score/mean ▁▂▃▄▅▆▆▇▇███\nwandb: Synced 5 W&B file(s), 0 media file(s), 0 artifact file(s) and 0 other file(s)\n"
    )


@log(
    "well-finished-loader-killed",
    verdict="ok",
    made="A run has finished; the workers of its data loader are killed as the interpreter goes.",
    versions=SETS,
)
def loader_killed() -> str:
    stage = Stage(109, color=0)
    return (
        stage.until("loop", ())
        + finished(stage)
        + stage.run(
            "Exception ignored in: <function _StatefulMultiProcessingDataLoaderIter.__del__ at 0x7f0e7ff2a0c0>\nTraceback (most recent call last):\n"
            + frames(
                "/home/user/venv/lib/python3.11/site-packages/torchdata/stateful_dataloader/stateful_dataloader.py 1377 __del__: self._shutdown_workers()",
                "torch/utils/data/_utils/signal_handling.py 73 handler: _error_if_any_worker_fails()",
            )
            + f"RuntimeError: DataLoader worker (pid {stage.runner + 77}) is killed by signal: Killed. "
        )
    )


@log(
    "well-finished-engines-shut-down",
    verdict="ok",
    made="A run has finished; Ray ends its workers, and the engines say so.",
    versions="verl=0.8.0 vllm=0.20.2 ray=2.55.1",
)
def shut_down() -> str:
    stage = Stage(110, verl="0.8.0")
    told = stage.until("loop", (), vllm="0.20.2") + finished(stage)
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        f"(EngineCore pid={stage.runner + 4312}) INFO 03-14 19:02:18 [core.py:1201] Shutdown initiated (timeout=0)\n(EngineCore pid={stage.runner + 4312}) INFO 03-14 19:02:18 [core.py:1224] Shutdown complete",
    )
    return (
        told
        + f"\x1b[36m(WorkerDict pid={stage.workers[2]})\x1b[0m *** SIGTERM received at time=1773514938 on cpu 31 ***\n\x1b[36m(WorkerDict pid={stage.workers[2]})\x1b[0m PC: @     0x7f6a6d2e99fc  (unknown)  epoll_wait\n"
        + (
            f"\x1b[36m(WorkerDict pid={stage.workers[2]})\x1b[0m [2026-03-14 19:02:18,554 E 9123 9123] logging.cc:474: *** SIGTERM received at time=1773514938 on cpu 31 ***\n"
        )
    )


@log(
    "well-pip-install",
    verdict="ok",
    phase="",
    made="pip installs vLLM and its many packages without a conflict.",
    versions="vllm=0.11.0",
)
def pip() -> str:
    names = (
        "torch-2.8.0",
        "triton-3.4.0",
        "nvidia_nccl_cu12-2.27.3",
        "flashinfer_python-0.3.1",
        "ray-2.48.0",
        "exceptiongroup-1.3.0",
        "retrying-1.4.2",
        "watchfiles-1.1.0",
        "timeout_decorator-0.5.0",
        "xformers-0.0.32.post1",
        "tenacity-9.1.2",
        "stopit-1.1.2",
    )
    told = "Collecting vllm==0.11.0\n  Downloading vllm-0.11.0-cp38-abi3-manylinux1_x86_64.whl.metadata (17 kB)\n"
    for name in names:
        package = name.split("-")[0]
        told += f"Collecting {package} (from vllm==0.11.0)\n  Downloading {name}-py3-none-any.whl.metadata (4.1 kB)\n"
    told += "Downloading vllm-0.11.0-cp38-abi3-manylinux1_x86_64.whl (438.2 MB)\n\r   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 438.2/438.2 MB 61.3 MB/s eta 0:00:00\nBuilding wheels for collected packages: stopit\n  Building wheel for stopit (setup.py): started\n  Building wheel for stopit (setup.py): finished with status 'done'\nSuccessfully built stopit\nInstalling collected packages: "
    return (
        told
        + ", ".join(name.split("-")[0] for name in names)
        + ", vllm\n"
        + "Successfully installed "
        + " ".join(names)
        + " vllm-0.11.0\n\n[notice] A new release of pip is available: 25.0 -> 25.3\n[notice] To update, run: pip install --upgrade pip\n"
    )


@log(
    "well-trainer-finished",
    verdict="ok",
    phase="",
    made="A fine-tuning of transformers' Trainer ends, with one skipped step of the loss scaler.",
    versions="transformers=4.57.6",
)
def trainer() -> str:
    told = "The tokenizer has new PAD/BOS/EOS tokens that differ from the model config and generation config.\n[INFO|trainer.py:2523] 2026-03-02 11:34:22,118 >> ***** Running training *****\n[INFO|trainer.py:2524] 2026-03-02 11:34:22,118 >>   Num examples = 21,407\n[INFO|trainer.py:2532] 2026-03-02 11:34:22,119 >>   Total optimization steps = 334\n"
    for n in range(1, 34):
        told += f"{{'loss': {1.91 - n / 40:.4f}, 'grad_norm': {0.9 - n / 100:.6f}, 'learning_rate': {2e-5 * (1 - n / 34):.3e}, 'epoch': {n / 33:.2f}}}\n"
        if n == 4:
            told += "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
    return (
        told
        + "{'train_runtime': 2411.7712, 'train_samples_per_second': 8.876, 'train_steps_per_second': 0.138, 'train_loss': 1.4203, 'epoch': 1.0}\n\r100%|██████████| 334/334 [40:11<00:00,  7.22s/it]\n[INFO|trainer.py:4309] 2026-03-02 12:14:41,300 >> Saving model checkpoint to /data/ckpt/sft/checkpoint-334\n***** train metrics *****\n  epoch                    =        1.0\n  train_loss               =     1.4203\n"
    )
