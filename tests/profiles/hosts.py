"""Hosts and surveys as tests want them."""

from __future__ import annotations

from patcher.remote.survey import Gpu, Interpreter, Survey, TreeFolder

VERSIONS = {"verl": "0.7.0", "vllm": "0.20.2", "torch": "2.11.0", "triton": "3.6.0"}


def survey(
    *,
    home: str = "/home/u",
    root: str = "/home/u/fork",
    python: str = "/venv/bin/python",
    gpus: int = 1,
    cpus: int = 16,
    memory: int = 141 * 2**30,
) -> Survey:
    return Survey(
        hostname="h",
        user="u",
        home=home,
        agent_python="3.8.18",
        folder=TreeFolder(root, exists=True, empty=False, manifest=True),
        interpreter=Interpreter(python, "3.12.3"),
        others=(),
        gpus=tuple(Gpu(index, "H200", memory, 0) for index in range(gpus)),
        driver="580",
        cuda="13.0",
        libcuda=(),
        free=10**12,
        shm=10**11,
        rsync=None,
        tmux=None,
        cpus=cpus,
        memory=10**12,
        limits={},
        clock=0.0,
    )
