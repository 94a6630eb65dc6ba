"""What the watchdogs of NCCL say of a collective that timed out, set side by side: which rank waits in which one.

[rank1]:[E… ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout:
    WorkNCCL(SeqNum=215121, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600080 …
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.diagnosis import Explanation, Finding, Offer
from patcher.diagnose.evidence import LogLine
from patcher.diagnose.exception_message import MessageParts
from patcher.i18n import Phrase, phrase

TIMED_OUT = "nccl-timeout"
"""The symptom that these lines show."""

_WORK = re.compile(
    r"\[Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+),"
    r" OpType=(?P<operation>\w+),(?: NumelIn=(?P<sent>\d+), NumelOut=(?P<received>\d+),)?"
)
_SPEAKS = re.compile(
    r"\[(?:PG \w+ )?(?:PG GUID \S+ )?Rank (?P<rank>\d+)\] .*?\b(?:work|SeqNum)\W{1,3}(?P<number>\d+)\b"
)
"""Another line of a rank's watchdog: `[PG 1 Rank 3] Exception … detected by watchdog at work: 1580, …`."""
_GLOBAL = re.compile(r"\[rank(?P<rank>\d+)\]:")
_NEAR = 16
"""By how much the numbers of ranks of one group may differ. Set by hand: a rank enters the next collective only when
the others have come to this one, apart from those that only send. Numbers far apart are of different groups."""
_GATHERS, _MANY = ("_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"), 1_000_000
"""How FSDP and ZeRO-3 gather parameters and scatter gradients, and elements from which it is hardly anything else. Set
by hand: a layer has millions."""

_OF_WAYS = re.compile(r"\b(?:NCCL_P2P|NCCL_IB|NCCL_SOCKET|GLOO_SOCKET)_")
_OF_TIME = re.compile(r"\btimeout\b|_timeout\b")

_STEP = Offer(
    "Look for what one rank runs and another does not: a branch on the rank or on its data, a last batch that "
    "only some ranks have, a metric, an evaluation or a save on rank 0 alone",
    "找出只有部分 rank 执行的代码：依赖 rank 或数据的分支、只有部分 rank 拥有的最后一个批次、"
    "仅在 rank 0 上的指标、评估或保存",
)
_SHARDED = Offer(
    "Look for code that one rank alone runs on the sharded model: a forward, generate(), an evaluation, "
    "state_dict() or a save under `if rank == 0`. All ranks must call it; only what is written may be rank 0's",
    "找出仅由一个 rank 在分片模型上执行的代码：`if rank == 0` 下的前向、generate()、评估、state_dict() 或保存。"
    "所有 rank 都必须调用，只有写文件可以只在 rank 0 上",
)


@dataclass(frozen=True, slots=True)
class _Work:
    """The collective that a rank waits in."""

    number: int
    operation: str
    sent: int = 0
    received: int = 0

    def __str__(self) -> str:
        size = f" NumelIn={self.sent}" if self.sent else ""
        return f"SeqNum={self.number} {self.operation}{size}"

    @property
    def is_sharded(self) -> bool:
        """Whether it is a collective of sharded parameters."""
        return self.operation in _GATHERS and max(self.sent, self.received) >= _MANY

    @property
    def ranks(self) -> int:
        """How many ranks its group has; 0 where its sizes do not tell."""
        few, many = sorted((self.sent, self.received))
        return many // few if self.operation in _GATHERS and few and many % few == 0 else 0


def with_ranks(finding: Finding, lines: Iterable[LogLine], around: Iterable[LogLine] = ()) -> Finding:
    """Say of a timeout which ranks are in which collective, and keep the fixes that fit that. `lines`: those that
    report the timeout; `around`: others, in which a watchdog may speak of the same work."""
    works = _works(lines)
    apart = set(works.values())
    sharded = (_SHARDED,) if any(work.is_sharded for work in apart) else ()
    without_ways = tuple(one for one in finding.fixes if not _speaks_of(_OF_WAYS, one))
    if len(works) > 1 and len(apart) > 1:
        kept = tuple(one for one in without_ways if not _speaks_of(_OF_TIME, one))
        return _told(finding, _out_of_step(works), (*(sharded or (_STEP,)), *kept))
    if not works:
        return finding
    rank, work = next(iter(works.items()))
    if len(works) == 1:
        if not sharded:
            return finding
        template = (
            "rank {rank} waits where sharded parameters (FSDP, ZeRO-3) are put together, in {work}: "
            "some rank does not take part, or runs a forward, a save or an evaluation alone"
        )
        return _told(finding, phrase(template, rank=rank, work=work), (*sharded, *finding.fixes))
    spoken = (_SPEAKS.search(line.text) for line in around)
    heard = {int(one["rank"]) for one in spoken if one is not None and int(one["number"]) == work.number}
    missing = [one for one in range(work.ranks or max(works) + 1) if one not in works and one not in heard]
    if missing:
        template = "{ranks} wait in {work}, and {missing} reports nothing: what does it do?"
        told = phrase(template, ranks=_ranks(works), work=work, missing=_ranks(missing))
        return _told(finding, told, (*sharded, *without_ways))
    template = (
        "{ranks} all wait in {work}: they have come, and the data does not get through; "
        "unless the group has more ranks than these"
    )
    ways = [one for one in finding.fixes if one not in without_ways]
    return _told(finding, phrase(template, ranks=_ranks(works), work=work), (*ways, *without_ways))


def _works(lines: Iterable[LogLine]) -> Mapping[int, _Work]:
    """The collective of each rank; only that of the first line where the lines may be of several groups."""
    found: dict[int, _Work] = {}
    of_groups = False
    for line in lines:
        if (work := _WORK.search(line.text)) is None:
            continue
        rank = int(work["rank"])
        # `[rank5]:[E… [Rank 1] …`: rank 5 of all is rank 1 of a smaller group, and other groups have such a rank too.
        whole = _GLOBAL.search(line.text)
        of_groups = of_groups or (whole is not None and int(whole["rank"]) != rank)
        one = _Work(int(work["number"]), work["operation"], int(work["sent"] or 0), int(work["received"] or 0))
        found.setdefault(rank, one)
    numbers = [work.number for work in found.values()]
    if of_groups or (numbers and max(numbers) - min(numbers) > _NEAR):
        return dict(list(found.items())[:1])
    return found


def _out_of_step(works: Mapping[int, _Work]) -> Phrase:
    ranks = defaultdict(list)
    for rank, work in sorted(works.items()):
        ranks[work].append(rank)
    ordered = sorted(ranks, key=lambda work: (work.number, ranks[work]))
    states = "; ".join(f"{_ranks(ranks[work])}: {work}" for work in ordered)
    behind = [rank for rank, work in sorted(works.items()) if work.number == ordered[0].number]
    if len(behind) == len(works):
        return phrase("the ranks run different collectives under one number: {states}", states=states)
    return phrase("the ranks are out of step: {states}. Behind: {ranks}", states=states, ranks=_ranks(behind))


def _ranks(numbers: Iterable[int]) -> str:
    """`rank 0, 1, 3`."""
    return f"rank {', '.join(map(str, sorted(numbers)))}"


def _speaks_of(pattern: re.Pattern[str], fix: Offer) -> bool:
    return any(pattern.search(command) for command in fix.commands)


def _told(finding: Finding, sentence: Phrase, fixes: Sequence[Offer]) -> Finding:
    explanation = finding.explanation or Explanation(sentence)
    told = replace(explanation, sentence=sentence, parts=MessageParts("around"), remedy="")
    return replace(finding, explanation=told, fixes=tuple(fixes))
