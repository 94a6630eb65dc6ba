"""Uses in yaml: environments of Ray, Kubernetes and Compose, commands in them, and config files for verl."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from patcher.analysis.model import ConfigKey, EngineFlag, EnvironmentVariable, Use
from patcher.analysis.yaml_text import documents
from patcher.check.scripts.programs import Program
from patcher.check.scripts.shell import Field, Misread
from patcher.check.scripts.shell_files import shell_uses

_ENVIRONMENTS = frozenset({"env", "envs", "env_vars", "environment", "environment_variables"})
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OVERRIDE = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w@/.-]*\.[\w@/.-]+)=(.*)", re.DOTALL)
_COMMANDS = re.compile(r"verl\.|main_ppo|\bvllm serve\b|\bexport \w+=|(?<!\w)\w+\.py\s+\w+(?:\.\w+)+=")
_CONFIG = frozenset({"actor_rollout_ref", "trainer", "algorithm", "critic"})
_NO_KEYS = frozenset({"defaults", "hydra", "_target_"})


def yaml_uses(file: str, text: str, line: int = 1) -> Iterator[Use | Misread]:
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
            case "scalar" if "python" in node.tag or node.tag.endswith(":str"):
                if _COMMANDS.search(node.value):
                    yield from shell_uses(self._file, node.value, self._at(node) + (node.style in ("|", ">")))
            case _:
                pass

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
                    if "name" in pair and pair["name"].id == "scalar":
                        value = pair.get("value")
                        told = value.value if value is not None and value.id == "scalar" else None
                        yield self._variable(pair["name"], pair["name"].value, told)

    def _variable(self, node: Any, name: str, value: str | None) -> Use:
        return Use(self._file, self._at(node), EnvironmentVariable(name, value))

    def _sequence(self, node: Any) -> Iterator[Use | Misread]:
        """A command as a list of words, a list of overrides, or a list of other things."""
        fields = [Field(item.value if item.id == "scalar" else "$(…)", self._at(item)) for item in node.value]
        uses = list(Program(self._file, fields).uses())
        if uses:
            yield from uses
            return
        for item, field in zip(node.value, fields, strict=True):
            found = _OVERRIDE.fullmatch(field.text) if item.id == "scalar" else None
            if found is not None and found[2].partition(".")[0] in _CONFIG | {"data", "reward_model", "reward"}:
                yield Use(self._file, field.line, ConfigKey(found[2], found[3], _sign(found[1])))
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
                told = value.value if value.id == "scalar" else None
                yield Use(self._file, self._at(key), ConfigKey(name, told, "++"))
                yield from self._flag(name, told, self._at(key))

    def _flag(self, dotted: str, value: str | None, line: int) -> Iterator[Use]:
        _, found, name = dotted.partition("engine_kwargs.vllm.")
        if found and value not in ("null", "", "~"):
            yield Use(self._file, line, EngineFlag(name))


def _name(key: Any) -> str:
    """A key's text; "" for one that is a list or a mapping itself."""
    return str(key.value) if key.id == "scalar" else ""


def _sign(written: str | None) -> Any:
    return written or ""
