"""Uses in shell scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patcher.analysis.model import EnvironmentVariable, Use
from patcher.check.scripts.programs import Program
from patcher.check.scripts.shell import Command, Field, Misread, commands

_INTERPRETED = re.compile(r"(?:.*/)?(?:(?:ba|z|da|k)?sh|ssh|srun|sbatch|salloc)")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_DEEPEST = 4


def shell_uses(file: str, text: str, line: int = 1, depth: int = 0) -> Iterator[Use | Misread]:
    """What a script sets and runs. `line`: the number of its first line."""
    held: dict[str, Field] = {}
    for command in commands(text, line):
        if isinstance(command, Misread):
            yield command
            return
        if not command.words:
            held |= dict(command.assignments)
            continue
        for name, value in command.assignments:
            yield Use(file, value.line, EnvironmentVariable(name, value.text if value.known else None))
        yield from _exported_later(file, command, held)
        program = Program(file, command.words)
        yield from program.uses()
        if depth < _DEEPEST:
            for field in program.scripts():
                yield from shell_uses(file, field.text, field.line, depth + 1)
            yield from _documents(file, command, depth)


def _exported_later(file: str, command: Command, held: dict[str, Field]) -> Iterator[Use]:
    """`A=1` on a line of its own, then `export A`."""
    if command.words[0].text == "export":
        for field in command.words[1:]:
            if (value := held.get(field.text)) is not None:
                yield Use(file, field.line, EnvironmentVariable(field.text, value.text if value.known else None))


def _documents(file: str, command: Command, depth: int) -> Iterator[Use | Misread]:
    """Here-documents that are run, or written to a file of a kind that is read."""
    from patcher.check.scripts.kinds import embedded_uses

    first = command.words[0].text
    for document in command.documents:
        if _INTERPRETED.fullmatch(first):
            yield from shell_uses(file, document.body, document.line, depth + 1)
        elif _PYTHON.fullmatch(first):
            yield from embedded_uses(file, ".py", document.body, document.line)
        elif "." in command.target:
            yield from embedded_uses(file, "." + command.target.rpartition(".")[2], document.body, document.line)
