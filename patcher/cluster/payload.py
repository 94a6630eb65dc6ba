"""The program that a node of a Ray cluster is sent: the agent, and the rooms that read and write a tree there."""

from __future__ import annotations

from functools import lru_cache

from patcher.remote.agent_program import SENT, files_of, program_of, sources_of

SENT_TO_NODES = (
    *SENT,
    *("__init__.py", "cluster/node.py", "errors.py", "i18n/*.py", "visible.py"),
    *("tree", "git"),
)
"""What is sent, below `patcher`. It needs the standard library alone, of Python 3.10 for the rooms `git` and `tree`."""


START = "from patcher.agent import VERBS; from patcher.cluster.node import main; main(VERBS)"


@lru_cache(maxsize=1)
def program() -> bytes:
    """What is written to the Python that runs `patcher.remote.agent_program.BOOTSTRAP`, before the requests.

    The same tool gives the same bytes.
    """
    return program_of(sources_of(files_of(SENT_TO_NODES)), START)
