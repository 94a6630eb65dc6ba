"""A traceback's own functions tell the phase, where its lines come before those that the log tells it by."""

from __future__ import annotations

from patcher.diagnose.tracebacks import later_phase, phase_of_frames
from tests.diagnose.diagnosed import diagnosed

DRIVER = """\
TaskRunner hostname: node-1, PID: 7
Traceback (most recent call last):
  File "/home/user/fork/verl/trainer/main_ppo.py", line 384, in create_rl_dataset
    dataset = dataset_cls(
  File "/home/user/fork/verl/utils/dataset/rl_dataset.py", line 179, in _read_files_and_tokenize
    self.dataframe = self.maybe_filter_out_long_prompts(self.dataframe)
  File "/home/user/venv/lib/python3.12/site-packages/datasets/arrow_dataset.py", line 560, in wrapper
    raise FolderGone(path)
FolderGone: /data/gsm8k
"""


def test_the_innermost_function_that_tells_one_counts() -> None:
    frames = (
        '  File "/x/verl/workers/fsdp_workers.py", line 812, in init_model',
        '  File "/x/verl/workers/fsdp_workers.py", line 620, in _build_rollout',
        '  File "/x/site-packages/vllm/entrypoints/llm.py", line 3, in init_model',
    )
    assert phase_of_frames(frames[:1]) == "actor"
    assert phase_of_frames(frames) == "rollout"
    assert phase_of_frames(frames[2:]) is None


def test_the_later_phase_counts() -> None:
    assert later_phase("config", "dataset") == "dataset"
    assert later_phase("loop", "rollout") == "loop"
    assert later_phase(None, "actor") == "actor"
    assert later_phase(None, None) is None


def test_an_exception_that_is_told_before_its_phase() -> None:
    found = diagnosed(DRIVER, ended=True)
    assert (found.verdict, found.phase) == ("failed", "dataset")
