"""Which reader a script is for, by its name and first line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TypeAlias

from patcher.analysis.model import EnvironmentVariable, Use
from patcher.check.scripts.shell import Misread

Reader: TypeAlias = Callable[[str, str, int], Iterator[Use | Misread]]

_SHELL = frozenset({".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".pbs", ".lsf", ".envrc", ".profile"})
_YAML = frozenset({".yaml", ".yml"})
_ENVIRONMENT_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_IMAGE_LINE = re.compile(r"\s*(?:ENV|ARG)\s+(.*)")


def reader_of(file: str, text: str) -> Reader | None:
    """How a file is read; None for one of a kind that is not."""
    name = PurePosixPath(file).name
    suffix = PurePosixPath(file).suffix.lower() or (name if name.startswith(".") else "")
    if suffix == ".env" or name.startswith(".env"):
        return _shell if name == ".envrc" else _variables
    if name.lower().startswith(("dockerfile", "containerfile")) or suffix == ".dockerfile":
        return _image
    first = text.partition("\n")[0]
    if suffix in _SHELL or re.match(r"#!.*\b(?:ba|z|da|k)?sh\b", first):
        return _shell
    if suffix == ".py" or re.match(r"#!.*\bpython", first):
        return _python
    if suffix in _YAML:
        return _yaml
    return None


def embedded_uses(file: str, suffix: str, text: str, line: int) -> Iterator[Use | Misread]:
    """The uses in a text that stands within the file, as if it were in a file with that suffix."""
    reader = reader_of(f"embedded{suffix}", text)
    if reader is not None:
        yield from reader(file, text, line)


def _shell(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    from patcher.check.scripts.shell_files import shell_uses

    return shell_uses(file, text, line)


def _python(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    from patcher.check.scripts.python_files import python_uses

    return python_uses(file, text, line)


def _yaml(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    from patcher.check.scripts.yaml_files import yaml_uses

    return yaml_uses(file, text, line)


def _variables(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    """A file of `NAME=value` lines."""
    for number, row in enumerate(text.splitlines(), line):
        if (found := _ENVIRONMENT_LINE.fullmatch(row)) is not None:
            yield Use(file, number, EnvironmentVariable(found[1], found[2].strip("\"'")))


def _image(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    """A Dockerfile: `ENV NAME=value …`, `ENV NAME value`."""
    joined = re.sub(r"\\\n", "\0", text)
    number = line
    for row in joined.split("\n"):
        if (found := _IMAGE_LINE.fullmatch(row.replace("\0", " "))) is not None:
            pairs = re.findall(r"([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|\S*)", found[1])
            for name, value in pairs or [tuple((*found[1].split(None, 1), "")[:2])]:
                at = number + row[: row.find(name)].count("\0")
                yield Use(file, at, EnvironmentVariable(name, value.strip("\"'")))
        number += 1 + row.count("\0")
