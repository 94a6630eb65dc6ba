"""The first error of vLLM's processes, out of real output."""

from __future__ import annotations

from patcher.messages import english
from patcher.preflight.agent import verdicts
from patcher.preflight.agent.verdicts import first_error, fix_of

KV = """INFO 11-21 01:41:02 [core.py:93] Initializing a V1 LLM engine
(Worker pid=29394) ERROR 11-21 01:41:18 [multiproc_executor.py:1047] Traceback (most recent call last):
(Worker pid=29394) ERROR 11-21 01:41:18 [multiproc_executor.py:1047]     raise ValueError(
(Worker pid=29394) ERROR 11-21 01:41:18 [multiproc_executor.py:1047] ValueError: Available memory on node 0 \
(11.36/13.09 GiB) on kv cache allocation is less than requested memory for kv (5000.0 GiB).
(EngineCore pid=26434) ERROR 11-21 01:41:18 [core.py:1346] RuntimeError: Worker failed with error 'Available memory'
(EngineCore pid=26434) RuntimeError: Worker failed with error 'Available memory on node 0'
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
FREE = """(EngineCore pid=812) ERROR 10-01 12:00:00 [core.py:708] ValueError: Free memory on device (10.1/139.8 GiB) \
on startup is less than desired GPU memory utilization (0.3, 41.9 GiB).
"""


def test_the_worker_s_error_and_not_its_consequences() -> None:
    assert first_error(KV).startswith("ValueError: Available memory on node 0 (11.36/13.09 GiB)")


def test_a_full_gpu_is_told_with_what_helps() -> None:
    answer = first_error(FREE)
    assert answer.startswith("ValueError: Free memory on device (10.1/139.8 GiB)")
    assert "nvidia-smi" in fix_of(answer)["template"]


def test_output_without_an_error() -> None:
    assert first_error("INFO all is well\n") == ""


def test_an_engine_that_waits_for_a_process_that_has_failed_is_told_by_that_failure() -> None:
    output = "(EngineCore pid=7) ValueError: Available memory on node 0 is less than requested memory\n"
    verdict = verdicts.verdict_of_overtime(120.0, False, "zmq/sugar/poll.py:106 in poll", output)
    assert verdict["status"] == "fail"
    assert "less than requested memory" in english(verdict["detail"])


def test_an_engine_that_says_nothing_of_a_failure_hangs() -> None:
    verdict = verdicts.verdict_of_overtime(120.0, False, "zmq/sugar/poll.py:106 in poll", "loading weights took 3 s\n")
    assert english(verdict["detail"]).startswith("hangs")
