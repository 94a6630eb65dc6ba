"""What can be asked of a live process, and what can be done to it, each with its risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patcher.i18n import Phrase, phrase


@dataclass(frozen=True, slots=True)
class Read:
    """A question that changes nothing. `tables` is a query of probing's own tables in place of code."""

    title: Phrase
    tables: str = ""
    argument: str = ""
    """What it wants to be given, if anything."""


@dataclass(frozen=True, slots=True)
class Write:
    """Something that is done to the process, on request only."""

    title: Phrase
    risk: Phrase
    argument: str = ""
    default: float | None = None
    all_ranks: bool = False
    """Whether it must be done in every rank at the same time."""


READS: Mapping[str, Read] = {
    "backtrace": Read(phrase("where the main thread is")),
    "threads": Read(phrase("threads, and where each is")),
    "loader": Read(phrase("DataLoaders: workers, prefetching, and which workers live")),
    "ranks": Read(phrase("rank, world size and backend")),
    "step": Read(phrase("the step that the trainer is at, for each process named")),
    "gradients": Read(phrase("gradients that hold NaN or Inf")),
    "clip": Read(phrase("the value that gradients are clipped at")),
    "rate": Read(phrase("learning rate and weight decay of each parameter group")),
    "memory": Read(phrase("memory of the process and of its GPUs")),
    "modules": Read(
        phrase("the slowest modules of the last steps, where torch is traced"),
        tables="SELECT module, stage, COUNT(*) AS calls, AVG(duration) AS mean, SUM(duration) AS total "
        "FROM python.torch_trace WHERE step > (SELECT MAX(step) - 5 FROM python.torch_trace) "
        "GROUP BY module, stage ORDER BY total DESC LIMIT 10",
    ),
    "growth": Read(
        phrase("peak memory of the last 20 steps, where torch is traced"),
        tables="SELECT step, MAX(allocated) AS peak, MAX(allocated) - MIN(allocated) AS spread "
        "FROM python.torch_trace WHERE step > (SELECT MAX(step) - 20 FROM python.torch_trace) "
        "GROUP BY step ORDER BY step",
    ),
    "checkpoint": Read(phrase("the keys of a checkpoint"), argument="FILE"),
}
WRITES: Mapping[str, Write] = {
    "clip": Write(
        phrase("clip the gradients once"),
        phrase("It counts for this step alone, and not at all if the optimizer has already used the gradients."),
        "NORM",
        1.0,
    ),
    "empty-cache": Write(
        phrase("collect garbage and give cached GPU memory back"),
        phrase("The process stands still meanwhile, and its next step is slower."),
    ),
    "checkpoint": Write(
        phrase("save an emergency checkpoint"),
        phrase("The weights may be in the middle of an update, and the GPU's memory is read while training goes on."),
        "FILE",
    ),
    "rate": Write(
        phrase("multiply the learning rate"),
        phrase("Ranks that are not named keep theirs and drift apart; a scheduler may set it anew at its next step."),
        "FACTOR",
        0.1,
    ),
    "all-reduce": Write(
        phrase("sum the steps of all ranks by a collective call"),
        phrase("A collective that one rank does not join, or that meets another one, blocks the whole job for good."),
        all_ranks=True,
    ),
}
