"""Long logs of the shape that a training by verl leaves: the beginning of a real one, then steps without end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

_LOG = Path(__file__).parent.parent / "tests" / "jobs" / "logs" / "verl-0.7.0.log"

_METRICS = [
    f"{group}/{metric}"
    for group in ("actor", "critic", "response_length", "prompt_length", "perf", "timing_s", "timing_per_token_ms")
    for metric in ("pg_loss", "mean", "max", "min", "entropy", "grad_norm", "kl_loss", "lr")
]
_WORDS = (
    "the",
    "number",
    "of",
    "apples",
    "is",
    "so",
    "total",
    "cost",
    "equals",
    "error",
    "fails",
    "memory",
    "rank",
    "out",
)


def begun() -> str:
    """A real run up to its first step."""
    log = _LOG.read_text(encoding="utf-8")
    return log[: log.rindex("\n", 0, log.index("step:1 - ")) + 1]


def steps(first: int, count: int) -> Iterator[str]:
    """What the workers say in each step: progress bars, metrics, samples, throughput, and errors of no account."""
    dice = random.Random(first)
    for step in range(first, first + count):
        for batch in range(40):
            worker = 9000 + batch % 8
            yield (
                f"\x1b[36m(WorkerDict pid={worker})\x1b[0m INFO:2026-01-11 10:{batch:02d}:00,{dice.randint(100, 999)}:"
                f"Update policy micro batch {batch} of 40, memory allocated (GB): {dice.random() * 60:.2f}\n"
            )
            if batch % 4 == 0:
                yield (
                    "\x1b[36m(vLLMHttpServer pid=9490)\x1b[0m (EngineCore pid=9603) INFO 01-11 10:00:01 "
                    f"[loggers.py:127] Engine 000: Avg prompt throughput: {dice.random() * 1e4:.1f} tokens/s, "
                    f"Running: {batch} reqs, Waiting: 0 reqs, GPU KV cache usage: 3.2%, Prefix cache hit rate: 12.2%\n"
                )
            if batch % 5 == 0:
                yield (
                    "\x1b[36m(AgentLoopWorker pid=9763)\x1b[0m ERROR 01-11 10:00:01 [reward.py:33] reward of sample "
                    f"{dice.randint(1, 10**6)} could not be parsed: expected a number, got 'n/a', using 0.0 instead\n"
                )
        for sample in range(20):
            done = "█" * sample + " " * (20 - sample)
            yield f"\rGenerating sequences:  {sample * 5}%|{done}| {sample}/20 [00:{sample:02d}<00:20,  1.0it/s]"
        yield "\n"
        for part in ("prompt", "response"):
            said = " ".join(dice.choice(_WORDS) for _ in range(80))
            yield f"\x1b[36m(TaskRunner pid=9132)\x1b[0m [{part}] {said}\n"
        told = " - ".join(f"{name}:{dice.random() * 10:.6f}" for name in _METRICS)
        yield f"\x1b[36m(TaskRunner pid=9132)\x1b[0m step:{step} - {told}\n"
        yield f"\x1b[36m(TaskRunner pid=9132)\x1b[0m Training Progress:   0%|          | {step}/1000000 [00:33<00:33]\n"


def write(path: Path, size: int) -> None:
    """Write a log of about `size` bytes, without an end."""
    with path.open("w", encoding="utf-8", newline="") as log:
        log.write(begun())
        step = 1
        while log.tell() < size:
            log.writelines(steps(step, 20))
            step += 20
