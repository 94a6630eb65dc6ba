"""What a log comes to, for tests: made-up symptoms, or all that are shipped."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path

from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.log_stream import BLOCK_SIZE
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import parse_symptom
from patcher.records.symptoms import Symptom

LOGS = Path(__file__).parent.parent / "jobs" / "logs"
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/run.py", line 3, in main\n    start()\n'

RECORD = """\
id = "{id}"
title = "{id}"
cause = "What {id} comes from."
kind = "{kind}"
topic = "engine"
part = "{part}"
{more}
[zh]
title = "{id} 的标题"
cause = "{id} 的原因"
{signs}
[[fix]]
text = "Do something about {id}"
zh = "处理 {id}"
[[example]]
name = "one"
log = "x"
line = 1
"""


def symptom(name: str, signs: str, *, kind: str = "failure", part: str = "cause", more: str = "") -> Symptom:
    """A symptom; `signs` are its tables, or the pattern of one match."""
    tables = signs if signs.startswith("[[") else f"[[match]]\nline = '{signs}'"
    text = RECORD.format(id=name, signs=tables, kind=kind, part=part, more=more)
    found = parse_symptom(text, Path(f"{name}.toml"))
    assert isinstance(found, Symptom), found
    return found


SYMPTOMS = (
    symptom("memory", "CUDA out of memory"),
    symptom("engine-dead", "engine is gone", part="effect"),
    symptom("task-error", "RayTaskError", part="wrapper"),
    symptom("clash", "address is taken", more='follows = ["memory"]'),
    symptom(
        "barrier",
        "[[match]]\nline = 'no broadcast block found'\n[[wait]]\nline = 'waiting at the barrier'",
        kind="stall",
    ),
    symptom("nan", "[[trend]]\nmetric = 'actor/pg_loss'\ntest = 'nan'\nsteps = 2", kind="course"),
    symptom("proxy", "a proxy is set", kind="notice"),
)


@lru_cache(maxsize=1)
def scanner() -> Scanner:
    return Scanner(SYMPTOMS)


def diagnosed(
    log: str | bytes, *, size: int = BLOCK_SIZE, ended: bool | None = None, silent: bool | None = None
) -> Diagnosis:
    content = log.encode() if isinstance(log, str) else log
    evidence = scanner().scan([("run.log", io.BytesIO(content))], size)
    return diagnosis_of(evidence, FixContext(evidence.versions), ended=ended, silent=silent)


def root(found: Diagnosis) -> tuple[str, int] | None:
    """The root's id and line."""
    return (found.root.id, found.root.place.number) if found.root is not None else None


def healthy(release: str = "0.7.0") -> str:
    return (LOGS / f"verl-{release}.log").read_text(encoding="utf-8")


def unfinished() -> str:
    """A healthy run up to its first step."""
    log = healthy()
    return log[: log.rindex("\n", 0, log.index("step:1 - ")) + 1]
