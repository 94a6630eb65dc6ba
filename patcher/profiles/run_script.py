"""The run scripts of a host (`run_debug.sh`): one template, a profile's values, and what the host's versions make of
them.

Variables and overrides of the host's table count before those of the profile; secrets are never written into a script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import get_args

from patcher.errors import RecordError
from patcher.i18n import phrase
from patcher.profiles import hydra_overrides, version_settings
from patcher.profiles.git_ignore import source_of
from patcher.profiles.hydra_overrides import TrainerConfig, hydra_text, trainer_config
from patcher.profiles.layout import TINY, TRAIN, VALIDATION, Layout
from patcher.profiles.rendered_file import Rendered, Text, fill, with_hash_line
from patcher.remote.agent.snapshots import newest_snapshot
from patcher.remote.host import Host, Profile
from patcher.remote.survey import Survey
from patcher.secrets.contexts import is_secret_value
from patcher.secrets.names import is_secret


def script_name(profile: Profile) -> str:
    """The run script of a profile, at the tree's root: `run_fast_load.sh`."""
    return f"run_{profile.replace('-', '_')}.sh"


NAMES: Mapping[str, Profile] = {script_name(profile): profile for profile in get_args(Profile)}
"""Each run script and its profile."""
_PURPOSES: Mapping[Profile, str] = {
    "standard": "training as it is meant",
    "debug": "two steps with short texts, to see that everything works",
    "fast-load": "one epoch that starts fast: no CUDA graphs, little memory, shorter texts",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OVERRIDE = re.compile(r"(?P<sign>\+\+|\+|~|)(?P<key>[A-Za-z_][\w./@-]*)(?P<value>=.*)?", re.ASCII | re.DOTALL)


def run_script(
    host: Host, survey: Survey | None, versions: Mapping[str, str], tree_root: Path, where: Layout, profile: Profile
) -> Rendered:
    """The run script of `profile`. Raises RecordError for values that cannot be carried."""
    left_out: list[Text] = []
    notes: list[Text] = []
    variables = _variables(host, profile, versions, left_out)
    overrides = _overrides(host, survey, versions, trainer_config(tree_root), where, profile, notes, left_out)
    name = script_name(profile)
    text = fill(
        "run.sh.j2",
        name=name,
        purpose=_PURPOSES[profile],
        host=host.name,
        versions=_in_words(versions),
        left_out=[*map(str, left_out), *version_settings.never_set(host.env)],
        submit=f"{host.slurm.command} --wrap ./{name}" if host.slurm is not None else "",
        nodes=host.slurm.nodes if host.slurm is not None else 1,
        setup=host.setup,
        variables=list(variables.items()),
        own_cache="TRITON_CACHE_DIR" in variables and "TRITON_CACHE_DIR" not in host.env,
        python=_python(host, survey),
        newest=source_of(newest_snapshot),
        hydra_text=source_of(hydra_text),
        data=where.data,
        qwen=where.paths["QWEN_VL_3B_BASE"],
        models=where.models,
        train=[TINY, TRAIN] if profile == "debug" else [TRAIN],
        validation=[TINY] if profile == "debug" else list(VALIDATION),
        overrides=overrides,
    )
    return Rendered(name, with_hash_line(text), 0o755, (*left_out, *notes))


def _variables(host: Host, profile: Profile, versions: Mapping[str, str], notes: list[Text]) -> dict[str, str]:
    found = version_settings.variables(profile, versions, notes)
    found |= {"PYTHONUNBUFFERED": "1", "HYDRA_FULL_ERROR": "1"}
    for name, value in host.env.items():
        if not _may_be_written(host, name, value):
            notes.append(phrase("{variable} left out: a secret is given to the job alone", variable=name))
            continue
        if (why := version_settings.ignored(name, versions)) is not None:
            notes.append(why)
        found[name] = value
    return dict(sorted(found.items()))


def _overrides(
    host: Host,
    survey: Survey | None,
    versions: Mapping[str, str],
    config: TrainerConfig,
    where: Layout,
    profile: Profile,
    notes: list[Text],
    left_out: list[Text],
) -> list[str]:
    """All overrides as the command line has them, the host's own in the place of ours."""
    laid = _laid(host, survey, profile)
    notes += hydra_overrides.layout_notes(profile, laid)
    found = {key: f"{key}={value}" for key, value in hydra_overrides.overrides(profile, laid).items()}
    found["trainer.logger"] = f"trainer.logger={_logger(host, profile)}"
    folder = str(PurePosixPath(where.output, "checkpoints", profile))
    found["trainer.default_local_dir"] = f"trainer.default_local_dir={_text(host, folder)}"
    for item in version_settings.setting_overrides(profile, versions, survey):
        sign = "+" if item.add and not config.has(item.key) else ""
        found[item.key] = f"{sign}{item.key}={item.value}"
    for key in [key for key, text in found.items() if not text.startswith("+") and not config.takes(key)]:
        del found[key]
        left_out.append(phrase("{key} left out: this verl has no such key", key=key))
    rest: list[str] = []
    for given in host.overrides:
        sign, key = _parsed_override(host, given)
        if sign == "~":
            rest.append(given)
            found.pop(key, None)
        else:
            found[key] = given
    return [*found.values(), *rest]


def _laid(host: Host, survey: Survey | None, profile: Profile) -> hydra_overrides.Shape:
    """The layout over the host's GPUs; over those that its table asks for where Slurm gives them to a job."""
    if host.slurm is not None:
        return hydra_overrides.shape(profile, (), host.slurm.gpus_per_node, host.slurm.nodes)
    devices = host.env.get("CUDA_VISIBLE_DEVICES", survey.visible if survey is not None else None)
    cards = survey.gpus if survey is not None else ()
    return hydra_overrides.shape(profile, cards, hydra_overrides.visible_gpus(devices))


def _text(host: Host, path: str) -> str:
    try:
        return hydra_text(path)
    except ValueError as error:
        raise RecordError(
            phrase("{host}: a path cannot be written into a run script", host=host.name), cause=str(error)
        ) from error


def _logger(host: Host, profile: Profile) -> str:
    """Weights & Biases only where there is a key for it: without one it asks, and the job stands still."""
    wanted = profile == "standard" and ("WANDB_API_KEY" in host.secrets or "WANDB_MODE" in host.env)
    return '["console","wandb"]' if wanted else '["console"]'


def _python(host: Host, survey: Survey | None) -> str:
    if survey is not None and survey.interpreter is not None:
        return survey.interpreter.python
    return host.python or "python3"


def _in_words(versions: Mapping[str, str]) -> str:
    names = ("verl", "vllm", "torch", "triton", "transformers", "ray", "flash-attn")
    return ", ".join(f"{name} {versions.get(name, 'unknown' if name in names[:2] else 'not there')}" for name in names)


def _may_be_written(host: Host, name: str, value: str) -> bool:
    """Whether a variable may be written; False for a secret. Raises RecordError for one that is none."""
    if not _VARIABLE.fullmatch(name) or "\0" in value:
        raise RecordError(
            phrase("{host}: {name!r} is no name of a variable, or holds a NUL", host=host.name, name=name)
        )
    return not (is_secret(name) or is_secret_value(value))


def _parsed_override(host: Host, text: str) -> tuple[str, str]:
    """The sign and the key of a hydra override. Raises RecordError for a text that is none, such as an option."""
    found = _OVERRIDE.fullmatch(text)
    if found is None or (found["value"] is None and found["sign"] != "~") or "\0" in text:
        title = phrase("{host}: {text!r} is no hydra override", host=host.name, text=text)
        raise RecordError(title, advice=phrase("Write it as key=value, +key=value, ++key=value or ~key."))
    return found["sign"], found["key"]
