"""A tree of as many files as one likes, all of which import vLLM: what `check` takes of time and memory on it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.trees import UKY_PATCH, VERL, VLLM

_FOLDER = 100
"""Modules in one package."""
_BROKEN = 50
"""Every so many modules use what the release has no longer."""

_MODULE = '''\
"""Rollout {number}."""

import os

import torch
from vllm import LLM, SamplingParams
from vllm.distributed import parallel_state
from verl.wide.part_{part}.{before} import Rollout{earlier} as Before

{star}
{broken}


class Rollout{number}(Before):
    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.engine = LLM(model=config.path, enforce_eager=config.eager, tensor_parallel_size={number})
        self.params = SamplingParams(n={number}, temperature=1.0)

    def generate(self, prompts):
        if os.environ.get("VLLM_USE_V1") == "1":
            return self.engine.generate(prompts, self.params)
        outputs = self.engine.generate(prompts, sampling_params=self.params)
        return [one.outputs[0].token_ids for one in outputs]

    def size(self):
        return parallel_state.get_tensor_model_parallel_world_size() * torch.cuda.device_count()


def make_{number}(config):
    return Rollout{number}(config)
'''
_FIRST = """\
class Rollout{number}:
    def __init__(self, config, **kwargs):
        self.config = config
"""


@dataclass(frozen=True, slots=True)
class Taken:
    files: int
    seconds: float
    megabytes: float
    """The most that one process of the check held at any time."""


def write(root: Path, files: int) -> None:
    """A package `verl` with so many modules: chains of subclasses, imports of each other, star imports."""
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/version/version").write_text(f"{VERL}\n")
    (root / "verl/__init__.py").write_text(f'__version__ = "{VERL}"\n')
    (root / "verl/wide").mkdir()
    (root / "verl/wide/__init__.py").touch()
    for number in range(files):
        part, place = divmod(number, _FOLDER)
        folder = root / f"verl/wide/part_{part}"
        if not place:
            folder.mkdir()
            (folder / "__init__.py").touch()
        first = place % 10 == 0
        text = (_FIRST if first else "") + "" if first else _MODULE
        star = f"from verl.wide.part_{part}.m_{place - 1} import *" if place % 5 == 2 else ""
        broken = "from vllm.utils import FlexibleArgumentParser" if number % _BROKEN == 7 else ""
        names = {"number": number, "part": part, "before": f"m_{place - 1}", "earlier": number - 1}
        content = text.format(**names, star=star, broken=broken)
        (folder / f"m_{place}.py").write_text("from vllm import LLM\n\n\n" * first + content)


def measured(files: int, *further: str) -> Taken:
    """One check of a tree of so many files. Raises SystemExit where it fails."""
    with TemporaryDirectory(prefix="uky-patch-wide-") as folder:
        root = Path(folder)
        write(root, files)
        began = time.monotonic()
        asked = [UKY_PATCH, "--root", folder, "check", "--against", f"vllm=={VLLM}", "--no-since", *further]
        return _run(asked, files, began)


def _run(asked: Sequence[str], files: int, began: float) -> Taken:
    """`wait4` tells what the process itself held at most, or its largest child."""
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.execv(asked[0], list(asked))
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise SystemExit(f"check of {files} files ended with {code}")
    return Taken(files, time.monotonic() - began, used.ru_maxrss / 1000)


def main() -> Iterator[str]:
    parser = argparse.ArgumentParser(prog="python -m bench.wide", description=__doc__)
    parser.add_argument("files", type=int, nargs="*", default=[12_500, 25_000, 50_000])
    for files in parser.parse_args().files:
        taken = measured(files)
        each = taken.seconds / files * 1000
        yield f"{taken.files:>7} files  {taken.seconds:7.1f} s  {each:5.1f} ms a file  {taken.megabytes:7.1f} MB"


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
    sys.exit()
