"""What pip lists where no set of versions fits, and what stands around a crash."""

from __future__ import annotations

import io

import pytest

from patcher.diagnose.conflicts import conflict_in
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms

LISTED = """\
ERROR: Cannot install torch==2.1.1 and vllm==0.5.4 because these package versions have conflicting dependencies.

The conflict is caused by:
    The user requested torch==2.1.1
    accelerate 0.34.2 depends on torch>=1.10.0
    deepspeed 0.12.6 depends on torch
    vllm 0.5.4 depends on torch==2.4.0

To fix this you could try to:
1. loosen the range of package versions you've specified
"""
CRASHED = """\
(WorkerDict pid=3) Fatal Python error: Floating point exception

Stack (most recent call first):
  File "/venv/lib/python3.11/site-packages/vllm/worker/model_runner.py", line 40 in apply
  File "/venv/lib/python3.11/site-packages/vllm/worker/worker.py", line 83 in execute
"""


def here(log: str) -> str:
    found = diagnosis_of(Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert found.root.explanation is not None
    return str(found.root.explanation.sentence)


def test_the_two_wishes_that_exclude_each_other_are_named() -> None:
    assert here(LISTED) == "the command asks for torch==2.1.1, and vllm 0.5.4 for torch==2.4.0"


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        ("==2.1.1", "==2.4.0", True),
        ("<2.4", ">=2.4.0", True),
        ("~=2.4.0", ">=2.5", True),
        ("!=2.4", "==2.4", True),
        ("<=2.4", ">=2.4.0", False),
        (">2.4", "<2.5", False),
        ("==2.*", ">=2.5", False),
        ("<1", ">=0.9", False),
        ("", "==2", False),
        ("==2.7.0.dev20250311", "==2.7.0.dev20250310", True),
        ("==2.7.0.dev1", ">=2.7.0.dev1", False),
        ("==0.0.28.post2", "==0.0.28", True),
        (">2.7.0.post1", "<2.8", False),
    ],
)
def test_wishes_are_compared_as_versions(one: str, other: str, excluded: bool) -> None:
    found = conflict_in([f"    The user requested torch{one}", f"    own-name 1.0 depends on Torch{other}"])
    assert (found is not None) == excluded


def test_what_is_no_list_of_wishes_says_nothing() -> None:
    assert conflict_in(["    The user requested torch ((", "    x depends on y", "vllm 1 depends on torch==1"]) is None


def test_a_crash_is_told_with_the_frame_that_python_was_in() -> None:
    assert here(CRASHED) == "Python was in vllm/worker/model_runner.py:40 at that moment"
    threads = CRASHED.replace("Stack (most", "Current thread 0x00007f (most")
    other = 'Thread 0x00007e (most recent call first):\n  File "/x/wait.py", line 3 in wait\n\n'
    assert here(threads.replace("\n\n", f"\n\n{other}", 1)) == here(CRASHED)


def test_lines_of_a_native_stack_are_not_what_was_done_before_a_crash() -> None:
    stack = "    @     0x7fb905254ad0  (unknown)  (unknown)\n"
    log = f"loading the engine\n{stack}*** SIGFPE received at time=1 on cpu 2 ***\n"
    assert here(log) == "the last that was said before it, in line 1: loading the engine"


def test_what_uv_says_over_several_lines() -> None:
    said = (
        "  × No solution found when resolving dependencies:\n"
        "  ╰─▶ Because engine==0.6.5 depends on torch{platform_machine != 'aarch64'}==2.5.1 and\n"
        "      kernels>=2.6.1 depends on torch==2.4.0, we can conclude that these are incompatible.\n"
    )
    found = conflict_in(said.splitlines())
    assert str(found) == "engine==0.6.5 asks for torch==2.5.1, and kernels>=2.6.1 for torch==2.4.0"
    said = (
        "  ╰─▶ Because there is no version of ffi==0.1.0b15 and infer[all]==0.4.1 depends on ffi==0.1.0b15, we can\n"
        "      conclude that infer[all]==0.4.1 cannot be used.\n"
    )
    assert str(conflict_in(said.splitlines())) == "infer[all]==0.4.1 asks for ffi==0.1.0b15"
