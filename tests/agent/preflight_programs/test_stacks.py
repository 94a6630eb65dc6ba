"""Where a process stood."""

from __future__ import annotations

from patcher.preflight.agent.run_programs import place

CRASH = """Fatal Python error: Segmentation fault

Thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x00007e (most recent call first):
  File "/env/lib/python3.11/site-packages/vllm/_C.py", line 7 in load
  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed
"""
WAIT = """Stack (most recent call first):
  File "/usr/lib/python3.11/socket.py", line 833 in create_connection
  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed
  File "/home/me/fork/verl/utils/net.py", line 12 in ask
"""


def test_the_thread_that_crashed_counts() -> None:
    assert place(CRASH, "/home/me/fork") == "vllm/_C.py:7 in load"


def test_python_s_own_library_is_told_with_who_called_it() -> None:
    assert place(WAIT, "/home/me/fork") == "socket.py:833 in create_connection < verl/utils/net.py:12 in ask"


def test_no_stack_is_no_place() -> None:
    assert place("Killed\n", "/home/me/fork") == ""
