"""Ask one process through the `probing` program, which its job has in its environment."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patcher.errors import UkyError
from patcher.i18n import phrase
from patcher.watch.probe import inside
from patcher.worktree.json_text import parse_json

LIMIT = 60.0
"""Seconds that an answer may take."""
_FRAME = re.compile(r"^\[Python\] file: (?P<path>.+):(?P<line>\d+) func: (?P<function>.+)$", re.MULTILINE)
_START = phrase("It has to be started with PROBING=2 in its environment, with probing installed there.")
_TRACE = phrase("torch is traced where the job is started with PROBING_TORCH_PROFILING=on.")


class ProbingError(UkyError):
    """The process does not answer, or says why it cannot."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The program, and the process: a pid on this machine, or HOST:PORT where the job's probing listens."""

    program: Path
    target: str

    def ask(self, name: str, args: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows that `inside` answers with. Raises ProbingError."""
        source = Path(inside.__file__).read_text(encoding="utf-8")
        program = (
            f"(lambda kept: (exec({source!r}, kept), kept['answer']({name!r}, {dict(args)!r})))({{'__name__': 'uky'}})"
        )
        for line in self._run("eval", f"{program};").splitlines():
            _, mark, told = line.partition(inside.MARK)
            if mark:
                return _rows(told, self.target)
        raise ProbingError(
            phrase("process {target} runs nothing for probing", target=self.target),
            cause=phrase("probing evaluates code only where the job's environment has ipykernel"),
            advice=phrase("Install ipykernel beside probing; backtrace, modules and growth work without."),
        )

    def backtrace(self) -> list[dict[str, Any]]:
        """The main thread's Python frames, innermost first. Raises ProbingError."""
        found = _FRAME.finditer(self._run("backtrace"))
        return [{"function": one["function"], "file": one["path"], "line": int(one["line"])} for one in found]

    def query(self, statement: str) -> list[dict[str, Any]]:
        """The rows of a query of probing's tables, whose last column must be short. Raises ProbingError."""
        return _table(self._run("query", statement))

    def _run(self, *arguments: str) -> str:
        command = [str(self.program), "-t", self.target, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise ProbingError(
                phrase("process {target} does not answer within {seconds:.0f} s", target=self.target, seconds=LIMIT),
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
            said = [line for line in done.stderr.splitlines() if line and not line.startswith((" ", "sending "))]
            cause = said[-1] if said else ""
            traced = "QueryError" in cause
            raise ProbingError(
                phrase("process {target} cannot be asked", target=self.target),
                cause=cause,
                advice=_TRACE if traced else _START,
            )
        return done.stdout


def _rows(told: str, target: str) -> list[dict[str, Any]]:
    answer = parse_json(told)
    if "error" in answer:
        raise ProbingError(phrase("process {target} cannot tell", target=target), cause=answer["error"])
    rows: list[dict[str, Any]] = answer["rows"]
    return rows


def _table(text: str) -> list[dict[str, Any]]:
    """The rows of a table drawn with lines. A wide cell goes on in the next line, in which the last cell is empty."""
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
