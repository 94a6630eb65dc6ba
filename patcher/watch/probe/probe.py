"""The entry of `uky-patch probe`: questions to live processes, and changes to them on request, each with its risk.

`Probe` asks one process through the program `probing`, which the environment of the job has; `inside` is the code that
runs in the process. An answer may take 60 s. A collective operation is called only if all ranks are named.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patcher.errors import MachineError, UkyError, UsageError
from patcher.i18n import Phrase, phrase
from patcher.watch.probe import inside
from patcher.worktree.json_text import parse_json

ANSWER_SECONDS = 60.0
"""Seconds that an answer may take. A guess: the code runs once the process releases Python's lock."""
_FRAME = re.compile(r"^\[Python\] file: (?P<path>.+):(?P<line>\d+) func: (?P<function>.+)$", re.MULTILINE)
_START = phrase("It has to be started with PROBING=2 in its environment, with probing installed there.")
_TRACE = phrase("torch is traced where the job is started with PROBING_TORCH_PROFILING=on.")


class ProbingError(UkyError):
    """The process does not answer, or answers with an error."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The program `probing`, and the process: a pid on this machine, or HOST:PORT where the job's probing listens."""

    program: Path
    target: str

    def ask(self, name: str, args: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a function of `inside` in the process, and return its rows. Raises ProbingError."""
        source = Path(inside.__file__).read_text(encoding="utf-8")
        program = (
            f"(lambda kept: (exec({source!r}, kept), kept['answer']({name!r}, {dict(args)!r})))({{'__name__': 'uky'}})"
        )
        for line in self._run("eval", f"{program};").splitlines():
            _, mark, text = line.partition(inside.MARK)
            if mark:
                return _rows(text, self.target)
        raise ProbingError(
            phrase("process {target} runs nothing for probing", target=self.target),
            cause=phrase("probing evaluates code only where the job's environment has ipykernel"),
            advice=phrase("Install ipykernel beside probing; backtrace, modules and growth work without."),
        )

    def backtrace(self) -> list[dict[str, Any]]:
        """The Python frames of the main thread, innermost first. Raises ProbingError."""
        found = _FRAME.finditer(self._run("backtrace"))
        return [{"function": one["function"], "file": one["path"], "line": int(one["line"])} for one in found]

    def query(self, statement: str) -> list[dict[str, Any]]:
        """The rows of a query of probing's tables. The last column must be short, see `_table`. Raises ProbingError."""
        return _table(self._run("query", statement))

    def _run(self, *arguments: str) -> str:
        command = [str(self.program), "-t", self.target, *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=ANSWER_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise ProbingError(
                phrase(
                    "process {target} does not answer within {seconds:.0f} s",
                    target=self.target,
                    seconds=ANSWER_SECONDS,
                ),
                advice=phrase("A process that holds Python's lock cannot answer: its stack still shows where it is.")
                if ":" in self.target
                else phrase(
                    "A process that holds Python's lock cannot answer. Its stack: uky-patch watch --pid {pid}",
                    pid=self.target,
                ),
            ) from None
        except OSError as error:
            raise ProbingError(phrase("{program} cannot be run", program=self.program), cause=str(error)) from error
        if done.returncode:
            message = [line for line in done.stderr.splitlines() if line and not line.startswith((" ", "sending "))]
            cause = message[-1] if message else ""
            traced = "QueryError" in cause
            raise ProbingError(
                phrase("process {target} cannot be asked", target=self.target),
                cause=cause,
                advice=_TRACE if traced else _START,
            )
        return done.stdout


def _rows(text: str, target: str) -> list[dict[str, Any]]:
    answer = parse_json(text)
    if "error" in answer:
        raise ProbingError(phrase("process {target} cannot tell", target=target), cause=answer["error"])
    rows: list[dict[str, Any]] = answer["rows"]
    return rows


def _table(text: str) -> list[dict[str, Any]]:
    """Parse a table drawn with lines. A wide cell goes on in the next line, in which the last cell is empty."""
    rows: list[list[str]] = []
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("├"):
            names, rows = rows[0] if rows else [], []
        elif line.startswith("│"):
            cells = [cell.strip() for cell in line.strip("│").split("│")]
            if rows and not cells[-1] and names:
                rows[-1] = [before + cell for before, cell in zip(rows[-1], cells, strict=True)]
            else:
                rows.append(cells)
    return [dict(zip(names, row, strict=True)) for row in rows]


@dataclass(frozen=True, slots=True)
class Read:
    """A question that changes nothing. `tables`: a query of probing's own tables, in place of code."""

    title: Phrase
    tables: str = ""
    argument: str = ""
    """The argument that it needs, if any."""


@dataclass(frozen=True, slots=True)
class Write:
    """A change to the process, made only on request."""

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


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one process: rows, or an error."""

    target: str
    rows: Sequence[Mapping[str, Any]] = ()
    error: UkyError | None = None


def read(name: str, targets: Sequence[str], python: Path | None, argument: str | None) -> tuple[Answer, ...]:
    """Ask each process.

    Args:
        targets: pids on this machine, or HOST:PORT.
        python: the interpreter of the job's environment, or its folder.

    Raises UsageError for an unknown question, or one without its argument.
    """
    question = READS.get(name)
    if question is None:
        raise _unknown(name, READS)
    args = _file(name, argument) if question.argument == "FILE" else {}

    def one(probe: Probe) -> Sequence[Mapping[str, Any]]:
        if name == "backtrace":
            return probe.backtrace()
        return probe.query(question.tables) if question.tables else probe.ask(name, args)

    return _each(one, probes(targets, python))


def write(
    name: str, targets: Sequence[str], python: Path | None, argument: str | None, agreed: Callable[[Write], bool]
) -> tuple[Answer, ...] | None:
    """Change each process, all at the same time; None where the user does not agree.

    Raises UsageError for what cannot be done, such as a collective operation without all ranks.
    """
    action = WRITES.get(name)
    if action is None:
        raise _unknown(name, WRITES)
    args = _args(name, action, argument)
    asked = probes(targets, python)
    if action.all_ranks:
        _check_ranks(asked)
    if not agreed(action):
        return None
    return _each(lambda probe: probe.ask(f"write-{name}", args), asked)


def probes(targets: Sequence[str], python: Path | None) -> list[Probe]:
    """The processes, each with the program `probing` of its environment, else of `python`, else on PATH."""
    return [Probe(_program(target, python), target) for target in targets]


def _each(work: Callable[[Probe], Sequence[Mapping[str, Any]]], asked: Sequence[Probe]) -> tuple[Answer, ...]:
    def one(probe: Probe) -> Answer:
        try:
            return Answer(probe.target, work(probe))
        except UkyError as error:
            return Answer(probe.target, error=error)

    with ThreadPoolExecutor(len(asked)) as pool:
        return tuple(pool.map(one, asked))


def _check_ranks(asked: Sequence[Probe]) -> None:
    """Raise UsageError unless all ranks of one group are named, each once."""
    ranks = [row for probe in asked for row in probe.ask("ranks", {})]
    if not all(row["initialised"] for row in ranks) or sorted(row["rank"] for row in ranks) != list(range(len(asked))):
        title: Phrase = phrase("not all ranks are named, or one is named twice")
    elif (world := ranks[0]["world"]) != len(asked):
        title = phrase("{count} of {world} {world:rank|ranks} are named", count=len(asked), world=world)
    else:
        return
    raise UsageError(
        title, advice=phrase("A collective call without all ranks blocks the job for good. Name each with --pid.")
    )


def _args(name: str, action: Write, argument: str | None) -> dict[str, Any]:
    """What `inside` gets for the argument of the command line."""
    if action.argument == "FILE":
        return _file(name, argument)
    if not action.argument:
        return {}
    try:
        value = float(argument) if argument else action.default
    except ValueError:
        value = None
    if value is None or not 0 < value < float("inf"):
        raise UsageError(phrase("{name} wants a number above 0, not {value}", name=name, value=argument))
    return {action.argument.lower(): value}


def _file(name: str, argument: str | None) -> dict[str, str]:
    if not argument:
        raise UsageError(phrase("{name} wants {argument}", name=name, argument="FILE"))
    return {"file": os.path.abspath(argument)}  # noqa: PTH100


def _program(target: str, python: Path | None) -> Path:
    """The program `probing` for a process. Raises UsageError where there is none.

    In an environment that the user did not name, only a program of this user or root is run.
    """
    named = [python if python.is_dir() else python.parent] if python else []
    for folder in (*_folders_of(target), *named):
        for place in (folder / "probing", folder / "bin" / "probing"):
            if place.is_file() and (folder in named or place.stat().st_uid in (0, os.geteuid())):
                return place
    if found := shutil.which("probing"):
        return Path(found)
    if ":" in target:
        raise UsageError(
            phrase("probing, which asks {target}, is not installed here", target=target),
            advice=phrase("Name an environment that has it with --python."),
        )
    raise UsageError(
        phrase("probing is not installed where process {target} runs, nor here", target=target),
        advice=phrase(
            "Name the job's environment with --python, or take its stack with: uky-patch watch --pid {pid}", pid=target
        ),
    )


def _folders_of(target: str) -> list[Path]:
    """The folders in which the process's environment may have programs: beside its interpreter, and on its PATH."""
    if not target.isdigit():
        return []
    place = Path("/proc") / target
    try:
        called = Path(os.fsdecode((place / "cmdline").read_bytes().split(b"\0")[0]))
        entries = os.fsdecode((place / "environ").read_bytes()).split("\0")
        folders = [(place / "cwd").readlink() / called.parent] if "/" in str(called) else []
    except (FileNotFoundError, ProcessLookupError) as error:
        raise UsageError(
            phrase("there is no process {pid}", pid=target), advice="The processes of this machine are shown by: ps -ef"
        ) from error
    except OSError as error:
        raise MachineError(
            phrase("process {target} cannot be looked at", target=target),
            cause=error.strerror or "",
            advice="Run the command as that process's user, or as root.",
        ) from error
    environ = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    prefixes = [environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    folders += [Path(prefix) / "bin" for prefix in prefixes if prefix.startswith("/")]
    return folders + [Path(folder) for folder in environ.get("PATH", "").split(":") if folder.startswith("/")]


def _unknown(name: str, known: Mapping[str, object]) -> UsageError:
    return UsageError(phrase("there is no {name}; there are: {names}", name=name, names=", ".join(known)))
