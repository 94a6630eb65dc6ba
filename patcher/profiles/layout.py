"""Where things are on a host: folders for data, models and output by constant (`MODEL_BASE`), from its table or by
default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patcher.errors import RecordError
from patcher.homes import home
from patcher.i18n import Phrase, phrase
from patcher.remote.host import Host
from patcher.remote.survey import Survey

QWEN = "models--Qwen--Qwen2.5-VL-3B-Instruct/snapshots"
TRAIN = "train.parquet"
TINY = "train_tiny.parquet"
"""The data set of two rows. The source documents also spell it train_TINY.parquet; the tool knows this one."""
VALIDATION = ("test.parquet", "val.parquet")
"""Files for validation, first choice first; without one the training file is used."""

_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Layout:
    """Absolute paths on the host, by constant. `given`: those that the profile itself names."""

    paths: Mapping[str, str]
    given: frozenset[str] = frozenset()

    @property
    def data(self) -> str:
        """The folder that holds train.parquet."""
        return self.paths["DATA_OUTPUT_DIR"]

    @property
    def models(self) -> str:
        """The folder in which models are looked for."""
        return self.paths["MODEL_BASE"]

    @property
    def output(self) -> str:
        """The folder for checkpoints and logs."""
        return self.paths["OUTPUT_BASE"]


def layout(host: Host, home_folder: str, root: str) -> Layout:
    """The layout of a host whose user has this home, and whose tree is at `root`.

    Raises RecordError for a path that is neither absolute nor in the home, and for a constant that is none.
    """
    paths_given = {"USER_DATA_BASE": host.data, "DATA_OUTPUT_DIR": host.data, "MODEL_BASE": host.models}
    paths_given |= {"OUTPUT_BASE": host.output, **host.constants}
    for name in host.constants:
        if not _CONSTANT.fullmatch(name) or name.endswith("_STR"):
            cause = "A constant has capital letters, digits and '_'; its _STR export is made."
            raise RecordError(phrase("{host}: {name!r} cannot be a constant", host=host.name, name=name), cause=cause)
    given = {name: absolute(host, name, value, home_folder) for name, value in paths_given.items() if value is not None}
    paths = {"PROJECT_ROOT": root, **_defaults(host, home_folder, root), **given}
    if "QWEN_VL_3B_BASE" not in given:
        paths["QWEN_VL_3B_BASE"] = str(PurePosixPath(paths["MODEL_BASE"], QWEN))
    return Layout(paths, frozenset(given))


def layout_on(host: Host, survey: Survey | None, tree_root: Path) -> Layout:
    """The layout of a host as surveyed. Without a survey the home and the tree are this machine's.

    Raises RecordError as `layout` does.
    """
    if survey is not None:
        return layout(host, survey.home, survey.folder.path)
    return layout(host, str(home()), str(tree_root))


def absolute(host: Host, name: str, value: str, home_folder: str) -> str:
    """`value` with ~ resolved. Raises RecordError where it is not absolute then, or holds a NUL."""
    path = home_folder + value[1:] if value == "~" or value.startswith("~/") else value
    if path.startswith("/") and "\0" not in path:
        return path.rstrip("/") or "/"
    title = phrase("{host}: {name} = {value!r} is no path that can be used", host=host.name, name=name, value=value)
    raise RecordError(title, advice=phrase("Write an absolute path, or one that begins with ~/."))


def _defaults(host: Host, home_folder: str, root: str) -> dict[str, str]:
    cache = host.env.get("HF_HUB_CACHE") or str(
        PurePosixPath(host.env.get("HF_HOME") or f"{home_folder}/.cache/huggingface", "hub")
    )
    data = f"{home_folder}/data"
    return {
        "USER_DATA_BASE": data,
        "MODEL_BASE": absolute(host, "HF_HOME", cache, home_folder),
        "DATA_OUTPUT_DIR": data,
        "QWEN_VL_3B_BASE": "",
        "OUTPUT_BASE": f"{root}/outputs",
    }


def derived(name: str, tail: str, paths: Mapping[str, str]) -> str:
    """A folder for a constant that nobody gives a value for: below models, output or data, as its name says."""
    if re.search(r"MODEL|QWEN|LLAMA|WEIGHT|TOKENIZER|HF_", name):
        base = paths["MODEL_BASE"]
    elif re.search(r"OUTPUT|CHECKPOINT|CKPT|LOG|RESULT|SAVE|WANDB|TMP|CACHE", name):
        base = paths["OUTPUT_BASE"]
    else:
        base = paths["USER_DATA_BASE"]
    return str(PurePosixPath(base, tail or name.lower()))


def left_to_default(name: str, value: str) -> Phrase:
    """The comment at a constant of the fork's that the profile does not name."""
    template = "git_ignore.py: the profile gives no {name}; it is set to {value}"
    return phrase(template, name=name, value=value)
