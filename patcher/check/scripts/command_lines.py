"""What one command line means: environment variables that it sets (`export`, `env`, `docker -e`, `--runtime-env-json`),
hydra overrides of verl's config, flags of vLLM's server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from patcher.analysis.configuration import load
from patcher.analysis.uses import ConfigKey, EngineFlag, EnvironmentVariable, Need, Sign, Use
from patcher.check.scripts.shell import Field

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_OVERRIDE = re.compile(r"(\+\+|\+|~)?((?:[A-Za-z_]|\$\{\w+\})[\w@/.$\{\}-]*)(?:=(.*))?", re.DOTALL)
_ENGINE = re.compile(r"(?:.*\.)?engine_kwargs\.vllm\.(.+)")
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*\+?)(?:=.*)?", re.DOTALL)
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)|\$\{?PYTHON\w*\}?")
_SERVER = "vllm.entrypoints.openai.api_server"
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh|ssh|srun|salloc|sbatch|su|eval")
_TOP_KEYS = frozenset(
    {"actor_rollout_ref", "algorithm", "critic", "data", "reward", "reward_model", "trainer", "ray_init", "ray_kwargs"}
)
_TELLING = ("actor_rollout_ref", "trainer")
_NAMED = re.compile(r"\$\{\w+\}")
SIGNS: Mapping[str | None, Sign] = {None: "", "+": "+", "++": "++", "~": "~"}
"""The sign in front of an override, by what a regular expression has found there."""
_NOT_GIVEN = frozenset({"null", "None", "none", "~"})


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line taken apart: `fields` are its words, whatever wrappers stand in front."""

    file: str
    fields: Sequence[Field]

    def uses(self) -> Iterator[Use]:
        """The uses in the order of the words."""
        yield from self._environment()
        if (arguments := self._served()) is not None:
            yield from self._flags(arguments)
        elif (found := self.started()) is not None:
            yield from self._overrides(_module_of(found[0]), found[1])

    def scripts(self) -> Iterator[Field]:
        """Words that are scripts themselves: `bash -c "…"`, `ssh host "…"`."""
        if self.fields and _SHELLS.fullmatch(self.fields[0].text):
            for field in self.fields[1:]:
                if any(char in field.text for char in " \n") and not field.text.startswith("-"):
                    yield field

    def _environment(self) -> Iterator[Use]:
        words = self.fields
        if not words:
            return
        match words[0].text:
            case "export" | "setenv":
                for field in words[1:]:
                    yield from self._assigned(field, field.text)
                if words[0].text == "setenv" and len(words) == 3 and _VARIABLE.fullmatch(words[1].text):
                    yield self._variable(words[1], words[1].text, words[2].text)
            # `declare -x NAME=value`
            case "declare" | "typeset" if any("x" in field.text for field in words[1:] if field.text[:1] == "-"):
                for field in words[1:]:
                    yield from self._assigned(field, field.text)
            case _:
                yield from self._wrapped()

    def _wrapped(self) -> Iterator[Use]:
        """`env A=1 …`, `docker run -e A=1 …`, `srun --export=ALL,A=1 …`, `ray job submit --runtime-env-json …`."""
        for index, field in enumerate(self.fields):
            before = self.fields[index - 1].text if index else ""
            if field.text == "env" or field.text.endswith("/env"):
                option = ""
                for following in self.fields[index + 1 :]:
                    assigned = _ASSIGNMENT.fullmatch(following.text) is not None
                    # `env -u OLD A=1 program`: the first word that is no option or assignment is the program.
                    if not assigned and not following.text.startswith("-") and option not in ("-u", "-C", "-S"):
                        break
                    yield from self._assigned(following, following.text)
                    option = following.text
            elif before in ("-e", "--env") and _ASSIGNMENT.fullmatch(field.text) is not None:
                yield from self._assigned(field, field.text)
            elif field.text.startswith(("--env=", "--export=", "-e=")):
                for part in field.text.partition("=")[2].split(","):
                    yield from self._assigned(field, part)
            elif field.text.startswith("--runtime-env-json="):
                yield from self._runtime(field, field.text.partition("=")[2])
            elif before == "--runtime-env-json":
                yield from self._runtime(field, field.text)

    def _runtime(self, field: Field, text: str) -> Iterator[Use]:
        content = load(text)
        variables = content.get("env_vars") if isinstance(content, dict) else None
        for name, value in variables.items() if isinstance(variables, dict) else ():
            yield self._variable(field, str(name), str(value))

    def _assigned(self, field: Field, text: str) -> Iterator[Use]:
        if (found := _ASSIGNMENT.fullmatch(text)) is not None:
            yield self._variable(field, found[1], found[2])

    def _variable(self, field: Field, name: str, value: str) -> Use:
        known = "${" not in value and "$(" not in value
        return Use(self.file, field.line, EnvironmentVariable(name, value if known else None))

    def _served(self) -> Sequence[Field] | None:
        """The arguments of a vLLM server."""
        texts = [field.text for field in self.fields]
        for index, text in enumerate(texts):
            if text == "serve" and index and texts[index - 1].rpartition("/")[2] == "vllm":
                return self.fields[index + 1 :]
            if text == _SERVER:
                return self.fields[index + 1 :]
        return None

    def _flags(self, arguments: Sequence[Field]) -> Iterator[Use]:
        for field in arguments:
            if (found := _OPTION.fullmatch(field.text)) is not None:
                name = found[1]
                first, dot, rest = name.partition(".")
                yield self._use(field, EngineFlag(first.replace("-", "_") + dot + rest, option=True))

    def started(self) -> tuple[str, Sequence[Field]] | None:
        """What Python runs, as a dotted module or as the path of a file, and the words after it."""
        fields = self.fields
        for index, field in enumerate(fields):
            text = field.text
            if text == "-m" and index + 1 < len(fields) and "." in (module := fields[index + 1].text):
                # `pytest -m slow.tests` is no module that Python runs.
                if any(_PYTHON.search(before.text) for before in fields[:index]):
                    return module, fields[index + 2 :]
            elif text.endswith(".py") and (index == 0 or any(_PYTHON.search(before.text) for before in fields[:index])):
                return text, fields[index + 1 :]
        return None

    def _overrides(self, entry: str, arguments: Sequence[Field]) -> Iterator[Use]:
        options_given, rest = _hydra_options(arguments)
        config, folder = options_given.get("name", "").removesuffix(".yaml"), options_given.get("path", "config")
        keys = [given for field in rest if (given := _given(field)) is not None]
        # A program of somebody else that takes `trainer.x=1` most likely builds on verl.
        ours = entry.partition(".")[0] in ("verl", "recipe") or any(given.top in _TELLING for given in keys)
        if not ours:
            return
        # Another config folder than that of the entry point, or one beside it: its files are not looked into.
        # `hydra.searchpath=[pkg://verl_mlite.config]`
        folder = next((given.value for given in keys if given.key == "hydra.searchpath" and given.value), folder)
        if folder != "config":
            config = f"{folder}/{config or '(default)'}"
        groups = tuple((given.key, given.value) for given in keys if given.picks and given.value is not None)
        if folder == "config":
            yield Use(self.file, self.fields[0].line, ConfigKey("", entry=entry, config=config))
        for given in keys:
            need = ConfigKey(given.key, given.value, given.sign, entry, config, groups)
            yield self._use(given.field, need)
            flag = _ENGINE.fullmatch(given.key)
            # `+actor_rollout_ref.rollout.engine_kwargs.vllm.enable_x=true` is passed to vLLM as a flag; a null is not.
            if flag is not None and given.sign != "~" and given.value not in _NOT_GIVEN:
                yield self._use(given.field, EngineFlag(flag[1]))
        for field in rest:
            # `${EXTRA_ARGS}` may hold overrides: the key is reported as one that is not known.
            if _NAMED.fullmatch(field.text):
                yield self._use(field, ConfigKey(field.text, entry=entry, config=config))

    def _use(self, field: Field, need: Need) -> Use:
        return Use(self.file, field.line, need)


