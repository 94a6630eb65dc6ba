"""Strip what loggers and launchers put before a line: times, levels, ranks, the place in the code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_TIME = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?"
_DATE = r"(?:\d{4}[-/.])?\d\d?[-/.]\d\d?"
_STAMP = rf"(?:{_DATE}[T ])?{_TIME}(?: \+\d{{4}})?|{_DATE}"
_LEVEL = r"DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE|错误|警告|信息"
# Each label by an example. A label counts at the beginning of a line, or behind another one.
_KINDS = (
    # [2026-01-11 10:00:00,123][trainer]
    rf"\[(?:{_STAMP})[^\]\n]{{0,40}}\](?:\[[^\]\n]{{1,60}}\])*",
    # 2026-01-11 10:00:00,123 and 10:00:00
    rf"(?:{_STAMP})(?=[\s|:\]])",
    # syslog: Jan 11 10:00:00 node7 train[81]:
    rf"[A-Z][a-z]{{2}} +\d+ {_TIME} \S+ [\w.@/-]+\[\d+\]:",
    # glog: E0111 10:00:00.123 81 file.cc:18] [rank]
    rf"\[?[WEIF]\d{{4}}(?:\d{{4}})? {_TIME} +(?:\d+ )?[\w./-]+(?::\d+)?\](?: \[\w+\])?",
    # [rank3]: of torch
    r"\[?rank ?\d+\]?:",
    # of others: [rank: 3], (Rank 3), Rank 3:
    r"[\[(](?i:rank|gpu|worker|node)[:=]? ?\d{1,4}[\])]:?(?=\s)|(?i:rank) ?\d{1,4}(?::| \|)(?=\s)",
    # Open MPI: [1,3]<stdout>: and, in SageMaker, [1,mpirank:3,algo-1]<stdout>:
    r"\[\d+,[\w:,-]{1,60}\]<std(?:err|out)>:",
    # pdsh: 10.0.0.2: and train-worker-3:
    r"(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[a-z][a-z0-9]{0,20}-){1,6}\d{1,5}|(?:node|host|gpu|worker)-?\d{1,5}):(?=\s)",
    # what passes on the output of a process: stderr:
    r"(?:<std(?:err|out)>|std(?:err|out):)(?= )",
    # Metaflow: [7/train/3 (pid 81)]
    r"\[\w+/\w+/\w+ \(pid \d+\)\]",
    # a quotation: > ValueError, but no line of code of pytest's
    r">(?= (?:[^\s>]| {2}File | {4}\S))",
    # srun --label: 3:
    r"\d{1,4}:(?= )",
    # a group of exceptions: `    | ValueError: no rows`
    r" {2,12}\|(?= )",
    # Kubernetes: stderr F
    r"std(?:err|out) F(?= )",
    # docker compose: trainer-1  |
    r"[\w.-]+\s+\|(?= )",
    # [INFO|trainer.py:81] of transformers
    rf"[\[(<](?:{_LEVEL})\|[\w.]+:\d+\]",
    # logging's default: INFO:root:
    rf"(?:{_LEVEL}):[A-Za-z_][\w.]*:",
    # the level of 2026-01-11 10:00:00,123::DEBUG:
    rf":(?:{_LEVEL}):(?=\s)",
    # a level with something behind it that shows it to be one: [ERROR], INFO 01-11, WARNING  text
    rf"[\[(<]?(?:{_LEVEL})[\])>]?(?=\s*(?:-|\||:|\[|\d)|\s\s|\s[A-Z\"'\[(])",
    # a place in brackets: [trainer.py:81]:, but no stamp of ours and no worker's
    r"\[(?!(?:uky|ACTOR|ROLLOUT|SYNC)\])[\w./-]+(?:\.py)?(?::\d+)?(?::\w+)?\]:?",
    # glog's end without its beginning: file.py:81]
    r"[\w./<>-]+\.py:\d+\](?=\s|$)",
    # a place: trainer.py:81 -, trainer.py:81:main |
    r"[\w./<>-]+\.py(?::\d+)?(?::\w+)?(?=\s?(?:--|-|:|>|\|)|\s)",
    # loguru: trainer:main:81 - , but no step of verl's, `step:3 - …`
    r"(?!step:)[\w.<>]+(?::[\w.<>]+)?(?::\d+)?(?= - )",
    # 【trainer】
    r"【[^】\n]{1,40}】",
    # Ray's daemon: (raylet)
    r"\(raylet\)",
    # pytest: E   ValueError
    r"E {3,}(?=\S)",
    # pytest's summary: FAILED tests/test_a.py::test_b - ValueError
    r" {0,4}(?:ERROR|FAILED) [\w./~+-]+\.py(?:::\S+)*(?= - \S)",
)
_LABEL = re.compile(rf"(?:{'|'.join(_KINDS)})(?:\s*(?:--?|\||:|>+)(?= ))?:?[ \t]?")
_LEVEL_BEHIND = re.compile(rf"(?:{_LEVEL})[: ：]")
"""A level in front of any text, which counts only behind another label: `12:03:04 ERROR: out of memory`."""
_LEVELS = re.compile(
    rf"(?<![A-Za-z])(?:{_LEVEL})(?![A-Za-z])|(?:^|[\[:])(?P<glog>[WEIF])\d{{4}}|\d (?P<ray>[WEIFC]) \d"
)
_PASSED_ON = ("[stdout]", "[stderr]")
"""Labels behind which a process's output stands. A level before them is that of all that it writes, good or bad."""
_CHINESE = {"错误": "ERROR", "警告": "WARNING", "信息": "INFO"}
_MOST = 10
"""Labels that one line may have: launcher, pod, time, level, module and rank are six."""


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A line split into its labels and the text behind them. `level` is upper case; "" where there is none."""

    label: str
    text: str
    level: str


def strip_labels(text: str) -> LabelledLine:
    """Take the labels off a line. Indentation behind them stays, except for one space."""
    at = own = 0
    for _ in range(_MOST):
        found = _LABEL.match(text, at) or (_LEVEL_BEHIND.match(text, at) if at else None)
        if found is None or found.end() == at:
            break
        at = found.end()
        own = at if found[0].rstrip() in _PASSED_ON else own
    return LabelledLine(text[:at], text[at:], level(text[own:at]))


def is_native(label: str) -> bool:
    """Whether the label comes from C++ code. Its warnings do not announce what Python prints next."""
    found = _LEVELS.search(label)
    return found is not None and bool(found["glog"] or found["ray"])


def level(label: str) -> str:
    """The level that a label names: DEBUG, INFO, WARNING, ERROR, FATAL, …; "" for none."""
    found = _LEVELS.search(label)
    if found is None:
        return ""
    if letter := found["glog"] or found["ray"]:
        return {"W": "WARNING", "E": "ERROR", "I": "INFO", "F": "FATAL", "C": "FATAL"}[letter]
    if found[0] in _CHINESE:
        return _CHINESE[found[0]]
    return found[0].replace("WARNING", "WARN").replace("WARN", "WARNING")


_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
# `2026-01-11 10:00:00,123`; vLLM's `01-11 10:00:00`; glog's `E0111 10:00:00.123 `, where absl puts the year first.
_FORMS = (
    re.compile(rf"(?<!\d)(?P<year>20\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T _]{_CLOCK}(?:[.,](?P<part>\d+))?"),
    re.compile(rf"(?<!\d)(?P<month>\d\d)-(?P<day>\d\d) {_CLOCK}(?:[.,](?P<part>\d+))?(?!\d)"),
    re.compile(rf"(?:^|\[|\]:?)[WEIF](?P<year>20\d\d)?(?P<month>\d\d)(?P<day>\d\d) {_CLOCK}\.(?P<part>\d+) "),
)
_HEAD = 120
"""Characters at the beginning of a line in which its time is searched, behind the labels of pods and launchers."""


def time_of(text: str, year: int) -> float | None:
    """The time near the beginning of a line, in local time, as seconds since 1970; None where there is none.

    `year` is used for times without a year.
    """
    head = text[:_HEAD]
    for form in _FORMS:
        if found := form.search(head):
            fields = found.groupdict()
            month, day, hour, minute, second = (
                int(fields[name]) for name in ("month", "day", "hour", "minute", "second")
            )
            try:
                whole = datetime(int(fields.get("year") or year), month, day, hour, minute, second)
            except ValueError:  # `2026-02-30` is no date.
                continue
            return whole.timestamp() + float(f"0.{fields['part'] or 0}")
    return None
