"""Logs of trainers other than verl's: they are of a run, and their steps are progress."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnosed import TRACEBACK, diagnosed

BARS = "".join(f" {step}%|████      | {step}/100 [00:{step}<00:50,  1.00it/s]\n" for step in range(40, 43))
STEPS = "".join(
    f"(entry pid=7) 2026-01-02 10:00:{at}0.1 | INFO     | trainer:train:45 - {what}\n"
    for at, what in enumerate(("Started: 'step'", "Finished: 'step', time cost: 9.10s", "Started: 'step'"))
)
BAR = "  1%|          | 1/100 [00:01<02:33,  1.55it/s]   "
LOSS_SCALE = "[2026-01-02 10:00:00,123] [INFO] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8192"
MEGATRON = (
    " iteration {0:8}/     900 | consumed samples: 8 | elapsed time per iteration (ms): 8654.2 | lm loss: 2.50E+00 |"
)
FAILED = f"{TRACEBACK}ValueError: the bed is empty, so that nothing grows\n"


@pytest.mark.parametrize(
    ("log", "phase"),
    [
        (STEPS, "loop"),
        (f"***** Running training *****\n{BARS}", "loop"),
        ("wandb: Tracking run with wandb version 0.19.9\n", "config"),
        ("(Controller pid=7) Started training worker group of size 4: \n", "config"),
        ("2026-01-02 10:00:00,123 - __main__ - INFO - Before starting training, hello\nStarting training\n", "loop"),
        ("=================== Step 2/9 ===================\n", "loop"),
        ("Saving checkpoint for step 4...\n", "loop"),
        ("Starting epoch 0/3\n", "loop"),
        (f"{LOSS_SCALE}, reducing to 4096\n", "loop"),
        (f"{MEGATRON.format(12)}\n", "loop"),
        ("[2026-01-02 10:00:00] [pipeline.py (81)] [INFO] [DRIVER 0 / 1][PID 8] pipeline step 3 finished\n", "loop"),
        ("20260102-10:00:00.123 StatsLogger INFO: Epoch 1/3 Step 2/9 Train step 2/27 done.\n", "loop"),
        ("Progress on:train 12.0it/1.00kit rate:2.1it/s remaining:07:03 elapsed:00:53 postfix:loss:5.33\n", "loop"),
        ("[step=10/1000]\n    train/CrossEntropyLoss=9.1\n", "loop"),
        ("[batch=3/100]:\n     Train loss/train/total: 9.1\n", "loop"),
        ("{'loss': 1.5, 'grad_norm': 0.1, 'learning_rate': 2e-05, 'epoch': 0.01}\n", "loop"),
        (f"{BAR}{{'loss': 1.5, 'grad_norm': 0.1, 'learning_rate': 2e-05, 'epoch': 0.01}}\n", "loop"),
        ("Episode [1/20]:   0%|          | 0/128 [00:00<?, ?it/s]\n", "loop"),
        ("Episode [3/20]:   2%|▏         | 3/128 [00:10<07:00,  3.40s/it]\n", "loop"),
        ("Train step of epoch 2:   2%|▏         | 3/128 [00:10<07:00,  3.40s/it, loss=0.1]\n", "loop"),
        ("(Actor pid=8) make_experience:  12%|█         | 1/8 [00:10<01:10, 10.00s/it]\n", "loop"),
        ("> building train, validation, and test datasets ...\n", "dataset"),
        (
            "[2026-01-02 10:00:00] Prefill batch. #new-seq: 1, #new-token: 6, #running-req: 0, #queue-req: 0\n",
            "rollout",
        ),
        ("[2026-01-02 10:00:00 TP0] Decode batch. #running-req: 1, gen throughput (token/s): 12.5\n", "rollout"),
        ("[titan] step: 10  loss:  4.50  grad_norm:  1.1  memory:  1.2GiB(3%)  tps: 900\n", "loop"),
        ("Step: 10, LR: 1.9e-05, Loss: 1.23, TPS: 900\n", "loop"),
        ("[10:00:00.123456] Epoch: [4]  [20/900]  lr: 0.0003  closs: 2.71 (2.93)  max mem: 8100\n", "loop"),
        ('{"current_steps": 10, "total_steps": 80, "loss": 1.5, "epoch": 0.1, "percentage": 12.5}\n', "loop"),
        ("INFO 01-02 10:00:00 [launcher.py:37] Available routes are:\n", "rollout"),
        ("[2026-01-02 10:00:00] The server is fired up and ready to roll!\n", "rollout"),
        ("2026-01-02 10:00:00,123 DEBUG TRAIN Batch 3/900 loss 2.875 lr 0.00012 grad_norm 1.5 rank 0\n", "loop"),
        ("INFO:     Application startup complete.\n", "config"),
        ("[2026-01-02 10:00:00] INFO server_args.py:81: Attention backend is chosen.\n", "config"),
        ("[2026-01-02 10:00:00,123] [INFO] [launch.py:81:main] WORLD INFO DICT: {'localhost': [0]}\n", "config"),
        ("# Using devices\n#  Rank  0 Group  0 Pid  81 on node7 device  0\n", "config"),
        ("2026-01-02:10:00:00,123 INFO     [evaluator.py:39] Running loglikelihood requests\n", "config"),
    ],
)
def test_a_log_of_another_trainer_is_of_a_run(log: str, phase: str) -> None:
    found = diagnosed(log)
    assert (found.blank, found.verdict, found.phase) == (False, "running", phase)


@pytest.mark.parametrize(
    ("before", "behind", "verdict"),
    [
        ("***** Running training *****\n", BARS, "running"),
        ("", f"{BAR}{{'loss': '1.5', 'grad_norm': '0.1', 'epoch': '0.01'}}\n", "running"),
        ("", "make_experience:  12%|█         | 1/8 [00:10<01:10, 10.00s/it]\n", "running"),
        (STEPS, STEPS, "running"),
        ("***** Running training *****\n", "", "failed"),
        ("", BARS, "failed"),
        (MEGATRON.format(12) + "\n", MEGATRON.format(13) + "\n", "running"),
        ("", f"{LOSS_SCALE}, reducing to 4096\n", "running"),
    ],
)
def test_what_such_a_run_makes_steps_after_it_got_over(before: str, behind: str, verdict: str) -> None:
    assert diagnosed(f"{before}{FAILED}{behind}").verdict == verdict


def test_a_bar_without_a_name_tells_of_no_run() -> None:
    assert diagnosed(BARS).blank


@pytest.mark.parametrize(
    ("log", "step", "steps", "verdict"),
    [
        (f"{MEGATRON.format(12)}\n{MEGATRON.format(13)}\n", 13, 900, "running"),
        (f"{MEGATRON.format(900)}\n", 900, 900, "ok"),
        ("========= Step 9/9 =========\n", 9, 9, "running"),
        ("INFO: Epoch 3/3 Step 9/9 Train step 27/27 done.\n", 27, 27, "ok"),
        ("{'loss': 1.5, 'grad_norm': 0.1, 'global_step/max_steps': '7/60'}\n", 7, 60, "running"),
        ("  Total optimization steps = 1,000\n  1%|   | 10/1000 [00:10<16:30,  1.00s/it]\n", 10, 1000, "running"),
        ("   Total batch size = 8 | Total steps = 60\n100%|###| 60/60 [01:00<00:00,  1.00s/it]\n", 60, 60, "ok"),
        ("Total optimization steps = 60\n100%|###| 64/64 [01:00<00:00,  1.00s/it]\n", None, 60, "running"),
    ],
)
def test_the_steps_of_other_trainers_are_counted(log: str, step: int | None, steps: int, verdict: str) -> None:
    found = diagnosed(log)
    assert (found.step, found.steps, found.verdict) == (step, steps, verdict)


def test_a_failure_after_the_last_step_counts() -> None:
    assert diagnosed(f"{MEGATRON.format(900)}\n{FAILED}").verdict == "failed"


TABLE = (
    "|Tasks|Version|Filter|n-shot|Metric|Value|\n|-----|------:|------|-----:|------|----:|\n"
    "|herbs|      0|none  |     0|acc   |  0.7|\n"
)


def test_a_table_of_an_evaluation_is_its_end() -> None:
    assert diagnosed("===== Serving Benchmark Result =====\nSuccessful requests:     90\n").verdict == "ok"
    assert diagnosed(TABLE).verdict == "ok"
    assert diagnosed(f"{TABLE}{FAILED}").verdict == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "The next step 2/9 is to look",
        "We are starting epoch planning",
        "|Version|Notes|",
        "an iteration of 12/ 900 |",
        "a batch with a loss of 2 and a lower lr",
        "Uvicorn is a server",
    ],
)
def test_what_only_looks_like_progress_tells_of_no_run(line: str) -> None:
    assert diagnosed(f"{line}\n").blank


@pytest.mark.parametrize(
    "log",
    [
        "INFO 01-02 10:00:00 [gpu_worker.py:1] Sleep mode freed 1.5 GiB memory, 4.2 GiB memory is still in use.\n",
        "node7:81:92 [3] NCCL INFO Connected all trees\n",
        "2026-01-02 10:00:00  INFO sglang_router_rs::server: src/server.rs:9: Starting router on 127.0.0.1:30000\n",
        "[2026-01-02 10:00:00] router: INFO: Added worker: http://127.0.0.1:31000\n",
        "Make experience of batch 3\n",
        "[2026-01-02 10:00:00,123] [INFO] [logging.py:81:log_dist] [Rank 0] DeepSpeed Basic Optimizer = Adam\n",
        "[2026-01-02 10:00:00,123] [INFO] [engine.py:81:__init__] CONFIG: micro_batches=8 micro_batch_size=2\n",
        "  1%|▉     | 6/800 [00:30<66:10,  5.01s/it]\n  1%|█     | 7/800 [00:35<66:05,  5.00s/it]\n",
        "epoch     train_loss  valid_loss  accuracy  time\n0         3.210000    2.980000    0.410000  01:05\n",
    ],
)
def test_a_log_of_no_certain_phase_is_of_a_run(log: str) -> None:
    found = diagnosed(log)
    assert (found.blank, found.verdict, found.phase) == (False, "running", None)


def test_a_bar_with_another_name_or_without_a_step_tells_nothing() -> None:
    assert diagnosed("model.bin:  40%|████      | 4/10 [00:04<00:06,  1.00it/s]\n").blank
    assert diagnosed("  0%|          | 0/800 [00:00<?, ?it/s]\n").blank