def _hydra_options(arguments: Sequence[Field]) -> tuple[dict[str, str], list[Field]]:
    """What hydra's own options say of the config's `name` and `path`, and the other words."""
    options = {"--config-name": "name", "-cn": "name", "--config-path": "path", "-cp": "path", "--config-dir": "path"}
    options_given: dict[str, str] = {}
    rest: list[Field] = []
    awaited = ""
    for field in arguments:
        name, given, value = field.text.partition("=")
        if awaited:
            options_given[awaited], awaited = field.text, ""
        elif name in options and given:
            options_given[options[name]] = value
        elif name in options:
            awaited = options[name]
        else:
            rest.append(field)
    return options_given, rest


@dataclass(frozen=True, slots=True)
class _Given:
    """One override as it is written."""

    field: Field
    sign: Sign
    key: str
    value: str | None

    @property
    def top(self) -> str:
        return self.key.partition(".")[0]

    @property
    def picks(self) -> bool:
        """Whether it picks a config from a group."""
        return not self.sign and ("@" in self.key or ("." not in self.key and self.key not in _TOP_KEYS))


def _given(field: Field) -> _Given | None:
    found = _OVERRIDE.fullmatch(field.text)
    if found is None or (found[3] is None and found[1] != "~"):
        return None
    return _Given(field, SIGNS[found[1]], found[2], found[3])


def _module_of(path: str) -> str:
    """The module that a path runs: from the last `verl/` or `recipe/` on, where the tree begins."""
    if not path.endswith(".py"):
        return path
    parts = [part for part in path.removesuffix(".py").split("/") if part not in ("", ".", "..")]
    tops = [index for index, part in enumerate(parts[:-1]) if part in ("verl", "recipe")]
    return ".".join(parts[tops[-1] :] if tops else parts)
