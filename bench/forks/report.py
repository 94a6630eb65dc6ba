"""What the runs on forks came to, for a terminal and for docs/forks.md with its Chinese twin."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from bench.forks.labels import Label, Score, by_verdict
from bench.forks.running import Run

TARGETS = ("0.8.5", "0.11.0", "0.20.2", "0.33.0")
Words: TypeAlias = Mapping[str, Any]
"""The texts of a document in one language, by what they are."""
_ENGLISH: Words = {
    "title": "# `check` on public forks",
    "links": "[中文](forks.zh-CN.md) · [Accuracy](accuracy.md) · [Manual of `check`](check.md)",
    "intro": "`make forks FORKS=DIR` on {date}, on clones of {count} public forks of verl, each at the commit named.\n"
    "No line of theirs is kept here. A cell counts findings: `break` / `guarded` / `optional`. The own pin is the\n"
    "vLLM that the fork itself names, in its requirements or Dockerfiles.",
    "head": "| fork | commit | date | verl | own pin | on its pin | {targets} | crash | seconds |",
    "none": "none found",
    "no": "no",
    "yes": "yes",
    "total": "total",
    "labels": "## Against labels made by reading",
    "labels_intro": "`bench/forks/labels.jsonl` holds a sample of findings of severity `break`, drawn by `--draw`,\n"
    "half of them of verl 0.5 or older. `bench/forks/places.jsonl` holds true breaks of the plain job (PPO or GRPO\n"
    "with vLLM as rollout) that were found without `check`. For each, the fork and the release were read: would the\n"
    "plain job run this line on that release, and fail there, once what fails before it is repaired?",
    "score_head": "| measure | value | of |",
    "precision": "precision of `break`: labelled findings still reported that are true",
    "recall": "recall: labelled true breaks that are reported as `break`",
    "left_out": "labels left out, as their fork was not run at their commit",
    "parts_head": "| part of the findings | labelled, still reported | of these true | all `break`s of these runs |",
    "parts": {
        "legacy": "verl 0.5 or older, modules made for one vLLM (`vllm_v_0_3_1/`)",
        "old": "verl 0.5 or older, all else",
        "new": "verl 0.6 or newer",
    },
    "pin": "## Breaks on a fork's own pin",
    "pin_intro": "A fork works with the release that it names, so each of these is wrong, or a mistake in the fork.\n"
    "The findings in modules made for one release of vLLM are one row for each folder.",
    "pin_head": "| fork | vLLM | place | symbol | label | findings |",
    "verdicts": {"true": "true", "false": "false", "unjudged": "none"},
    "empty": "None.",
}
_CHINESE: Words = {
    "title": "# 在公开分叉上运行 `check`",
    "links": "[English](forks.md) · [准确度](accuracy.zh-CN.md) · [`check` 手册](check.zh-CN.md)",
    "intro": "{date} 在 {count} 个公开 verl 分叉的克隆上运行 `make forks FORKS=DIR`，每个分叉都在所列的提交上。\n"
    "这里不保存它们的任何代码行。每格是发现的数量：`break` / `guarded` / `optional`。\n"
    "“自带版本”是分叉在 requirements 或 Dockerfile 中自己写明的 vLLM 版本。",
    "head": "| 分叉 | 提交 | 日期 | verl | 自带版本 | 在自带版本上 | {targets} | 崩溃 | 秒 |",
    "none": "未写明",
    "no": "否",
    "yes": "是",
    "total": "合计",
    "labels": "## 与人工阅读标签对照",
    "labels_intro": "`bench/forks/labels.jsonl` 是 `break` 级发现的样本，由 `--draw` 抽取，一半来自 verl 0.5 或更早。\n"
    "`bench/forks/places.jsonl` 是普通任务（以 vLLM 为 rollout 的 PPO 或 GRPO）中真实的断裂，不借助 `check` 找到。\n"
    "每一条都阅读了分叉和 vLLM 发行版：前面的失败修好之后，普通任务会不会在该版本上执行这一行并失败？",
    "score_head": "| 指标 | 值 | 计数 |",
    "precision": "`break` 的精确率：仍被报告的有标签发现中为真的比例",
    "recall": "召回率：有标签的真实断裂中被报告为 `break` 的比例",
    "left_out": "未计入的标签（其分叉没有在该提交上运行）",
    "parts_head": "| 发现的部分 | 仍被报告的标签 | 其中为真 | 本次运行的全部 `break` |",
    "parts": {
        "legacy": "verl 0.5 或更早，为某一个 vLLM 版本而写的模块（`vllm_v_0_3_1/`）",
        "old": "verl 0.5 或更早，其余",
        "new": "verl 0.6 或更新",
    },
    "pin": "## 分叉自带版本上的断裂",
    "pin_intro": "分叉能在它自己写明的版本上工作，所以下列每一条要么是误报，要么是分叉自己的错误。\n"
    "为某一个 vLLM 版本而写的模块中的发现，每个文件夹合为一行。",
    "pin_head": "| 分叉 | vLLM | 位置 | 符号 | 标签 | 发现数 |",
    "verdicts": {"true": "真", "false": "误报", "unjudged": "无"},
    "empty": "无。",
}
DOCUMENTS = {"docs/forks.md": _ENGLISH, "docs/forks.zh-CN.md": _CHINESE}


def document(words: Words, runs: Sequence[Run], found: Score, labels: Sequence[Label], date: str) -> str:
    """docs/forks.md, in the language of `words`."""
    count = len({run.clone.root for run in runs})
    parts = (
        [words["title"]],
        [words["links"]],
        [words["intro"].format(date=date, count=count)],
        table(runs, words),
        [words["labels"]],
        [words["labels_intro"]],
        score_table(found, words),
        parts_table(found, words),
        [words["pin"]],
        [words["pin_intro"]],
        own_pin_table(runs, labels, words),
    )
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def table(runs: Sequence[Run], words: Words = _ENGLISH) -> Iterator[str]:
    """One row for each fork, and the totals."""
    yield words["head"].format(targets=" | ".join(TARGETS))
    yield _rule(words["head"].format(targets=" | ".join(TARGETS)))
    for clone, group in groupby(runs, key=lambda run: run.clone):
        by_target = {run.target: run for run in group}
        crash = words["yes"] if any(run.crash for run in by_target.values()) else words["no"]
        cells = [_cell(by_target.get(target)) for target in (clone.pin, *TARGETS)]
        row = [clone.name, clone.commit, clone.date, clone.verl, clone.pin or words["none"], *cells, crash]
        yield _row(*row, f"{sum(run.seconds for run in by_target.values()):.0f}")
    own = [run for run in runs if run.target == run.clone.pin]
    sums = [_sum(own), *(_sum([run for run in runs if run.target == target]) for target in TARGETS)]
    crashed = len({run.clone.root for run in runs if run.crash})
    yield _row(words["total"], "", "", "", "", *sums, str(crashed), f"{sum(run.seconds for run in runs):.0f}")


def score_table(found: Score, words: Words = _ENGLISH) -> Iterator[str]:
    """Precision and recall, with the counts that they rest on."""
    yield words["score_head"]
    yield _rule(words["score_head"])
    reported = found.reported_true + len(found.reported_false)
    yield _row(words["precision"], _share(found.precision), f"{found.reported_true} / {reported}")
    yield _row(words["recall"], _share(found.recall), f"{found.found} / {found.found + len(found.missed)}")
    yield _row(words["left_out"], str(found.left_out), "")


def parts_table(found: Score, words: Words = _ENGLISH) -> Iterator[str]:
    """The sample by part: it takes few of the findings that are most, so its precision is not that of all findings."""
    yield words["parts_head"]
    yield _rule(words["parts_head"])
    for part, (true, reported, everything) in found.parts.items():
        yield _row(words["parts"][part], str(reported), str(true), str(everything))


def own_pin_table(runs: Sequence[Run], labels: Sequence[Label], words: Words = _ENGLISH) -> Iterator[str]:
    """Every break that is reported on a fork's own pin, with the verdict of its label."""
    rows: Counter[tuple[str, str, str, str, str]] = Counter()
    for run in (run for run in runs if run.target == run.clone.pin):
        own = [
            one
            for one in labels
            if (one.fork, one.commit, one.target) == (run.clone.name, run.clone.commit, run.target)
        ]
        for verdict, findings in by_verdict(run.breaks, own).items():
            for one in findings:
                folder, legacy, _ = one.file.rpartition("/") if "/vllm_v_" in one.file else ("", "", "")
                place, symbol = (f"{folder}/", "") if legacy else (f"{one.file}:{one.line}", one.symbol)
                rows[run.clone.name, run.target, place, symbol, words["verdicts"][verdict]] += 1
    if not rows:
        yield words["empty"]
        return
    yield words["pin_head"]
    yield _rule(words["pin_head"])
    yield from (_row(*row, str(count)) for row, count in rows.items())


def tell(runs: Sequence[Run], found: Score, labels: Sequence[Label]) -> None:
    """The same for the terminal, with the labels that `check` gets wrong."""
    lines = [*table(runs), "", *score_table(found), "", *parts_table(found), "", *own_pin_table(runs, labels), ""]
    lines += [f"crash: {run.clone.name} on {run.target}: {run.crash}" for run in runs if run.crash]
    lines += [f"refused: {run.clone.name} on {run.target}: {run.refused}" for run in runs if run.refused]
    for what, wrong in (("false break", found.reported_false), ("missed", found.missed)):
        lines += [f"{what}: {one.fork} on {one.target}: {one.file}:{one.line} {one.symbol}: {one.why}" for one in wrong]
    sys.stdout.write("\n".join(lines) + "\n")


def _cell(run: Run | None) -> str:
    if run is None or run.refused or run.crash:
        return "–"
    return " / ".join(map(str, run.counts))


def _sum(runs: Sequence[Run]) -> str:
    return " / ".join(str(sum(run.counts[place] for run in runs)) for place in range(3))


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def _rule(head: str) -> str:
    return "|" + " --- |" * (head.count("|") - 1)
