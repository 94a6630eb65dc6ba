"""The scripts that globs name: each read by its kind (shell, Python, yaml, environment file, Dockerfile)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from patcher.analysis.configuration import documents
from patcher.analysis.reading.settings import environment_uses
from patcher.analysis.uses import ConfigKey, Context, EngineFlag, EnvironmentVariable, Use
from patcher.check.scripts.command_lines import SIGNS, CommandLine
from patcher.check.scripts.shell import Command, Field, Misread, commands
from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse


def script_uses(file: str, text: str) -> tuple[tuple[Use, ...], tuple[Phrase, ...]]:
    """The uses in a script, in its order, and what of it was not understood. `file` is how findings name it."""
    reader = _reader_of(file, text)
    if reader is None:
        return (), (phrase("{file} is not a kind of script that is read", file=file),)
    uses: dict[Use, None] = {}
    notes: list[Phrase] = []
    last = 1
    try:
        for found in reader(file, text, 1):
            last = found.line
            if isinstance(found, Use):
                uses[found] = None
            else:
                notes.append(phrase("{file} is not understood from line {line} on", file=file, line=last))
    except RecursionError:
        notes.append(phrase("{file} is not understood from line {line} on", file=file, line=last))
    return tuple(uses), tuple(notes)


def uses_of_scripts(root: Path, globs: Iterable[str]) -> tuple[tuple[Use, ...], tuple[Phrase, ...]]:
    """The uses in the files that the globs name, below `root` or by an absolute path, and what could not be read.

    Raises UsageError for a glob that no file matches: a check of nothing would pass for a check without findings.
    """
    uses: list[Use] = []
    notes: list[Phrase] = []
    for pattern in globs:
        paths = _matching(root, pattern)
        if not paths:
            raise UsageError(
                phrase("no file matches {pattern}", pattern=repr(pattern)),
                cause=phrase("it was looked for below {folder}", folder=root),
                advice=phrase("Quote it, so that the shell leaves it alone: --scripts 'examples/**/*.sh'"),
            )
        for path in paths:
            name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            try:
                place = files.inside(root, path) if path.is_relative_to(root) else path
                text = files.read_text(place, files.SETTINGS_BYTES, encoding="utf-8-sig", follow=True)
            except (OSError, UnicodeDecodeError) as error:
                notes.append(phrase("{file} cannot be read: {problem}", file=name, problem=error))
                continue
            found, script_notes = script_uses(name, text)
            uses += found
            notes += script_notes
    return tuple(dict.fromkeys(uses)), tuple(notes)


def _matching(root: Path, pattern: str) -> list[Path]:
    folder = root / pattern
    if pattern and folder.is_dir():
        return sorted(path for path in folder.rglob("*") if _is_script(path.relative_to(folder)) and path.is_file())
    base, relative = (root, pattern) if not Path(pattern).is_absolute() else (Path("/"), pattern.lstrip("/"))
    try:
        found = {path for path in base.glob(relative) if path.is_file()}
    except (ValueError, NotImplementedError):
        return []
    return sorted(found)


def _is_script(path: Path) -> bool:
    """Whether a file of a folder that was named is a script or settings by its name, and in no hidden folder."""
    hidden = any(part.startswith(".") for part in path.parts[:-1])
    return not hidden and path.suffix != ".py" and _reader_of(path.name, "") is not None


Reader: TypeAlias = Callable[[str, str, int], Iterator[Use | Misread]]

_SHELL = frozenset({".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".pbs", ".lsf", ".envrc", ".profile"})
_YAML = frozenset({".yaml", ".yml"})
_ENVIRONMENT_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_IMAGE_LINE = re.compile(r"\s*(?:ENV|ARG)\s+(.*)")


def _reader_of(file: str, text: str) -> Reader | None:
    """How a file is read; None for one of a kind that is not."""
    name = PurePosixPath(file).name
    suffix = PurePosixPath(file).suffix.lower() or (name if name.startswith(".") else "")
    # `.env`, `prod.env`, `.env.local` hold `NAME=value` lines; `.envrc` of direnv is a shell script.
    if suffix == ".env" or name.startswith(".env"):
        return shell_uses if name == ".envrc" else _variables
    if name.lower().startswith(("dockerfile", "containerfile")) or suffix == ".dockerfile":
        return _image
    first = text.partition("\n")[0]
    if suffix in _SHELL or re.match(r"#!.*\b(?:ba|z|da|k)?sh\b", first):
        return shell_uses
    if suffix == ".py" or re.match(r"#!.*\bpython", first):
        return python_uses
    if suffix in _YAML:
        return yaml_uses
    return None


def _embedded_uses(file: str, suffix: str, text: str, line: int) -> Iterator[Use | Misread]:
    """The uses in a text that stands within the file, as if it were in a file with that suffix."""
    reader = _reader_of(f"embedded{suffix}", text)
    if reader is not None:
        yield from reader(file, text, line)


def _variables(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    """A file of `NAME=value` lines."""
    for number, row in enumerate(text.splitlines(), line):
        if (found := _ENVIRONMENT_LINE.fullmatch(row)) is not None:
            yield Use(file, number, EnvironmentVariable(found[1], found[2].strip("\"'")))


def _image(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    """A Dockerfile: `ENV NAME=value …`, `ENV NAME value`."""
    # Continued lines are one instruction; the NUL keeps count of the lines in it.
    joined = re.sub(r"\\\n", "\0", text)
    number = line
    for row in joined.split("\n"):
        if (found := _IMAGE_LINE.fullmatch(row.replace("\0", " "))) is not None:
            pairs = re.findall(r"([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|\S*)", found[1])
            for name, value in pairs or [tuple((*found[1].split(None, 1), "")[:2])]:
                at = number + row[: row.find(name)].count("\0")
                yield Use(file, at, EnvironmentVariable(name, value.strip("\"'")))
        number += 1 + row.count("\0")


_INTERPRETED = re.compile(r"(?:.*/)?(?:(?:ba|z|da|k)?sh|ssh|srun|sbatch|salloc)")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_DEEPEST = 4
"""How deep scripts may stand in scripts: `ssh host "bash -c '...'"` is two. A guess."""


def shell_uses(file: str, text: str, line: int, depth: int = 0) -> Iterator[Use | Misread]:
    """What a script sets and runs. `line`: the number of its first line."""
    held: dict[str, Field] = {}
    for command in commands(text, line):
        if isinstance(command, Misread):
            yield command
            return
        # `A=1` on a line of its own sets a shell variable, which no program sees until it is exported.
        if not command.words:
            held |= dict(command.assignments)
            continue
        for name, value in command.assignments:
            yield Use(file, value.line, EnvironmentVariable(name, value.text if value.known else None))
        yield from _exported_later(file, command, held)
        command_line = CommandLine(file, command.words)
        yield from command_line.uses()
        if depth < _DEEPEST:
            for field in command_line.scripts():
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
    first = command.words[0].text
    for document in command.documents:
        # `ssh host <<EOF`, `bash <<EOF`: the document is a script.
        if _INTERPRETED.fullmatch(first):
            yield from shell_uses(file, document.body, document.line, depth + 1)
        elif _PYTHON.fullmatch(first):
            yield from _embedded_uses(file, ".py", document.body, document.line)
        # `cat > launch.sh <<EOF`: the document is a file of that kind.
        elif "." in command.target:
            yield from _embedded_uses(file, "." + command.target.rpartition(".")[2], document.body, document.line)


_SHELL_CALLS = frozenset({"system", "run", "Popen", "call", "check_call", "check_output", "popen"})


def python_uses(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    """What a launcher sets and starts. `line`: the number of its first line."""
    content = ("\n" * (line - 1) + text).encode()
    try:
        tree = parse(content)
    except UnreadableError as error:
        yield Misread(error.line)
        return
    yield from environment_uses(content, tree, file, lambda _node: Context())
    for node in ast.walk(tree):
        match node:
            # `subprocess.run(["python", "-m", ...])`, also where the list has a name.
            case ast.List(elts=items) | ast.Tuple(elts=items):
                fields = [_field(item) for item in items]
                yield from CommandLine(file, fields).uses()
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(script)) as command, *_]
            ) if name in _SHELL_CALLS:
                yield from shell_uses(file, script, command.lineno)


def _field(item: ast.expr) -> Field:
    match item:
        case ast.Constant(value=str(text)):
            return Field(text, item.lineno)
        case ast.JoinedStr(values=values):
            written = "".join(str(v.value) if isinstance(v, ast.Constant) else "$(…)" for v in values)
            return Field(written, item.lineno)
        case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
            return Field("python", item.lineno)
        case _:
            return Field("$(…)", item.lineno)


_ENVIRONMENTS = frozenset({"env", "envs", "env_vars", "environment", "environment_variables"})
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OVERRIDE = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w@/.-]*\.[\w@/.-]+)=(.*)", re.DOTALL)
_COMMANDS = re.compile(r"verl\.|main_ppo|\bvllm serve\b|\bexport \w+=|(?<!\w)\w+\.py\s+\w+(?:\.\w+)+=")
_CONFIG = frozenset({"actor_rollout_ref", "trainer", "algorithm", "critic"})
_NO_KEYS = frozenset({"defaults", "hydra", "_target_"})


def yaml_uses(file: str, text: str, line: int) -> Iterator[Use | Misread]:
    """What a yaml file sets. `line`: the number of its first line."""
    import yaml

    try:
        found = documents(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        yield Misread(line + (mark.line if mark is not None else 0))
        return
    reader = _Reader(file, line)
    for document in found:
        if document is not None:
            yield from reader.read(document)


class _Reader:
    def __init__(self, file: str, line: int) -> None:
        self._file = file
        self._line = line

    def read(self, root: Any) -> Iterator[Use | Misread]:
        # Two of verl's top keys make it a config file; one alone may be a coincidence.
        if root.id == "mapping" and len(_CONFIG & {_name(key) for key, _ in root.value}) > 1:
            yield from self._config(root, "")
        else:
            yield from self._node(root)

    def _at(self, node: Any) -> int:
        return self._line + int(node.start_mark.line)

    def _node(self, node: Any) -> Iterator[Use | Misread]:
        match node.id:
            case "mapping":
                for key, value in node.value:
                    if _name(key) in _ENVIRONMENTS:
                        yield from self._environment(value)
                    yield from self._node(value)
            case "sequence":
                yield from self._sequence(node)
            # Any text in a yaml file may be a command. The pattern keeps out prose; `|` begins one line further down.
            case "scalar" if "python" in node.tag or node.tag.endswith(":str"):
                if _COMMANDS.search(node.value):
                    yield from shell_uses(self._file, node.value, self._at(node) + (node.style in ("|", ">")))

    def _environment(self, node: Any) -> Iterator[Use]:
        if node.id == "mapping":
            for key, value in node.value:
                yield self._variable(key, _name(key), value.value if value.id == "scalar" else None)
        elif node.id == "sequence":
            for item in node.value:
                if item.id == "scalar" and (found := _VARIABLE.fullmatch(item.value)) is not None:
                    yield self._variable(item, found[1], found[2])
                elif item.id == "mapping":
                    pair = {_name(key): value for key, value in item.value}
                    # Kubernetes: `env: [{name: A, value: "1"}]`
                    if "name" in pair and pair["name"].id == "scalar":
                        value = pair.get("value")
                        scalar = value.value if value is not None and value.id == "scalar" else None
                        yield self._variable(pair["name"], pair["name"].value, scalar)

    def _variable(self, node: Any, name: str, value: str | None) -> Use:
        return Use(self._file, self._at(node), EnvironmentVariable(name, value))

    def _sequence(self, node: Any) -> Iterator[Use | Misread]:
        """A command as a list of words, a list of overrides, or a list of other things."""
        fields = [Field(item.value if item.id == "scalar" else "$(…)", self._at(item)) for item in node.value]
        # `command: ["python", "-m", "verl.trainer.main_ppo", "trainer.nnodes=1"]`
        uses = list(CommandLine(self._file, fields).uses())
        if uses:
            yield from uses
            return
        for item, field in zip(node.value, fields, strict=True):
            found = _OVERRIDE.fullmatch(field.text) if item.id == "scalar" else None
            if found is not None and found[2].partition(".")[0] in _CONFIG | {"data", "reward_model", "reward"}:
                yield Use(self._file, field.line, ConfigKey(found[2], found[3], SIGNS[found[1]]))
                yield from self._flag(found[2], found[3], field.line)
            else:
                yield from self._node(item)

    def _config(self, node: Any, prefix: str) -> Iterator[Use]:
        """A config file is merged into verl's before anything is refused, so a key in it may be new."""
        for key, value in node.value:
            name = f"{prefix}{_name(key)}"
            if _name(key) in _NO_KEYS:
                continue
            if value.id == "mapping" and value.value:
                yield from self._config(value, f"{name}.")
            else:
                scalar = value.value if value.id == "scalar" else None
                yield Use(self._file, self._at(key), ConfigKey(name, scalar, "++"))
                yield from self._flag(name, scalar, self._at(key))

    def _flag(self, dotted: str, value: str | None, line: int) -> Iterator[Use]:
        _, found, name = dotted.partition("engine_kwargs.vllm.")
        if found and value not in ("null", "", "~"):
            yield Use(self._file, line, EngineFlag(name))


def _name(key: Any) -> str:
    """A key's text; "" for one that is a list or a mapping itself."""
    return str(key.value) if key.id == "scalar" else ""
