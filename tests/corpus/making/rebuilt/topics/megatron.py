"""Megatron-LM, alone under torchrun."""

from tests.corpus.making.rebuilt.failing import frames
from tests.corpus.making.rebuilt.keeping import MARK, log


def iterations(first: int, last: int) -> str:
    """Megatron-LM's lines of progress."""
    return "".join(
        f" [2026-03-02 12:{number // 60:02}:{number % 60:02}] iteration {number:8}/   50000 | consumed samples: {number * 512:12} | elapsed time per iteration (ms): 9812.{number % 10} | throughput per GPU (TFLOP/s/GPU): "
        f"41{number % 10}.2 | learning rate: 2.8{number % 10}0000E-06 | global batch size:   512 | lm loss: {11.2 - number / 60:.6E} | loss scale: 1.0 | grad norm: {3.1 - number / 200:.3f} | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |\n"
        for number in range(first, last)
    )


@log(
    "megatron-nan",
    "nan-ended-run",
    "loss-or-gradient-nan",
    made="A gradient of one rank of Megatron-LM is not a number, and the run ends.",
    phase="",
    versions="megatron-core=0.12.1 torch=2.6.0",
)
def megatron_nan() -> str:
    frame = frames(
        "/home/user/Megatron-LM/pretrain_gpt.py 299 <module>: pretrain(",
        "/home/user/Megatron-LM/megatron/training/training.py 1104 train_step: losses_reduced = forward_backward_func(",
        "/home/user/Megatron-LM/megatron/core/distributed/param_and_grad_buffer.py 165 check_grads: rerun_state_machine.validate_result(",
        "/home/user/Megatron-LM/megatron/core/rerun_state_machine.py 505 validate_result: raise RuntimeError(full_message)",
    )
    rows = [
        *frame.rstrip("\n").split("\n"),
        f"{MARK}RuntimeError: Rank 11, node node-2, device 3, iteration 141: Unexpected result nan (message='found NaN in local grad norm for bucket #0 in backward pass before data-parallel communication collective')",
    ]
    return (
        "> initializing torch distributed ...\n> initialized tensor model parallel with size 8\n> initialized pipeline model parallel with size 2\n> setting random seeds to 1234 ...\ntraining ...\n"
        + iterations(90, 141)
        + "[rank11]: Traceback (most recent call last):\n"
        + "".join(f"[rank11]: {row}\n" for row in rows)
        + "[rank3]:[E302 12:33:09.104331900 ProcessGroupNCCL.cpp:1834] [PG ID 2 PG GUID 12 Rank 3] Received a global dump signal from a remote rank through TCPStore\n"
        "W0302 12:33:12.774000 7711 site-packages/torch/distributed/elastic/multiprocessing/api.py:897] Sending process 7790 closing signal SIGTERM\n"
        "E0302 12:33:13.101000 7711 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 7793) of binary: /home/user/venv/bin/python\n"
    )


@log(
    "well-megatron",
    verdict="running",
    made="A run of Megatron-LM whose every line counts its nan iterations, none so far.",
    phase="",
    versions="megatron-core=0.12.1 torch=2.6.0",
)
def megatron_well() -> str:
    return (
        "> initializing torch distributed ...\n> initialized tensor model parallel with size 8\n> setting random seeds to 1234 ...\ntraining ...\n"
        + iterations(1, 60)
    )
